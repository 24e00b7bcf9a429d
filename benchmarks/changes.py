"""How long it takes to get the rows that a MERGE changed, and what else there is: python -m benchmarks.changes

A table of 10 million rows in 100 partitions, of which a MERGE updates 10,000 in 3 partitions: with format versions 2
and 3, as copy-on-write and as merge-on-read. The changed rows are read with dalsegno (a capture and its query), with
Iceberg's ``create_changelog_view`` (which knows no delete files), and by comparing the two snapshots as a whole; all in
one warm Spark session, in turns. A reading hands every column of every changed row to Spark's ``noop`` sink; then, off
the clock, they are counted and summed, so that the answers can be compared as well. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dalsegno import Changes, Lake
from dalsegno.iceberg.catalogs import spark_configuration
from tests.local_spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, PARTITIONS, CHANGED, TOUCHED = 10_000_000, 100, 10_000, 3
ROUNDS = 11
#: Rounds before that are not counted: until then Java compiles what it runs, of every side.
WARM_UP = 20
VERSIONS = (2, 3)
COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
COLUMNS = "id, day, customer, amount, note"
UPSERTS = ("insert", "update_after")

#: Added or removed → how many rows, and the sum of their hashes.
Answer = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Reading:
    """One way to the changed rows, measured once."""

    seconds: float
    #: Of these, what passed before the first row could be read: the capture.
    capture_seconds: float
    bytes_read: int
    bytes_shuffled: int
    answer: Answer


@dataclass
class Results:
    """Every reading: side, such as ``dalsegno_upserts`` → kind of table, such as ``v2 copy-on-write`` → rounds."""

    readings: dict[str, dict[str, list[Reading]]] = field(default_factory=dict)

    def add(self, side: str, kind: str, reading: Reading) -> None:
        self.readings.setdefault(side, {}).setdefault(kind, []).append(reading)
        _say(f"{kind:<18}{side:<24}{reading.seconds:8.2f} s{reading.bytes_read / 1e6:9.1f} MB read")

    def seconds(self, side: str, kind: str) -> float | None:
        found = [reading.seconds for reading in self.readings.get(side, {}).get(kind, ())]
        return median(found) if found else None

    def ratio(self, slower: str, faster: str, kind: str) -> float | None:
        above, below = self.seconds(slower, kind), self.seconds(faster, kind)
        return above / below if above and below else None

    def is_exact(self) -> bool:
        """Whether each answer is that of comparing both snapshots; every kind of table saw the same changes."""
        told = [reading.answer for kinds in self.readings.values() for found in kinds.values() for reading in found]
        truth = [reading.answer for found in self.readings["full_diff"].values() for reading in found]
        return all(answer[side] == truth[0][side] for answer in told for side in answer) and all(
            truth[0].get(side, (0, 0))[0] == CHANGED for side in ("added", "removed")
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the table; the targets are for the default")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="rounds before those, which are not counted")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    if load > (os.cpu_count() or 1) / 2:
        _say("other programs keep this machine busy: expect times that are too long")
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-changes-", dir=options.folder) as folder:
        _show(_measure(Path(folder).resolve(), options.rows, options.rounds, options.warm_up), load)


def _measure(folder: Path, rows: int, rounds: int, warm_up: int) -> Results:
    # All defaults: store, catalog and warehouse in this folder.
    settings = folder / "dalsegno.toml"
    settings.touch()
    results = Results()
    with Lake.open(settings) as lake:
        configuration = spark_configuration(lake.settings.catalog("lake"))
        bench = Bench(lake, local_session(configuration, app_name="benchmarks.changes"), rows)
        bench.spark.sql("CREATE NAMESPACE lake.bench")
        for version in VERSIONS:
            tables = bench.make(version)
            for number in range(-warm_up, rounds):
                if number < 0:
                    _say(f"warms up, round {number + warm_up + 1} of {warm_up}")
                for table in tables:
                    for side, read in bench.ways(table).items():
                        reading = read()
                        if number >= 0:
                            results.add(side, table.kind, reading)
            _say("compares both snapshots as a whole")
            # Once is enough of what takes minutes; the modes of a version hold the same rows at both ends.
            results.add("full_diff", tables[0].kind, bench.by_full_diff(tables[0]))
        bench.spark.stop()
    return results


@dataclass(frozen=True)
class BenchTable:
    """A table of one kind, before and after the MERGE."""

    name: str
    version: int
    mode: str
    first: int
    last: int

    @property
    def kind(self) -> str:
        return f"v{self.version} {self.mode}"


@dataclass(frozen=True)
class Bench:
    """A lake, and the Spark session that reads it."""

    lake: Lake
    spark: SparkSession
    rows: int
    _consumers: count[int] = field(default_factory=count)

    def make(self, version: int) -> list[BenchTable]:
        """A table for each mode; its rows are written once, and the second is registered from the first's metadata."""
        began = time.perf_counter()
        base, per_partition = f"bench.base_v{version}", self.rows // PARTITIONS
        self.spark.sql(
            f"CREATE TABLE lake.{base} (id BIGINT, day INT, customer BIGINT, amount DOUBLE, note STRING) USING iceberg "
            f"PARTITIONED BY (day) TBLPROPERTIES ('format-version' = '{version}')"
        )
        self.spark.sql(
            f"INSERT INTO lake.{base} SELECT id, CAST(id DIV {per_partition} AS INT), id * 7919 % 1000003, "
            f"(id * 31 % 100000) / 100, CONCAT('note ', HEX(id * 2654435761)) FROM RANGE({self.rows})"
        )
        metadata = self.lake.load(self.lake.name(base)).metadata_location
        made = []
        for mode in (COPY_ON_WRITE, MERGE_ON_READ):
            name = f"bench.v{version}_{mode.replace('-', '_')}"
            self.spark.sql(f"CALL lake.system.register_table('{name}', '{metadata}')")
            self.spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
            # Evenly spread over the rows of the partitions in the middle.
            step, first_day = per_partition * TOUCHED // CHANGED, PARTITIONS // 2
            self.spark.sql(
                f"MERGE INTO lake.{name} t USING (SELECT id * {step} + {first_day * per_partition} AS id, "
                f"CAST(id * {step} DIV {per_partition} + {first_day} AS INT) AS day FROM RANGE({CHANGED})) s "
                f"ON t.id = s.id AND t.day = s.day WHEN MATCHED THEN UPDATE SET amount = t.amount + 1"
            )
            history = self.spark.sql(f"SELECT snapshot_id FROM lake.{name}.snapshots ORDER BY committed_at").collect()
            made.append(BenchTable(name, version, mode, *(row[0] for row in history)))
        _say(f"made the tables of version {version} in {time.perf_counter() - began:.0f} s")
        return made

    def ways(self, table: BenchTable) -> dict[str, Callable[[], Reading]]:
        ours: dict[str, Callable[[], Reading]] = {
            "dalsegno_before_after": lambda: self.by_dalsegno(table, "before_after"),
            "dalsegno_upserts": lambda: self.by_dalsegno(table, "upserts"),
        }
        if table.mode == MERGE_ON_READ:
            return ours
        return ours | {
            "changelog_view": lambda: self.by_changelog_view(table),
            "changelog_view_upserts": lambda: self.by_changelog_view(table, only=UPSERTS),
        }

    def by_dalsegno(self, table: BenchTable, changes: str) -> Reading:
        consumer = f"bench_{next(self._consumers)}"
        self.lake.set_checkpoint(table.name, consumer=consumer, to=str(table.first), reprocess=True)
        # What was written before is not this capture's to wait for.
        os.sync()

        made: list[Changes] = []

        def capture() -> str:
            made.append(self.lake.capture(table.name, consumer=consumer, changes=changes, keys=["id"]))
            return made[0].query("spark")

        # Upserts that are told by row lineage are all there is: they come without a column that says so.
        by_lineage = changes == "upserts" and table.version >= 3
        reading = self._read(capture, "'update_after'" if by_lineage else "_change_type")
        assert made[0].details["exact"] is True
        assert made[0].details["pinned"], made[0].details["pin"]
        made[0].abandon()
        return reading

    def by_changelog_view(self, table: BenchTable, only: Sequence[str] = ()) -> Reading:
        def create() -> str:
            self.spark.sql(
                f"CALL lake.system.create_changelog_view(table => '{table.name}', changelog_view => 'changelog', "
                f"options => map('start-snapshot-id', '{table.first}', 'end-snapshot-id', '{table.last}'), "
                "identifier_columns => array('id'), compute_updates => true)"
            )
            wanted = ", ".join(f"'{kind.upper()}'" for kind in only)
            return "SELECT * FROM changelog" + (f" WHERE _change_type IN ({wanted})" if only else "")

        return self._read(create, "LOWER(_change_type)")

    def by_full_diff(self, table: BenchTable) -> Reading:
        first, last = (f"SELECT * FROM lake.{table.name} VERSION AS OF {at}" for at in (table.first, table.last))
        query = (
            f"SELECT *, 'insert' AS _change_type FROM ({last} EXCEPT ALL {first}) "
            f"UNION ALL SELECT *, 'delete' AS _change_type FROM ({first} EXCEPT ALL {last})"
        )
        # Minutes: once, with the count on the clock, which hardly matters then.
        return self._read(lambda: query, "_change_type", counts=True)

    def _read(self, prepare: Callable[[], str], kind: str, *, counts: bool = False) -> Reading:
        """Run a query over all of its columns, and measure what that took."""
        before, began = self._bytes(), time.perf_counter()
        query = prepare()
        prepared = time.perf_counter() - began
        answer = self._answer(query, kind) if counts else {}
        if not counts:
            self.spark.sql(query).write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - began
        read, shuffled = (now - then for now, then in zip(self._bytes(), before, strict=True))
        return Reading(seconds, prepared, read, shuffled, answer or self._answer(query, kind))

    def _answer(self, query: str, kind: str) -> Answer:
        side = f"CASE WHEN {kind} IN ('insert', 'update_after') THEN 'added' ELSE 'removed' END"
        hashes = f"CAST(SUM(PMOD(XXHASH64({COLUMNS}), 4294967296)) AS BIGINT)"
        rows = self.spark.sql(f"SELECT {side} AS side, COUNT(*), {hashes} FROM ({query}) GROUP BY side").collect()
        return {row[0]: (row[1], row[2]) for row in rows}

    def _bytes(self) -> tuple[int, int]:
        """What Spark's only process has read from tables and written to shuffles so far."""
        session: Any = self.spark
        context, java = session.sparkContext._jsc.sc(), session._jvm.java
        context.listenerBus().waitUntilEmpty()
        executor = context.statusStore().executorList(False).head()
        counted = Path(f"/proc/{java.lang.ProcessHandle.current().pid()}/io")
        if counted.exists():
            # Spark's own count misses what Parquet reads in the background, which depends on the file.
            read = int(counted.read_text().split()[1]) - executor.totalShuffleRead()
        else:
            read = executor.totalInputBytes()
        return read, executor.totalShuffleWrite()


