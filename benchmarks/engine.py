"""What the engine adds to the steps it runs, and what Dagster adds to the same: python -m benchmarks.engine

Steps that do nothing, on SQLite in a folder of its own, every commit synced to the disk: 40 in sequence, 1,000 in
parallel, a foreach of 1,098 iterations at concurrency 100, and 100 workflows of three steps at once. A measurement
goes from asking for the run until its end is stored. Dagster runs the same chain of 40, in turns with ours, in a warm
process and on SQLite as well: in-process, and with its default executor, which starts a process for every step. Then
the memory of one run of 10,000 steps, and a Spark SQL step on a warm server, less its query in an open session. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from benchmarks import beside_dagster, engine_memory
from benchmarks.beside_dagster import Chain
from benchmarks.engine_workflows import chain, foreach, noops, place, spark
from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.spark.connect import Session
from dalsegno.spark.server import running_servers, stop
from dalsegno.steps.spark.sessions import server_address

CHAIN, PARALLEL, ITERATIONS, CONCURRENCY, RUNS, STEPS_OF_RUN = 40, 1000, 1098, 100, 100, 3
ROUNDS, ROUNDS_OF_SPARK = 5, 10
#: Rounds before that are not counted.
WARM_UP = 2
#: Small, and a job with a shuffle all the same: what a step adds would be lost in the ups and downs of a long one.
QUERY = "SELECT count(*) AS rows, sum(id % 7) AS total FROM range(0, 1000, 1, 1)"


@dataclass
class Results:
    """The seconds of every round, by what was measured, and the rest by its name in the last line."""

    rounds: dict[str, list[float]] = field(default_factory=dict)
    #: Seconds of this process's processors, of the same rounds: what a busy machine does not change much.
    processor: dict[str, list[float]] = field(default_factory=dict)
    numbers: dict[str, float | None] = field(default_factory=dict)

    def measure(self, what: str, run: Callable[[], None]) -> None:
        began, worked = time.perf_counter(), time.process_time()
        run()
        self.processor.setdefault(what, []).append(time.process_time() - worked)
        self.add(what, time.perf_counter() - began)

    def add(self, what: str, seconds: float) -> None:
        self.rounds.setdefault(what, []).append(seconds)
        _say(f"{what:<24}{seconds:9.3f} s")

    def seconds(self, what: str) -> float | None:
        """The median of ours, the best of the others: a busy machine must not make us look better than we are."""
        found = self.rounds.get(what)
        if not found:
            return None
        return min(found) if what.startswith("dagster") else median(found)

    def each_ms(self, what: str, count: int) -> float | None:
        seconds = self.seconds(what)
        return None if seconds is None else seconds / count * 1000

    def ratio(self, slower: str, faster: str) -> float | None:
        above, below = self.seconds(slower), self.seconds(faster)
        return above / below if above and below else None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without-dagster", action="store_true", help="its default executor alone takes minutes")
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to keep the databases, for a while")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    if load > (os.cpu_count() or 1) / 2:
        _say("other programs keep this machine busy: expect times that are too long")
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-engine-", dir=options.folder) as name:
        folder = Path(name).resolve()
        dagster: AbstractContextManager[Chain | None] = nullcontext()
        if not options.without_dagster:
            dagster = beside_dagster.opened(folder / "dagster")
        results = Results()
        with place(folder / "ours") as operations, dagster as dagsters_chain:
            _measure_engine(operations, dagsters_chain, options.rounds, results)
        _say(f"one run of {engine_memory.LAST:,} steps, in a process of its own")
        results.numbers["memory_growth_mb"] = engine_memory.growth_mb(folder / "memory")
        if not options.without_spark:
            with place(folder / "spark") as operations:
                _measure_spark(operations, results)
        _show(results, load)


def _measure_engine(operations: Operations, dagsters_chain: Chain | None, rounds: int, results: Results) -> None:
    operations.workflows.push(chain("sequence", CHAIN))
    operations.workflows.push(noops("parallel", PARALLEL))
    operations.workflows.push(foreach("foreach", ITERATIONS, CONCURRENCY))
    small = chain("small", STEPS_OF_RUN, run_strategy={"rule": "PARALLEL", "workflow_concurrency": RUNS})
    operations.workflows.push(small)
    # The first run of a process pays for imports, connections and statements.
    for _ in range(WARM_UP):
        _finish(operations, "sequence")
    for number in range(rounds):
        _say(f"round {number + 1} of {rounds}")
        results.measure("sequence", lambda: _finish(operations, "sequence"))
        if dagsters_chain:
            results.add("dagster_in_process", dagsters_chain("in_process"))
        results.measure("parallel", lambda: _finish(operations, "parallel"))
        results.measure("foreach", lambda: _finish(operations, "foreach"))
        results.measure("workflows", lambda: _finish_all(operations, "small"))
    if dagsters_chain:
        _say("Dagster's default executor, once: this takes minutes")
        results.add("dagster_default", dagsters_chain("default"))
        # The machine may be busier or less busy by now.
        results.measure("sequence", lambda: _finish(operations, "sequence"))


def _finish(operations: Operations, workflow_id: str) -> None:
    run = operations.runs.finish(operations.runs.start(workflow_id).id)
    assert run.status is RunStatus.SUCCEEDED, run


def _finish_all(operations: Operations, workflow_id: str) -> None:
    started = [operations.runs.start(workflow_id) for _ in range(RUNS)]
    operations.runs.work()
    ended = operations.runs.list(workflow_id, limit=RUNS)
    assert {run.id for run in started} == {run.id for run in ended if run.status is RunStatus.SUCCEEDED}


def _measure_spark(operations: Operations, results: Results) -> None:
    _say("starting a Spark server, and warming up")
    address = server_address(operations.settings, _say)
    try:
        session = Session(address, str(uuid4()))
        operations.workflows.push(spark("query", QUERY))
        warming = Results()
        for number in range(-WARM_UP, ROUNDS_OF_SPARK):
            found = results if number >= 0 else warming
            found.measure("spark_query", lambda: _ask(session))
            found.measure("spark_step", lambda: _finish(operations, "query"))
        session.release()
    finally:
        for folder, _ in list(running_servers(operations.settings.root)):
            stop(folder)


def _ask(session: Session) -> None:
    assert session.execute(QUERY, 1).num_rows == 1


#: What each number must be, in words and as a test.
TARGETS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "sequence_ms_per_step": ("<= 10", lambda value: value <= 10),
    "foreach_ms_per_iteration": ("<= 5", lambda value: value <= 5),
    "vs_dagster_in_process": (">= 3", lambda value: value >= 3),
    "vs_dagster_default": (">= 200", lambda value: value >= 200),
    "warm_spark_step_ms": ("< 250", lambda value: value < 250),
    # Half a kilobyte for each of 9,000 steps would be as much.
    "memory_growth_mb": ("< 5", lambda value: value < 5),
}


def _numbers(results: Results) -> dict[str, float | None]:
    step, query = results.seconds("spark_step"), results.seconds("spark_query")
    return {
        "sequence_ms_per_step": results.each_ms("sequence", CHAIN),
        "foreach_ms_per_iteration": results.each_ms("foreach", ITERATIONS),
        "parallel_1000_seconds": results.seconds("parallel"),
        "workflows_100_seconds": results.seconds("workflows"),
        "workflows_ms_per_run": results.each_ms("workflows", RUNS),
        "vs_dagster_in_process": results.ratio("dagster_in_process", "sequence"),
        "vs_dagster_default": results.ratio("dagster_default", "sequence"),
        "warm_spark_step_ms": None if step is None or query is None else (step - query) * 1000,
        **results.numbers,
    }


def _show(results: Results, load: float) -> None:
    """The numbers for people, then one line for machines."""
    print()
    numbers = _numbers(results)
    met = {name: value is not None and TARGETS[name][1](value) for name, value in numbers.items() if name in TARGETS}
    for name, value in numbers.items():
        shown = "-" if value is None else f"{value:.3f}"
        verdict = "" if name not in met else "not measured" if value is None else "ok" if met[name] else "MISSED"
        print(f"{name:<28}{shown:>10}   {TARGETS.get(name, ('',))[0]:<10}{verdict}")
    line: dict[str, Any] = {
        **{name: None if value is None else round(value, 3) for name, value in numbers.items()},
        "seconds": {what: round(results.seconds(what) or 0, 4) for what in results.rounds},
        "processor_seconds": {what: round(median(found), 4) for what, found in results.processor.items()},
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "targets_met": all(met.values()),
    }
    print(json.dumps(line), flush=True)


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
