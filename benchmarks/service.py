"""What the service does under load, and when a node dies: python -m benchmarks.service

Two nodes, `dalsegno server` as anybody starts it, on a PostgreSQL of their own. First as many runs of ten steps as they
can take; then a steady load, for which it is measured how long a run waits from being asked for to the beginning of its
first step, and how the nodes' memory grows; then a node is killed in the middle of a job, once as if the other were on
another machine. At last a thousand tables are watched, as in `benchmarks.triggers`. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import func, select

from benchmarks import triggers
from benchmarks.engine_workflows import chain
from benchmarks.progress import say
from dalsegno.clock import utc_now
from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.store import Store, nodes
from dalsegno.store.run_tables import runs, steps
from tests.services.postgres import running_postgres

STEPS = 10
#: How many runs are open when as much as possible is measured, and for how long.
OPEN, FULL_SECONDS = 60, 30
#: Of the steady load.
RUNS_PER_SECOND = 10
MINUTES = 60.0
TARGETS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "steps_per_second": (">= 100", lambda found: found >= 100),
    "start_p50_ms": ("<= 50", lambda found: found <= 50),
    "start_p99_ms": ("<= 250", lambda found: found <= 250),
    "takeover_seconds": ("<= 30", lambda found: found <= 30),
    "idle_memory_mb": ("<= 200", lambda found: found <= 200),
    "memory_growth_mb": ("none", lambda found: found < 5),
    "trigger_p95_seconds": ("<= 5.5", lambda found: found <= 5.5),
    "core_percent_idle": ("<= 5", lambda found: found <= 5),
}


@dataclass
class Node:
    """One `dalsegno server`."""

    root: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    process: Any = None

    def start(self) -> Node:
        # Each on a port of its own.
        here = {"DALSEGNO_STORE": self.url, "DALSEGNO_LISTEN": "127.0.0.1:0"}
        environment = {**os.environ, **here, **self.environment}
        command = [str(Path(sys.executable).parent / "dalsegno"), "server"]
        with (self.root / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=log, stderr=log)
        return self

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return int(kilobytes) / 1024

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


@dataclass(frozen=True)
class Place:
    root: Path
    url: str
    operations: Operations

    @contextmanager
    def nodes(self, *environments: dict[str, str]) -> Iterator[list[Node]]:
        found = [Node(self.root, self.url, environment).start() for environment in environments]
        try:
            self.wait(lambda: self._number_of_nodes() >= len(found))
            yield found
        finally:
            for node in found:
                node.stop()

    def _number_of_nodes(self) -> int:
        with self.operations.store.database.reading() as connection:
            return len(nodes.node_rows(connection))

    def ended_steps(self) -> int:
        with self.operations.store.database.reading() as connection:
            found = select(func.count()).select_from(steps).where(steps.c.status == "SUCCEEDED")
            return int(connection.execute(found).scalar_one())

    def open_runs(self) -> int:
        with self.operations.store.database.reading() as connection:
            found = select(func.count()).select_from(runs).where(runs.c.status.in_(["CREATED", "IN_PROGRESS"]))
            return int(connection.execute(found).scalar_one())

    def wait(self, until: Callable[[], bool], seconds: float = 120) -> float:
        """How long it took."""
        began = time.perf_counter()
        while not until():
            if time.perf_counter() - began > seconds:
                raise TimeoutError("waited in vain; see server.log")
            time.sleep(0.01)
        return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of the steady load; the target is for an hour")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to keep logs, for a while")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, float] = {}
    with TemporaryDirectory(prefix="bench-service-", dir=options.folder) as name, running_postgres() as postgres:
        root, url = Path(name).resolve(), postgres.url(postgres.create_database())
        settings = load(working_folder=root, environment={}, store=url)
        with Operations(Store.open(url), settings, local_caller()) as operations:
            place = Place(root, url, operations)
            parallel = {"rule": "PARALLEL", "workflow_concurrency": 1000}
            operations.workflows.push(chain("load", STEPS, run_strategy=parallel))
            _measure_idle(place, numbers)
            with place.nodes({}, {}) as nodes:
                _measure_full(place, numbers)
                _measure_steady(place, nodes, options.minutes * 60, numbers)
            _measure_takeover(place, numbers)
    numbers |= triggers.measured(is_on_postgres=True)
    _show(numbers)


def _measure_idle(place: Place, numbers: dict[str, float]) -> None:
    with place.nodes({}) as [node]:
        time.sleep(10)
        numbers["idle_memory_mb"] = round(node.memory_mb(), 1)
        say(f"an idle node has {numbers['idle_memory_mb']} MB")


def _measure_full(place: Place, numbers: dict[str, float]) -> None:
    """As many steps as two nodes can do: there are always runs that wait."""
    began, first = time.perf_counter(), place.ended_steps()
    while time.perf_counter() - began < FULL_SECONDS:
        for _ in range(OPEN - place.open_runs()):
            place.operations.runs.start("load")
    numbers["steps_per_second"] = round((place.ended_steps() - first) / (time.perf_counter() - began), 1)
    place.wait(lambda: place.open_runs() == 0)
    say(f"{numbers['steps_per_second']} steps per second")


def _measure_steady(place: Place, nodes: list[Node], seconds: float, numbers: dict[str, float]) -> None:
    since = utc_now()
    began, number, memory = time.perf_counter(), 0, 0.0
    while (now := time.perf_counter() - began) < seconds:
        place.operations.runs.start("load")
        number += 1
        if not memory and now > min(60, seconds / 5):
            # What is kept in memory by design is there by now.
            memory = sum(node.memory_mb() for node in nodes)
        if number % (60 * RUNS_PER_SECOND) == 0:
            say(f"{now / 60:5.1f} minutes, {sum(node.memory_mb() for node in nodes):7.1f} MB, {_waits(place, since)}")
        time.sleep(max(number / RUNS_PER_SECOND - (time.perf_counter() - began), 0))
    place.wait(lambda: place.open_runs() == 0)
    numbers["memory_growth_mb"] = round(sum(node.memory_mb() for node in nodes) - memory, 1)
    numbers["start_p50_ms"], numbers["start_p99_ms"] = _percentiles(place, since)
    numbers["minutes"] = round(seconds / 60, 1)


def _waits(place: Place, since: Any) -> str:
    median, most = _percentiles(place, max(since, utc_now() - timedelta(minutes=1)))
    return f"starts after {median} ms, 99 in 100 within {most} ms"


def _percentiles(place: Place, since: Any) -> tuple[float, float]:
    """Milliseconds from a run's being asked for to the beginning of its first step."""
    first = select(steps.c.run_id, func.min(steps.c.started_at).label("at")).group_by(steps.c.run_id).subquery()
    found = select(runs.c.created_at, first.c.at).join(first, first.c.run_id == runs.c.id)
    with place.operations.store.database.reading() as connection:
        rows = connection.execute(found.where(runs.c.created_at >= since, first.c.at.is_not(None))).all()
    waits = [(row.at - row.created_at).total_seconds() * 1000 for row in rows]
    cuts = quantiles(waits, n=100)
    return round(cuts[49], 1), round(cuts[98], 1)