#: What each number must be, in words and as a test.
TARGETS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "capture_seconds": ("< 0.2", lambda value: value < 0.2),
    "vs_changelog_view_v2": ("> 1", lambda value: value > 1),
    "vs_changelog_view_v3": (">= 5, by row lineage", lambda value: value >= 5),
    "vs_full_diff": (">= 20", lambda value: value >= 20),
}


def _numbers(results: Results) -> dict[str, float | None]:
    ours = [side for side in results.readings if side.startswith("dalsegno")]
    captures = [
        median(reading.capture_seconds for reading in found)
        for side in ours
        for found in results.readings[side].values()
    ]
    v2, v3 = (f"v{version} {COPY_ON_WRITE}" for version in VERSIONS)
    whole = [results.ratio("full_diff", "dalsegno_before_after", kind) for kind in (v2, v3)]
    return {
        # The slowest of all kinds.
        "capture_seconds": max(captures),
        "vs_changelog_view_v2": results.ratio("changelog_view", "dalsegno_before_after", v2),
        "vs_changelog_view_v2_upserts": results.ratio("changelog_view_upserts", "dalsegno_upserts", v2),
        # Row lineage tells new and updated rows by one look at each; the view must still be asked for both ends.
        "vs_changelog_view_v3": results.ratio("changelog_view_upserts", "dalsegno_upserts", v3),
        "vs_changelog_view_v3_before_after": results.ratio("changelog_view", "dalsegno_before_after", v3),
        "vs_full_diff": min((ratio for ratio in whole if ratio is not None), default=None),
    }


