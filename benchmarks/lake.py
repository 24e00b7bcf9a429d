"""What captures cost where each request to the store takes 30 ms: python -m benchmarks.lake

Captures of 1, 100 and 1,000 snapshots of one file each, with manifests as they were written and rewritten into one, on
an S3 server of this machine (versitygw, built with Go) behind a proxy that counts requests and delays each. Measured
are captures and commits with an empty cache, ``before_after``, a look at 1,000 watched tables, and the CPU time of a
cold ``dalsegno capture``; beside them PyIceberg's planning of a scan of the same files, and Spark's count of the same
range, for which it reads metadata only. *Rounds* are requests that wait for each other. The catalog is SQLite on this
machine: its calls are counted apart. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import event

from benchmarks import tables
from benchmarks.progress import say, warn_if_busy
from benchmarks.tables import NAMESPACE, BenchTable, Builder
from dalsegno import Lake
from dalsegno.triggers.table_triggers.capture import WatchedTables
from dalsegno.triggers.table_triggers.model import Watch
from tests.lakes.store_proxy import StoreProxy, rounds, running_store_proxy
from tests.lakes.versitygw import go, running_versitygw

DELAY_MS = 30
SNAPSHOTS = (1, 100, 1_000)
WATCHED = 1_000
COLD_ROUNDS = 3
_CONSUMER = "bench"
_WAREHOUSE = "wh"
#: What the issue of this benchmark asks for.
TARGETS: dict[str, float] = {
    "rounds_capture_1": 8,
    "rounds_commit_1": 5,
    "capture_1000_seconds": 4,
    "commit_1000_seconds": 1.5,
    "vs_spark_metadata_1000": 1,
    "cold_cpu_seconds": 1.5,
}


@dataclass
class Measured:
    """What happened in a block."""

    seconds: float = 0.0
    requests: int = 0
    rounds: int = 0
    catalog_calls: int = 0


@dataclass
class Bench:
    """A lake behind the proxy, and what was found out."""

    folder: Path
    lake: Lake
    proxy: StoreProxy
    bucket: str
    delay: float
    numbers: dict[str, Any] = field(default_factory=dict)
    catalog_calls: int = 0

    @property
    def objects(self) -> Path:
        """Where the server keeps the files of tables."""
        return self.folder / "objects" / self.bucket / _WAREHOUSE / NAMESPACE

    @contextmanager
    def measured(self) -> Iterator[Measured]:
        found = Measured()
        self.proxy.delay(self.delay)
        self.proxy.taken()
        calls, began = self.catalog_calls, time.perf_counter()
        try:
            yield found
        finally:
            found.seconds = time.perf_counter() - began
            found.catalog_calls = self.catalog_calls - calls
            seen = self.proxy.taken()
            found.requests, found.rounds = len(seen), rounds(seen)
            self.proxy.delay(0)

    def note(self, what: str, found: Measured) -> None:
        self.numbers |= {
            f"{what}_seconds": round(found.seconds, 3),
            f"requests_{what}": found.requests,
            f"rounds_{what}": found.rounds,
        }
        say(
            f"{what:<26} {found.seconds:7.2f} s  {found.requests:>5} requests, {found.rounds:>3} in sequence; "
            f"calls of the catalog: {found.catalog_calls}"
        )

    def forget_cache(self) -> None:
        shutil.rmtree(self.lake.settings.metadata_cache_path, ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__.splitlines()[0])
    parser.add_argument("--delay", type=float, default=DELAY_MS, metavar="MS", help="added to each request")
    parser.add_argument("--snapshots", default=",".join(map(str, SNAPSHOTS)), help="lengths of ranges")
    parser.add_argument("--watched", type=int, default=WATCHED, help="tables that are looked at")
    parser.add_argument("--without-spark", action="store_true", help="leave the comparison with Spark out")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    chosen = parser.parse_args(arguments)
    if go() is None:
        raise SystemExit("versitygw, the S3 server of this benchmark, is built with Go: install it first.")
    warn_if_busy()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    sizes = sorted(map(int, chosen.snapshots.split(",")))
    with TemporaryDirectory(prefix="bench-lake-", dir=chosen.folder) as folder, ExitStack() as stack:
        bench = _opened(Path(folder).resolve(), stack, chosen.delay / 1000)
        made = _make_tables(bench, sizes)
        for size in sizes:
            for is_rewritten in (False, True):
                _measure_ours(bench, made[size, is_rewritten], size, "_rewritten" if is_rewritten else "")
        _measure_before_after(bench, made[sizes[-1], False], sizes[-1])
        _measure_watched(bench, chosen.watched)
        _measure_cold(bench, made[sizes[0], False])
        _measure_pyiceberg(bench, made, sizes)
        if not chosen.without_spark:
            _measure_spark(bench, made, sizes)
    _judge(bench.numbers)
    print(json.dumps({"delay_ms": chosen.delay, **bench.numbers}))


def _opened(folder: Path, stack: ExitStack, delay: float) -> Bench:
    server = stack.enter_context(running_versitygw(folder))
    proxy = stack.enter_context(running_store_proxy(server, folder))
    bucket = server.create_bucket()
    properties = "\n".join(
        f"{json.dumps(name)} = {json.dumps(value)}" for name, value in proxy.store.properties.items()
    )
    (folder / "dalsegno.toml").write_text(
        f'[catalogs.lake]\nuri = "sqlite:///catalog.db"\nwarehouse = "s3://{bucket}/{_WAREHOUSE}"\n'
        f"[catalogs.lake.properties]\n{properties}\n",
        encoding="utf-8",
    )
    lake = stack.enter_context(Lake.open(folder / "dalsegno.toml"))
    bench = Bench(folder, lake, proxy, bucket, delay)
    catalog: Any = lake.catalog("lake").pyiceberg
    catalog.create_namespace(NAMESPACE)

    @event.listens_for(catalog.engine, "before_cursor_execute")
    def count(*_: Any) -> None:
        bench.catalog_calls += 1

    return bench


def _make_tables(bench: Bench, sizes: Sequence[int]) -> dict[tuple[int, bool], BenchTable]:
    say("making tables")
    location = f"s3://{bench.bucket}/{_WAREHOUSE}/{NAMESPACE}"
    catalog = bench.lake.catalog("lake").pyiceberg
    return {
        (size, which): tables.make_long(
            catalog, bench.objects, rewritten=which, snapshots=size, files=1, location=location
        )
        for size in sizes
        for which in (False, True)
    }


def _measure_ours(bench: Bench, table: BenchTable, size: int, suffix: str) -> None:
    bench.lake.set_checkpoint(table.name, consumer=_CONSUMER, to=str(table.after))
    bench.forget_cache()
    with bench.measured() as found:
        changes = bench.lake.capture(table.name, consumer=_CONSUMER)
    # A fast wrong answer is worth nothing.
    assert changes.files == table.files, f"{changes.files} of {table.files} files captured"
    assert changes.details["pinned"], changes.details["pin"]
    assert changes.partitions, "partitions are listed by default"
    bench.note(f"capture_{size}{suffix}", found)
    with bench.measured() as found:
        done = changes.commit()
    assert not done.left_over, done.left_over
    bench.note(f"commit_{size}{suffix}", found)


def _measure_before_after(bench: Bench, table: BenchTable, size: int) -> None:
    bench.lake.set_checkpoint(table.name, consumer="both", to=str(table.after))
    bench.forget_cache()
    with bench.measured() as found:
        changes = bench.lake.capture(table.name, consumer="both", changes="before_after")
    assert changes.files == table.files
    bench.note(f"before_after_{size}", found)
    changes.abandon()


def _measure_watched(bench: Bench, count: int) -> None:
    """The first look loads every table; the next ones only ask the catalog."""
    say(f"making {count} tables to watch")
    catalog = bench.lake.catalog("lake").pyiceberg
    watches = []
    for number in range(count):
        builder = Builder(
            bench.objects / f"watched_{number}", f"s3://{bench.bucket}/{_WAREHOUSE}/{NAMESPACE}/watched_{number}"
        )
        builder.append(1)
        builder.register(catalog, f"watched_{number}")
        watches.append(Watch(bench.lake.name(f"{NAMESPACE}.watched_{number}"), f"watcher_{number}"))
    watching = WatchedTables(bench.lake.context)
    for what in ("first_look", "look"):
        with bench.measured() as found:
            assert len(watching.look(watches)) == count
        bench.note(f"{what}_{count}", found)


def _measure_cold(bench: Bench, table: BenchTable) -> None:
    """CPU time of a process that captures one snapshot; the best, because others use the machine as well."""
    bench.proxy.delay(bench.delay)
    measured = []
    for number in range(COLD_ROUNDS + 1):
        consumer = f"cold{number}"
        bench.lake.set_checkpoint(table.name, consumer=consumer, to=str(table.after))
        bench.forget_cache()
        command = [sys.executable, "-c", "from dalsegno.cli import main; main()", "capture", table.name]
        measured.append(_cpu_seconds([*command, "--consumer", consumer], bench.folder))
    bench.proxy.delay(0)
    # The first one compiles modules.
    bench.numbers["cold_cpu_seconds"] = round(min(measured[1:]), 2)
    say(f"CPU time of a cold capture: {bench.numbers['cold_cpu_seconds']} s")


def _cpu_seconds(command: Sequence[str], folder: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, env=environment)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{(folder / 'output').read_text()}")
    return used.ru_utime + used.ru_stime


def _measure_pyiceberg(bench: Bench, made: dict[tuple[int, bool], BenchTable], sizes: Sequence[int]) -> None:
    """PyIceberg has no incremental scan: it plans one of the whole table, which is the range and 100 files more."""
    for size in sizes:
        table = made[size, False]
        with bench.measured() as found:
            loaded = bench.lake.catalog("lake").pyiceberg.load_table(table.name)
            planned = list(loaded.scan().plan_files())
        assert len(planned) == table.files + tables.FILES_AT_CHECKPOINT
        bench.note(f"pyiceberg_plan_{size}", found)


def _measure_spark(bench: Bench, made: dict[tuple[int, bool], BenchTable], sizes: Sequence[int]) -> None:
    from dalsegno.spark.jars import SQLITE_JDBC, bundles  # noqa: PLC0415 - needs the extra
    from tests.local_spark import local_session  # noqa: PLC0415

    conf = bench.lake.catalog("lake").spark_configuration()
    spark = local_session(conf, app_name="bench-lake", packages=(SQLITE_JDBC, *bundles(conf)))

    def count(table: BenchTable) -> Callable[[], int]:
        options = {"start-snapshot-id": str(table.after), "end-snapshot-id": str(table.upto)}
        return lambda: int(spark.read.options(**options).table(f"lake.{table.name}").count())

    # The first query loads classes.
    count(made[sizes[0], False])()
    for size in sizes:
        table = made[size, False]
        spark.sql(f"REFRESH TABLE lake.{table.name}")
        with bench.measured() as found:
            assert count(table)() > 0
        bench.note(f"spark_metadata_{size}", found)
        ours = bench.numbers[f"capture_{size}_seconds"]
        bench.numbers[f"vs_spark_metadata_{size}"] = round(ours / found.seconds, 3)
    spark.stop()


def _judge(numbers: dict[str, Any]) -> None:
    for name, most in TARGETS.items():
        if name in numbers:
            is_met = numbers[name] <= most
            say(f"{name:<26} {numbers[name]:>8}  at most {most}: {'yes' if is_met else 'NO'}")


if __name__ == "__main__":
    main()
