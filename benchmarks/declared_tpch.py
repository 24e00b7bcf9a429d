"""TPC-H's 22 queries as declared tables: python -m benchmarks.declared_tpch --scale 3

Each query is a workflow with one ``Incremental`` step. Orders come and go (``benchmarks.tpch_data``); after each event
every table is refreshed, and beside it the same SELECT fills another table from scratch. Both are timed, in turns, in
one warm Spark, and then compared row by row. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.progress import say
from benchmarks.tpch_data import CATALOG, NAMESPACE, Event, Tpch, differing
from examples.playback.place import Place, place
from tests.rewrite.tpch import QUERIES

SCALE, ROUNDS, MEMORY = 3.0, 3, "6g"
SPARK = {"spark.sql.shuffle.partitions": "16"}
#: They read neither orders nor lineitem.
UNCHANGED = (2, 11, 16)
#: What a refresh may take: so many times a full computation, and a second.
MOST_TIMES, MOST_MORE = 1.15, 1.0


@dataclass(frozen=True)
class Refreshed:
    """One refresh beside one full computation."""

    seconds: float
    full_seconds: float
    strategy: str
    why: str
    is_exact: bool


@dataclass
class Results:
    scale: float
    #: query → event → its rounds.
    refreshed: dict[int, dict[Event, list[Refreshed]]] = field(default_factory=dict)

    def add(self, query: int, event: Event, one: Refreshed) -> None:
        self.refreshed.setdefault(query, {}).setdefault(event, []).append(one)

    def seconds(self, query: int, event: Event) -> tuple[float, float]:
        """The medians of a refresh and of a full computation."""
        found = self.refreshed[query][event]
        return median(each.seconds for each in found), median(each.full_seconds for each in found)

    def changed(self) -> list[int]:
        return [query for query in self.refreshed if query not in UNCHANGED]

    def total_ratio(self, event: Event) -> float:
        ours, full = zip(*(self.seconds(query, event) for query in self.changed()), strict=True)
        return float(sum(ours) / sum(full))

    def as_json(self) -> dict[str, Any]:
        every = [(query, event) for query, events in self.refreshed.items() for event in events]
        exact = {
            query for query, events in self.refreshed.items() if all(r.is_exact for e in events.values() for r in e)
        }
        incremental = [
            query
            for query in self.changed()
            if all(each.strategy != "full" for each in self.refreshed[query].get(Event.NEW_01, ()))
        ]
        times = {(query, event): self.seconds(query, event) for query, event in every}
        return {
            "tpch_scale": self.scale,
            "tpch_exact": len(exact),
            "tpch_incremental": len(incremental),
            "tpch_worst_excess_seconds": round(max(ours - MOST_TIMES * full for ours, full in times.values()), 2),
            **{
                f"tpch_total_ratio_{name}": round(self.total_ratio(event), 3)
                for name, event in (("01", Event.NEW_01), ("1", Event.NEW_1), ("deleted_01", Event.GONE_01))
                if any(event in events for events in self.refreshed.values())
            },
        }


def measure(
    made: Place,
    scale: float = SCALE,
    *,
    rounds: int = ROUNDS,
    queries: Sequence[int] = tuple(QUERIES),
    events: Sequence[Event] = tuple(Event),
    say: Callable[[str], object] = print,
) -> Results:
    """Declare the queries, let things happen, and refresh."""
    folder = made.settings.root / "tpch"
    data = Tpch(made.sql, folder, scale, rounds)
    began = time.perf_counter()
    data.generate()
    data.create()
    say(f"TPC-H at scale factor {scale:g} in {time.perf_counter() - began:.0f} s")
    tables = [_Declared.pushed(made, data, number) for number in queries]
    for table in tables:
        table.compute()
        say(f"query {table.number:>2} first run  {table.refresh()[0]:7.2f} s")
    results = Results(scale)
    for number in range(rounds):
        for event in events:
            data.happen(event, number)
            for at, table in enumerate(tables):
                if table.number in UNCHANGED and number:
                    continue
                one = table.measured(is_first=(at + number) % 2 == 0)
                results.add(table.number, event, one)
                say(_line(event, table.number, one))
    return results


@dataclass(frozen=True)
class _Declared:
    """A query, its workflow, and a table beside that is always computed from scratch."""

    place: Place
    number: int
    query: str

    @classmethod
    def pushed(cls, made: Place, data: Tpch, number: int) -> _Declared:
        found = cls(made, number, data.query(number))
        job = {"id": "refresh", "type": "Incremental", "incremental": found.block}
        made.operations.workflows.push(
            yaml.safe_dump({"Workflow": {"id": found.workflow, "jobs": [{"job": job}]}}, sort_keys=False)
        )
        return found

    @property
    def block(self) -> dict[str, Any]:
        return {"target": self.target, "query": self.query, "companion": True}

    @property
    def workflow(self) -> str:
        return f"tpch.q{self.number}"

    @property
    def target(self) -> str:
        return f"{CATALOG}.{NAMESPACE}.q{self.number}"

    @property
    def beside(self) -> str:
        return f"{self.target}_full"

    def compute(self) -> float:
        """From scratch, in seconds."""
        began = time.perf_counter()
        if self.place.sql(f"SHOW TABLES IN {CATALOG}.{NAMESPACE} LIKE '{self.beside.rpartition('.')[2]}'"):
            began = time.perf_counter()
            self.place.sql(f"INSERT OVERWRITE {self.beside} {self.query}")
        else:
            self.place.sql(f"CREATE TABLE {self.beside} USING iceberg AS {self.query}")
        return time.perf_counter() - began

    def refresh(self) -> tuple[float, str, str]:
        """In seconds; the strategy, and why."""
        began = time.perf_counter()
        [step] = self.place.run(self.workflow)
        outputs = step.outputs or {}
        return time.perf_counter() - began, str(outputs.get("strategy")), str(outputs.get("why"))

    def measured(self, *, is_first: bool) -> Refreshed:
        """Both, one after the other."""
        if is_first:
            (seconds, strategy, why), full = self.refresh(), self.compute()
        else:
            full, (seconds, strategy, why) = self.compute(), self.refresh()
        columns = [str(row["col_name"]) for row in self.place.sql(f"SHOW COLUMNS IN {self.beside}")]
        is_exact = differing(self.place.sql, self.target, self.beside, columns) == 0
        return Refreshed(seconds, full, strategy or "nothing changed", why, is_exact)


def _line(event: Event, query: int, one: Refreshed) -> str:
    return (
        f"{event:<13} query {query:>2}{one.seconds:8.2f} s beside{one.full_seconds:8.2f} s "
        f"{one.seconds / one.full_seconds:6.2f}  {'exact ' if one.is_exact else 'DIFFERS'}  {one.strategy}"
    )


def report(results: Results) -> str:
    """A table in Markdown: of each query, the strategy, the ratio to a full computation after each event, and why."""
    events = list(Event)
    lines = [
        f"| query | full | {' | '.join(events)} | strategy: appends / deletes | why |",
        f"|---|---|{'---|' * len(events)}---|---|",
    ]
    for query, found in results.refreshed.items():
        ratios = []
        for event in events:
            ours, full = results.seconds(query, event) if event in found else (0.0, 0.0)
            ratios.append(f"{ours / full:.2f}" if full else "")
        lasts = [found[event][-1] for event in (Event.NEW_01, Event.GONE_01) if event in found]
        strategies = " / ".join(_each_once(each.strategy for each in lasts))
        whys = " ".join(_each_once(each.why for each in lasts))
        full = median(each.full_seconds for rounds in found.values() for each in rounds)
        lines.append(f"| {query} | {full:.1f} s | {' | '.join(ratios)} | {strategies} | {whys} |")
    return "\n".join(lines)


def _each_once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.declared_tpch", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=SCALE, help="scale factor; the targets are for 3 or more")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each event happens")
    parser.add_argument("--queries", type=int, nargs="*", default=list(QUERIES))
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-tpch-", dir=options.folder) as name:
        results = measured(Path(name).resolve(), options.scale, rounds=options.rounds, queries=options.queries)
    print(report(results))
    print(json.dumps(results.as_json()))


def measured(
    folder: Path, scale: float = SCALE, *, rounds: int = ROUNDS, queries: Sequence[int] = tuple(QUERIES)
) -> Results:
    """The same in a lake of its own, with a Spark of its own."""
    with place(folder, SPARK, MEMORY) as made:
        return measure(made, scale, rounds=rounds, queries=queries, say=say)


if __name__ == "__main__":
    main()
