"""Whether incremental processing pays: python -m benchmarks.pipeline

The pipeline of examples/playback, two stages, on a table with 25 days of history. Then days pass: each brings a day's
events, of which two in a hundred are late and one in a hundred came before, and every form of the pipeline processes
it, in turns, on targets of its own, in one warm Spark: a lookback of 14 days, the incremental form, and the incremental
form by other means; stage 1 by Flink as well, in a warm Flink. In the end all days are computed anew, and every target
is compared with that. Then the incremental form alone, with a history 1, 4 and 16 times as long. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import pipeline_report
from benchmarks.pipeline_flink import flink_form, warm_flink
from benchmarks.pipeline_forms import (
    STAGES,
    WORKFLOWS,
    Form,
    Tables,
    changelog_view,
    full,
    incremental,
    incremental_id,
    lookback,
    plain_read,
    streaming,
)
from benchmarks.progress import say, warn_if_busy
from dalsegno.audit.results import AuditRequest
from examples.playback.meter import Cost, Meter, event_log_conf
from examples.playback.place import Place, place
from tests.lakes.flink import Flink

ROWS, DAYS, RUNS = 64_000_000, 25, 3
FIRST = date(2026, 1, 1)
#: Of the runs with a longer history: events a day, and how much longer.
GROWTH_EVENTS, GROWTH_DAYS, LENGTHS, GROWTH_RUNS = 20_000, 24, (1, 4, 16), 9
WARM_UP_EVENTS, WARM_UP_RUNS = 5_000, 2
#: How many days dalsegno audit looks at.
AUDITED = 2
MEMORY = "6g"
SPARK = {"spark.sql.shuffle.partitions": "16"}
#: Forms that begin with a copy of what the incremental form made of the history.
COPIES = ("lookback", "plain_read", "changelog_view", "streaming", "flink")


@dataclass
class Results:
    rows: int = 0
    #: form → stage → the cost of each day.
    costs: dict[str, dict[str, list[Cost]]] = field(default_factory=dict)
    #: form → whether its targets are those of a full recomputation.
    right: dict[str, bool] = field(default_factory=dict)
    #: Rows of stage 1 that lookback has not.
    missed_rows: int = 0
    #: How many times as long the history is → the cost of each day.
    growth: dict[int, list[Cost]] = field(default_factory=dict)
    #: form → what went wrong.
    failures: dict[str, str] = field(default_factory=dict)

    def total(self, form: str, stage: str | None = None) -> Cost:
        costs = [cost for name, each in self.costs[form].items() if stage in (None, name) for cost in each]
        return sum(costs, Cost())

    def growth_16x(self) -> float | None:
        if not self.growth:
            return None
        medians = {length: median(cost.wall_seconds for cost in costs) for length, costs in self.growth.items()}
        return max(medians.values()) / medians[1]


@dataclass(frozen=True)
class Lake:
    """A source table whose days pass, and the targets of all forms."""

    place: Place
    tables: Tables
    #: A day.
    events: int

    def create(self, days: int) -> date:
        """The history, and what the incremental form makes of it, compacted; its last day."""
        last = FIRST + timedelta(days - 1)
        self.place.run("playback.setup", **self.tables.of("incremental"))
        self.arrive(FIRST, last)
        form = incremental(self.place, self.tables)
        for stage in STAGES:
            form.run(stage, last)
            # As in any lake that is looked after: what was written at once is in many small files.
            target = self.tables.target("incremental", stage).removeprefix("lake.")
            self.place.sql(f"CALL lake.system.rewrite_data_files(table => '{target}')")
        return last

    def arrive(self, first: date, last: date) -> None:
        days = {"epoch": str(FIRST), "first_day": str(first), "last_day": str(last)}
        self.place.run("playback.arrive", source=self.tables.source, events=self.events, **days)

    def copy_targets(self, forms: Sequence[str]) -> None:
        """Give forms the targets of the incremental one, and marks where the alternatives go on from."""
        marks, sql = self.tables.marks, self.place.sql
        sql(f"CREATE TABLE {marks} (form STRING, stage STRING, snapshot_id BIGINT, at TIMESTAMP) USING iceberg")
        for form in forms:
            for stage in STAGES:
                original, copy = (self.tables.target(name, stage) for name in ("incremental", form))
                [entry] = sql(f"SELECT file FROM {original}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
                sql(f"CALL lake.system.register_table('{copy.removeprefix('lake.')}', '{entry['file']}')")
            for stage in STAGES:
                read = self.tables.read_by(form, stage)
                sql(
                    f"INSERT INTO {marks} SELECT '{form}', '{stage}', MAX_BY(snapshot_id, committed_at), "
                    f"CURRENT_TIMESTAMP() FROM {read}.snapshots"
                )

    def is_equal(self, form: str, other: str, stages: Sequence[str] = STAGES) -> bool:
        """Whether two forms' targets hold the same rows: number and hashes of each day's rows."""
        return all(
            self._fingerprints(self.tables.target(form, stage)) == self._fingerprints(self.tables.target(other, stage))
            for stage in stages
        )

    def _fingerprints(self, table: str) -> list[dict[str, object]]:
        columns = ", ".join(row["col_name"] for row in self.place.sql(f"SHOW COLUMNS IN {table}"))
        return self.place.sql(
            f"SELECT event_day, COUNT(*) AS rows, SUM(CAST(XXHASH64({columns}) AS DECIMAL(38, 0))) AS sum, "
            f"BIT_XOR(XXHASH64('another', {columns})) AS xor FROM {table} GROUP BY event_day ORDER BY event_day"
        )

    def rows(self, table: str) -> int:
        return int(self.place.sql(f"SELECT COUNT(*) AS rows FROM {table}")[0]["rows"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="of the history; the targets are for the default")
    parser.add_argument("--days", type=int, default=DAYS, help="of the history")
    parser.add_argument("--runs", type=int, default=RUNS, help="how many days pass")
    parser.add_argument("--warm-up", type=int, default=WARM_UP_RUNS, help="days that pass in a small lake before")
    parser.add_argument("--growth-events", type=int, default=GROWTH_EVENTS, help="events a day with a longer history")
    parser.add_argument("--without-growth", action="store_true")
    parser.add_argument("--only-growth", action="store_true")
    parser.add_argument("--forms", nargs="*", default=list(COPIES), help="beside the incremental one")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    parser.add_argument("--chart", type=Path, help="where to draw the charts, such as docs/images")
    options = parser.parse_args(arguments)
    warn_if_busy()
    options.folder.mkdir(parents=True, exist_ok=True)
    results = Results()
    with TemporaryDirectory(prefix="bench-pipeline-", dir=options.folder) as name:
        folder = Path(name).resolve()
        log = folder / "events"
        with place(folder, {**SPARK, **event_log_conf(log)}, MEMORY) as made, ExitStack() as stack:
            made.push(*WORKFLOWS)
            meter = Meter(log, made.server.java)
            forms = [] if options.only_growth else options.forms
            flink = stack.enter_context(warm_flink(made, folder)) if "flink" in forms else None
            if options.warm_up:
                say("warms up")
                _simulate(made, meter, "warm", WARM_UP_EVENTS, 24, options.warm_up, forms, folder, flink, Results())
            if not options.only_growth:
                events = options.rows // options.days
                _simulate(made, meter, "media", events, options.days, options.runs, forms, folder, flink, results)
            if not options.without_growth:
                _grow(made, meter, options.growth_events, results)
    if options.only_growth:
        print(json.dumps({"growth_16x": results.growth_16x()}))
    else:
        pipeline_report.show(results, options.chart)


def _simulate(
    made: Place,
    meter: Meter,
    prefix: str,
    events: int,
    days: int,
    runs: int,
    names: Sequence[str],
    folder: Path,
    flink: Flink | None,
    results: Results,
) -> None:
    began = time.perf_counter()
    lake = Lake(made, Tables(prefix), events)
    last = lake.create(days)
    lake.copy_targets(names)
    results.rows = lake.rows(lake.tables.source)
    say(f"{results.rows:,} rows of history, processed once, in {time.perf_counter() - began:.0f} s")
    forms = _forms(made, lake.tables, names, folder, flink)
    for number in range(1, runs + 1):
        day = last + timedelta(number)
        lake.arrive(day, day)
        # Each has to be the first one day, and the last another.
        turn = number % len(forms)
        for form in (*forms[turn:], *forms[:turn]):
            if form.name not in results.failures:
                _measure(form, day, meter, results)
    truth = full(made, lake.tables)
    made.run("playback.setup", **{**lake.tables.of("full"), "source": f"{lake.tables.source}_unused"})
    for stage in STAGES:
        cost = meter.measure(truth.run, stage, day)
        say(f"everything anew  {stage:<6}{cost.wall_seconds:8.1f} s")
    for form in forms:
        has_ended = form.name not in results.failures
        results.right[form.name] = has_ended and lake.is_equal(form.name, "full", form.stages)
        say(f"{form.name:<16} {'equals' if results.right[form.name] else 'DIFFERS from'} a full recomputation")
    _audit(made, lake.tables, results)
    if "lookback" in names:
        tables = lake.tables
        results.missed_rows = lake.rows(tables.target("full", "daily")) - lake.rows(tables.target("lookback", "daily"))


def _audit(made: Place, tables: Tables, results: Results) -> None:
    """Let dalsegno itself say whether the incremental form is right: in some partitions, by its own SQL."""
    for stage in STAGES:
        began = time.perf_counter()
        found = made.operations.audits.run(
            AuditRequest(incremental_id(tables, stage), sample=AUDITED), say=lambda _: None
        )
        results.right["incremental"] &= found.is_equal
        verdict = "as it should be" if found.is_equal else "NOT as it should be"
        say(f"audit of {AUDITED} days  {stage:<6}{time.perf_counter() - began:8.1f} s   {verdict}")


def _forms(made: Place, tables: Tables, names: Sequence[str], folder: Path, flink: Flink | None) -> list[Form]:
    checkpoints, now = folder / f"{tables.prefix}-stream", int(time.time() * 1000)
    makers = {
        "lookback": lambda: lookback(made, tables),
        "plain_read": lambda: plain_read(made, tables),
        "changelog_view": lambda: changelog_view(made, tables),
        "streaming": lambda: streaming(made, tables, checkpoints, now),
        **({"flink": lambda: flink_form(flink, tables)} if flink else {}),
    }
    return [incremental(made, tables), *(makers[name]() for name in names)]


def _measure(form: Form, day: date, meter: Meter, results: Results) -> None:
    for stage in form.stages:
        try:
            cost = (form.meter or meter).measure(form.run, stage, day)
        except Exception as error:  # noqa: BLE001 - an alternative that cannot do it is a result as well
            results.failures[form.name] = str(error)
            say(f"{day} {form.name:<16} {stage:<6} failed: {str(error)[:300]}")
            return
        results.costs.setdefault(form.name, {}).setdefault(stage, []).append(cost)
        say(
            f"{day} {form.name:<16} {stage:<6}{cost.wall_seconds:8.1f} s{cost.cpu_seconds:8.1f} s of processors"
            f"{cost.bytes_read / 1e6:9.1f} MB read{cost.bytes_written / 1e6:8.1f} MB written"
        )


def _grow(made: Place, meter: Meter, events: int, results: Results) -> None:
    """The same change behind histories of different lengths."""
    lakes = {}
    for length in LENGTHS:
        lake = Lake(made, Tables(f"grown_{length}"), events)
        lakes[length] = (lake, lake.create(GROWTH_DAYS * length), incremental(made, lake.tables))
        say(f"{GROWTH_DAYS * length} days of history")
    for number in range(1, GROWTH_RUNS + 1):
        # Each has to be the first one day, and the last another.
        turn = number % len(LENGTHS)
        for length in (*LENGTHS[turn:], *LENGTHS[:turn]):
            lake, last, form = lakes[length]
            day = last + timedelta(number)
            lake.arrive(day, day)
            cost = sum((meter.measure(form.run, stage, day) for stage in STAGES), Cost())
            results.growth.setdefault(length, []).append(cost)
            say(f"{day} {GROWTH_DAYS * length:4} days of history{cost.wall_seconds:8.2f} s")


if __name__ == "__main__":
    main()
