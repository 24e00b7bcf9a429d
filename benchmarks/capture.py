"""How long a capture takes, and what else there is to get the same: python -m benchmarks.capture

Tables of 100 to 1,000,000 data files are made (their metadata, that is: no data file exists), and one appended snapshot
of each is captured by dalsegno, by PyIceberg file by file, and by the talk's Java listing in a warm JVM, all on the
same SQLite catalog. Then a small append to the largest table, ranges of 1,000 snapshots, memory, and the start of the
command line. The last line is JSON.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import fresh, listing, one_by_one, ours, report, tables
from benchmarks.report import Results
from benchmarks.tables import BenchTable
from dalsegno import Lake

PARTS = ("dalsegno", "late", "snapshots", "memory", "help", "pyiceberg", "java")
SIZES = (100, 10_000, 100_000, 1_000_000)
ROUNDS = 7
ROUNDS_OF_LONG = 3
#: Beyond this, going file by file takes minutes; the table then shows ten times the seconds of a tenth of the files.
MOST_FILE_BY_FILE = 100_000
#: Runs of a small table before Java is measured.
WARM_UP = 40


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of data files")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    options = parser.parse_args(arguments)
    parts, sizes = options.only.split(","), sorted(map(int, options.sizes.split(",")))
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        _say("other programs keep this machine busy: expect times that are too long")
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-capture-", dir=options.folder) as folder:
        report.show(_measure(Path(folder).resolve(), parts, sizes))


def _measure(folder: Path, parts: Sequence[str], sizes: Sequence[int]) -> Results:
    # All defaults: store, catalog and warehouse in this folder.
    settings = folder / "dalsegno.toml"
    settings.touch()
    results = Results()
    with Lake.open(settings) as lake:
        lake.catalog("lake").pyiceberg.create_namespace(tables.NAMESPACE)
        made = _make_tables(lake, folder / "tables", parts, sizes)
        if "dalsegno" in parts:
            _measure_ours(lake, made.wide, results)
        if "late" in parts:
            _measure_late(lake, made.late[0], results)
        if "snapshots" in parts:
            _measure_long(lake, made.long, results)
        if "memory" in parts:
            _say("peak memory")
            results.numbers["peak_memory_mb"] = fresh.peak_memory_mb(settings, made.wide[-1])
            peaks = [fresh.peak_memory_mb(settings, table) for table in made.long]
            results.numbers["peak_memory_1000_snapshots_mb"] = max(peaks)
        if "help" in parts:
            _say("dalsegno --help")
            results.numbers["help_seconds"] = fresh.help_seconds()
        small_enough = [table for table in made.wide if table.files <= MOST_FILE_BY_FILE]
        if "pyiceberg" in parts:
            _measure_pyiceberg(lake, small_enough, results)
        if "java" in parts:
            _measure_java(lake, small_enough, folder, results)
    return results


@dataclass(frozen=True)
class _Made:
    """The tables that the chosen parts need, and no others."""

    wide: list[BenchTable]
    late: list[BenchTable]
    long: list[BenchTable]


def _make_tables(lake: Lake, folder: Path, parts: Sequence[str], sizes: Sequence[int]) -> _Made:
    began = time.perf_counter()
    catalog, needed = lake.catalog("lake").pyiceberg, set(parts)
    needs_wide, needs_long = needed & {"dalsegno", "memory", "pyiceberg", "java"}, needed & {"snapshots", "memory"}
    made = _Made(
        wide=[tables.make_wide(catalog, folder, size) for size in sizes if needs_wide],
        late=[tables.make_late(catalog, folder, sizes[-1])] if "late" in needed else [],
        long=[tables.make_long(catalog, folder, rewritten=which) for which in (False, True) if needs_long],
    )
    _say(f"made {len(made.wide + made.late + made.long)} tables in {time.perf_counter() - began:.0f} s")
    return made


def _measure_ours(lake: Lake, wide: Sequence[BenchTable], results: Results) -> None:
    # The first capture of a process pays for imports and connections.
    ours.timed_capture(lake, wide[0])[1].abandon()
    for number in range(ROUNDS):
        # All sizes in each round, so that a busy moment of the machine does not meet one size alone.
        for table in wide:
            for side, start in (("dalsegno", None), ("dalsegno_earliest", "earliest")):
                seconds, changes = ours.timed_capture(lake, table, start=start)
                results.add(side, table.files, seconds)
                changes.abandon()
                _say(f"round {number + 1} of {ROUNDS}: {side}, {table.files:,} files: {seconds * 1000:.0f} ms")


def _measure_late(lake: Lake, table: BenchTable, results: Results) -> None:
    measured = []
    for _ in range(ROUNDS):
        seconds, changes = ours.timed_capture(lake, table)
        measured.append(seconds)
        changes.abandon()
    results.numbers["late_seconds"] = median(measured)
    _say(f"{table.files:,} files added to the largest table: {median(measured) * 1000:.0f} ms")


def _measure_long(lake: Lake, long: Sequence[BenchTable], results: Results) -> None:
    finished = []
    for name, table in zip(("snapshots_1000_seconds", "rewritten_1000_seconds"), long, strict=True):
        measured = []
        for _ in range(ROUNDS_OF_LONG):
            seconds, changes = ours.timed_capture(lake, table)
            measured.append(seconds)
            finished.append(changes)
            _say(f"1,000 snapshots, {table.name}: {seconds:.2f} s")
        results.numbers[name] = median(measured)
    locations = tables.manifest_lists(lake.catalog("lake").pyiceberg, long[0])
    results.numbers["manifest_lists_1000_seconds"] = ours.seconds_to_read_lists(lake, long[0], locations)
    _say(f"their manifest lists, read once: {results.numbers['manifest_lists_1000_seconds']:.2f} s")
    # Not before: making files right after deleting thousands is slow on ext4, and no capture does that.
    for changes in finished:
        changes.abandon()


def _measure_pyiceberg(lake: Lake, wide: Sequence[BenchTable], results: Results) -> None:
    catalog = lake.catalog("lake").pyiceberg
    one_by_one.seconds_to_append(catalog, wide[0])
    for table in wide:
        for _ in range(1 if table.files > 10_000 else 3):
            seconds = one_by_one.seconds_to_append(catalog, table)
            results.add("pyiceberg", table.files, seconds)
            _say(f"PyIceberg, {table.files:,} files: {seconds:.2f} s")


def _measure_java(lake: Lake, wide: Sequence[BenchTable], folder: Path, results: Results) -> None:
    # A JVM is as fast as it gets once it has compiled what runs often: first the small, then the larger ones.
    warm_up = [*([wide[0]] * WARM_UP), *(table for table in wide[1:] for _ in range(3))]
    runs = [table for table in wide for _ in range(5)]
    _say("Java: compiling, and warming up")
    try:
        timed = listing.seconds_to_append(lake.settings.catalog("lake"), [*warm_up, *runs], folder)
        for number, seconds in enumerate(timed):
            if number >= len(warm_up):
                table = runs[number - len(warm_up)]
                results.add("java", table.files, seconds)
                _say(f"Java, {table.files:,} files: {seconds:.2f} s")
    except listing.NoCompiler as error:
        _say(f"Java is not measured: {error}")


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
