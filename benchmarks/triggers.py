"""What it costs to watch a thousand tables, and how soon a commit starts a run: python -m benchmarks.triggers

A SQL catalog with 1,000 tables, each watched by a workflow of its own, and one node that does nothing but watch them
(``dalsegno server --roles triggers``, every 5 seconds). First nothing happens for a while; then somebody commits to one
table after the other, with PyIceberg, and each commit has to start a run. Measured are the processor's time of the
node, as a share of one core, and the time from a commit's end until its run is made. What the node does besides, such
as measuring how far consumers are behind, is in a thread of its own: without it is what watching takes. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import pyarrow as pa

from dalsegno import Lake
from dalsegno.clock import utc_now
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings, load
from dalsegno.store import Store, run_tables, runs
from tests.callers import admin
from tests.services.postgres import running_postgres

TABLES, COMMITS = 1_000, 60
#: Seconds in which nothing happens, and between two commits.
IDLE, PAUSE = 60.0, 1.0
#: How long to wait for runs that do not come.
_PATIENCE = 120.0
SCHEMA = pa.schema([("id", pa.int64())])
#: The server itself, which says in a file which of its threads looks after other things.
PROGRAM = """
import pathlib, threading, time
from dalsegno.cli import main

def tell():
    while not (found := [each for each in threading.enumerate() if each.name == "upkeep"]):
        time.sleep(0.1)
    pathlib.Path("upkeep").write_text(str(found[0].native_id))

threading.Thread(target=tell, daemon=True).start()
main()
"""
WORKFLOW = """
Trigger: {{incremental: {{tables: [db.t{number}]}}}}
Workflow:
  id: watch.t{number}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [db.t{number}]}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triggers", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--commits", type=int, default=COMMITS)
    parser.add_argument("--idle", type=float, default=IDLE, metavar="SECONDS")
    parser.add_argument("--postgres", action="store_true", help="catalog and store in PostgreSQL, not in SQLite")
    chosen = parser.parse_args(arguments)
    figures = measured(chosen.tables, chosen.commits, chosen.idle, is_on_postgres=chosen.postgres)
    database = "postgres" if chosen.postgres else "sqlite"
    print(json.dumps({"tables": chosen.tables, "catalog": database, **figures}))


def measured(
    tables: int = TABLES, commits: int = COMMITS, idle: float = IDLE, *, is_on_postgres: bool = False
) -> dict[str, float]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="dalsegno-triggers-")))
        settings = _settings(folder, stack, is_on_postgres=is_on_postgres)
        _say(f"{tables} tables are made, and as many workflows")
        with Lake.open(settings) as lake:
            _make(lake, tables)
            return _measured(lake, folder, tables, commits, idle)


def _settings(folder: Path, stack: ExitStack, *, is_on_postgres: bool) -> Settings:
    store, catalog = f"sqlite:///{folder}/dalsegno.db", f"sqlite:///{folder}/catalog.db"
    if is_on_postgres:
        server = stack.enter_context(running_postgres())
        store, catalog = server.url(server.create_database()), server.url(server.create_database())
    text = f'store = "{store}"\n[catalogs.lake]\nuri = "{catalog}"\nwarehouse = "{folder}/warehouse"\n'
    (folder / "dalsegno.toml").write_text(text, encoding="utf-8")
    return load(folder / "dalsegno.toml", environment={})


def _make(lake: Lake, count: int) -> None:
    """Tables that are processed up to their head, and workflows that watch them."""
    catalog = lake.catalog("lake").pyiceberg
    catalog.create_namespace("db")
    operations = Operations(Store.open(lake.settings.store), lake.settings, admin("benchmark"))
    for number in range(count):
        catalog.create_table(f"db.t{number}", SCHEMA)
        lake.set_checkpoint(f"db.t{number}", consumer=f"watch.t{number}", to="latest")
        operations.workflows.push(WORKFLOW.format(number=number))
    operations.close()


def _measured(lake: Lake, folder: Path, tables: int, commits: int, idle: float) -> dict[str, float]:
    with _node(folder) as node:
        # Its first look loads everything, and is over when it has started what was committed before.
        _latencies(lake, dict(_commit(lake, [tables - 1])))
        _say(f"nothing happens for {idle:.0f} s")
        upkeep = f"{node}/task/{(folder / 'upkeep').read_text(encoding='utf-8')}"
        at_rest, besides_at_rest = _shares([str(node), upkeep], lambda: time.sleep(idle))
        _say(f"{commits} commits")
        committed: dict[str, datetime] = {}
        chosen = random.Random(20261116).sample(range(tables - 1), min(commits, tables - 1))  # noqa: S311 - no secret
        busy, besides = _shares([str(node), upkeep], lambda: committed.update(_commit(lake, chosen)))
        seconds = _latencies(lake, committed)
        memory = _memory_mb(node)
    return {
        "interval_seconds": lake.settings.trigger_poll_seconds,
        "core_percent_idle": round(at_rest - besides_at_rest, 2),
        "core_percent_with_commits": round(busy - besides, 2),
        "core_percent_of_whole_node_idle": round(at_rest, 2),
        "core_percent_of_whole_node_with_commits": round(busy, 2),
        "commits": len(seconds),
        "trigger_p50_seconds": round(median(seconds), 2),
        "trigger_p95_seconds": round(quantiles(seconds, n=20, method="inclusive")[-1], 2),
        "trigger_max_seconds": round(max(seconds), 2),
        "memory_mb": round(memory, 1),
    }


@contextmanager
def _node(folder: Path) -> Iterator[int]:
    """A process that watches; its id."""
    command = [sys.executable, "-c", PROGRAM, "server", "--roles", "triggers", "--settings", "dalsegno.toml"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _commit(lake: Lake, numbers: Sequence[int]) -> Iterator[tuple[str, datetime]]:
    """Append to one table after the other; the workflow that has to run, and when the commit was done."""
    chance = random.Random(20261116)  # noqa: S311 - no secret
    catalog = lake.catalog("lake").pyiceberg
    for number in numbers:
        time.sleep(chance.uniform(0.5, 1.5) * PAUSE)
        catalog.load_table(f"db.t{number}").append(pa.table({"id": [number]}, schema=SCHEMA))
        yield f"watch.t{number}", utc_now()


def _latencies(lake: Lake, committed: dict[str, datetime]) -> list[float]:
    """Seconds from each commit to its run; all of them come."""
    patience = time.monotonic() + _PATIENCE
    while True:
        with lake.store.database.reading() as connection:
            found = runs.run_rows(connection, run_tables.runs.c.workflow_id.in_(list(committed)))
        if len(found) >= len(committed):
            return [(row["created_at"] - committed[row["workflow_id"]]).total_seconds() for row in found]
        if time.monotonic() > patience:
            raise SystemExit(f"{len(committed)} commits have started {len(found)} runs.")
        time.sleep(0.2)


def _shares(tasks: Sequence[str], happening: Callable[[], None]) -> list[float]:
    """How many percent of one core each process, or thread of one, uses meanwhile."""
    began, worked = time.monotonic(), [_processor_seconds(task) for task in tasks]
    happening()
    seconds = time.monotonic() - began
    return [100 * (_processor_seconds(task) - before) / seconds for task, before in zip(tasks, worked, strict=True)]


def _processor_seconds(task: str) -> float:
    # Behind the name, which may hold anything: the 12th and the 13th are user and system time.
    fields = Path(f"/proc/{task}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