def _show(results: Results, load: float) -> None:
    """The table for people, then one line for machines."""
    kinds = sorted({kind for found in results.readings.values() for kind in found})
    print(f"\n{'seconds, MB read + shuffled':<28}" + "".join(f"{kind:>26}" for kind in kinds))
    for side in results.readings:
        print(f"{side:<28}" + "".join(f"{_cell(results, side, kind):>26}" for kind in kinds))
    print()
    numbers, exact = _numbers(results), results.is_exact()
    met = {name: value is not None and TARGETS[name][1](value) for name, value in numbers.items() if name in TARGETS}
    for name, value in numbers.items():
        shown = "-" if value is None else f"{value:.3f}"
        verdict = "" if name not in met else "ok" if met[name] else "MISSED"
        print(f"{name:<36}{shown:>10}   {TARGETS.get(name, ('',))[0]:<24}{verdict}")
    line = {
        **{name: None if value is None else round(value, 4) for name, value in numbers.items()},
        "exact": exact,
        "seconds": _each(results, lambda side, kind: round(results.seconds(side, kind) or 0, 4)),
        "bytes_read": _each(results, lambda side, kind: results.readings[side][kind][-1].bytes_read),
        "bytes_shuffled": _each(results, lambda side, kind: results.readings[side][kind][-1].bytes_shuffled),
        "load_at_start": round(load, 2),
        "targets_met": exact and all(met.values()),
    }
    print(json.dumps(line), flush=True)


def _each(results: Results, value: Callable[[str, str], float]) -> dict[str, dict[str, float]]:
    return {side: {kind: value(side, kind) for kind in kinds} for side, kinds in results.readings.items()}


def _cell(results: Results, side: str, kind: str) -> str:
    seconds = results.seconds(side, kind)
    if seconds is None:
        return "-"
    last = results.readings[side][kind][-1]
    return f"{seconds:.2f}, {last.bytes_read / 1e6:.1f} + {last.bytes_shuffled / 1e6:.1f}"


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