LONG = """
Workflow:
  id: long
  jobs:
    - job: {id: wait, type: Shell, shell: {script: sleep 300}}
"""


def _measure_takeover(place: Place, numbers: dict[str, float]) -> None:
    place.operations.workflows.push(LONG)
    for name, elsewhere in (("takeover_same_machine_seconds", {}), ("takeover_seconds", {"DALSEGNO_MACHINE": "b"})):
        numbers[name] = round(_takeover(place, elsewhere), 1)
        say(f"{name} {numbers[name]}")


def _takeover(place: Place, elsewhere: dict[str, str]) -> float:
    """Seconds from the death of a node until another has its step."""
    with place.nodes({}) as [first]:
        run = place.operations.runs.start("long")
        place.wait(lambda: _owner(place, run.id) is not None)
        owner = _owner(place, run.id)
        with place.nodes(elsewhere):
            first.kill()
            seconds = place.wait(lambda: _owner(place, run.id) not in (None, owner))
            place.operations.runs.kill(run.id)
            place.wait(lambda: place.open_runs() == 0)
    return seconds


def _owner(place: Place, run_id: str) -> str | None:
    with place.operations.store.database.reading() as connection:
        found = select(steps.c.lease_owner).where(steps.c.run_id == run_id, steps.c.lease_until.is_not(None))
        return connection.execute(found).scalar()


def _show(numbers: dict[str, float]) -> None:
    for name, (wanted, is_reached) in TARGETS.items():
        verdict = "ok" if is_reached(numbers[name]) else "MISSED"
        print(f"{name:<30}{numbers[name]:>10}   {wanted:<10} {verdict}")
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
