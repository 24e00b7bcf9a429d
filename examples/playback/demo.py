"""``make demo``: day after day of late events, processed with a lookback of 14 days and incrementally, side by side."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError
from dalsegno.operations.run_views import StepView
from examples.playback.meter import Cost, Meter, event_log_conf
from examples.playback.place import Place, place

FOLDER = Path("demo")
#: The history, the days that pass, and the events of a day.
DAYS, RUNS, EVENTS = 24, 3, 30_000
LOOKBACK = 14
_INCREMENTAL = {"daily": "lake.media.playback_daily", "agg": "lake.media.playback_daily_agg"}
_LOOKBACK = {"daily": "lake.media.lookback_daily", "agg": "lake.media.lookback_daily_agg"}
_BAR = 36
_MEASURES: dict[str, tuple[str, Callable[[Cost], float]]] = {
    "time": ("s", lambda cost: cost.wall_seconds),
    "processors": ("s", lambda cost: cost.cpu_seconds),
    "read": ("MB", lambda cost: cost.bytes_read / 1e6),
    "written": ("MB", lambda cost: cost.bytes_written / 1e6),
}


def main() -> None:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    events = FOLDER.resolve() / ".dalsegno" / "events"
    print("Starting Spark (about ten seconds; the first time it also fetches Iceberg's runtime) …", flush=True)
    with place(FOLDER, {"spark.sql.shuffle.partitions": "4", **event_log_conf(events)}, "2g") as made:
        Demo(made, Meter(events, made.server.java), utc_now().date() - timedelta(days=RUNS)).tell()
    print(f"\nThe lake and the runs are still there to look at: cd {FOLDER}, and type")
    for command in (
        "runs",
        "show playback.daily",
        "logs playback.daily daily_agg",
        "audit playback.daily",
    ):
        print(f"  {_command()} {command}")


class Demo:
    def __init__(self, made: Place, meter: Meter, today: date) -> None:
        self.place, self.meter, self.today = made, meter, today
        self.first = today - timedelta(days=DAYS - 1)
        self.costs = {"lookback": Cost(), "incremental": Cost()}

    def tell(self) -> None:
        self.place.push("setup", "arrive", "lookback_daily", "lookback_agg", "daily")
        with _told(f"A table of playback events: {DAYS} days, {EVENTS:,} events a day, two in a hundred late"):
            self._run("setup")
            self._run("setup", source="lake.media.unused", **_LOOKBACK)
            self._arrive(self.first, self.today)
        with _told("Both pipelines process it: events → plays, once each → plays and viewers per day and country"):
            self._look_back(DAYS)
            self._process_what_is_new()
        for _ in range(RUNS):
            self.today += timedelta(days=1)
            self._pass_a_day()
        with _told("Everything once more, from scratch: who is right?"):
            missing = {"lookback": self._rows(_INCREMENTAL) - self._rows(_LOOKBACK), "incremental": 0}
            self._look_back(DAYS + RUNS)
            missing["incremental"] = self._rows(_LOOKBACK) - self._rows(_INCREMENTAL)
            is_equal = self._differing("daily") == self._differing("agg") == 0
        print(f"The incremental tables {'are the same, row by row' if is_equal else 'DIFFER'}.")
        _chart(self.costs, missing)

    def _pass_a_day(self) -> None:
        with _told(f"{self.today}: another day"):
            self._arrive(self.today, self.today)
        [came] = self.place.sql(
            f"SELECT count(*) AS rows, count_if(event_day < DATE'{self.today}') AS late, "
            "max(datediff(received_at, event_day)) AS oldest "
            f"FROM lake.media.playback WHERE received_at >= DATE'{self.today}'"
        )
        print(f"{came['rows']:,} events arrive, {came['late']:,} of them late, the oldest by {came['oldest']} days.")
        looked = self.meter.measure(self._look_back, LOOKBACK)
        self._note("lookback", looked, f"{LOOKBACK} days and the new one, all over again")
        captured: list[str] = []
        took = self.meter.measure(lambda: captured.append(self._process_what_is_new()))
        self._note("incremental", took, captured[0])
        since = f"event_day >= DATE'{self.today - timedelta(days=LOOKBACK)}'"
        verdict = "agree" if self._differing("agg", since) == 0 else "DIFFER"
        lacking = self._rows(_INCREMENTAL) - self._rows(_LOOKBACK)
        print(f"Results of the last {LOOKBACK} days {verdict}; lookback lacks {lacking:,} events that came later.")

    def _note(self, form: str, cost: Cost, what: str) -> None:
        self.costs[form] += cost
        print(f"  {form:<12}{cost.wall_seconds:6.1f} s {cost.bytes_read / 1e6:8.1f} MB read   {what}", flush=True)

    # The pipelines.

    def _arrive(self, first: date, last: date) -> None:
        days = {"epoch": str(self.first), "first_day": str(first), "last_day": str(last)}
        self._run("arrive", events=EVENTS, **days)

    def _look_back(self, days: int) -> None:
        self._run("lookback_daily", day=str(self.today), lookback=days, daily=_LOOKBACK["daily"])
        tables = {"source": _LOOKBACK["daily"], "agg": _LOOKBACK["agg"]}
        self._run("lookback_agg", day=str(self.today), lookback=days, **tables)

    def _process_what_is_new(self) -> str:
        """Run both stages; the strategy of each."""
        return ", ".join(f"{step.id}: {step.outputs['strategy']}" for step in self._run("daily"))

    def _run(self, workflow: str, **params: object) -> Sequence[StepView]:
        return self.place.run(f"playback.{workflow}", **params)

    # What they made.

    def _rows(self, tables: dict[str, str]) -> int:
        return int(self.place.sql(f"SELECT count(*) AS rows FROM {tables['daily']}")[0]["rows"])

    def _differing(self, stage: str, where: str = "true") -> int:
        """How many rows the tables of the two forms do not share."""
        ours, theirs = (f"SELECT * FROM {tables[stage]} WHERE {where}" for tables in (_INCREMENTAL, _LOOKBACK))
        query = f"({ours} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {ours})"
        return int(self.place.sql(f"SELECT count(*) AS rows FROM ({query})")[0]["rows"])


def _chart(costs: dict[str, Cost], missing: dict[str, int]) -> None:
    print(f"\n── What {RUNS} days cost\n")
    for title, (unit, of) in _MEASURES.items():
        most = max(map(of, costs.values())) or 1
        for form, cost in costs.items():
            bar = "█" * max(1, round(_BAR * of(cost) / most))
            print(f"{title if form == 'lookback' else '':<11}{form:<12}{of(cost):8.1f} {unit:<3} {bar}")
    print(f"{'lacking':<11}{'lookback':<12}{missing['lookback']:8,} events")
    print(f"{'':<11}{'incremental':<12}{missing['incremental']:8,} events")
    looked, took = costs["lookback"], costs["incremental"]
    print(
        f"\nIncremental took {took.wall_seconds / looked.wall_seconds:.0%} of the time and read "
        f"{took.bytes_read / looked.bytes_read:.0%} of the bytes. The lake is small: most of its time is what Spark "
        "needs to begin at all.\n`make bench-pipeline` measures the same on sixty million rows."
    )


def _command() -> str:
    return os.path.relpath(Path(sys.executable).with_name("dalsegno"), FOLDER)


@contextmanager
def _told(title: str) -> Iterator[None]:
    print(f"\n── {title} …", flush=True)
    began = time.perf_counter()
    yield
    print(f"   ({time.perf_counter() - began:.1f} s)", flush=True)


if __name__ == "__main__":
    try:
        main()
    except DalsegnoError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        raise SystemExit(1) from error
