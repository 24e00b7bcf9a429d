"""``make bench-spark``: what a Spark SQL step adds to its query on a warm server.

The same query is run in a session that is open, and as a step: thread, new session, its configuration, query, log,
outcome, release of the session. The two take turns, because a machine is not equally busy all the time.

Then a step behind a capture, with a store in SQLite and a local catalog: what it costs for each statement to record it,
and to look at its target. The last line is one JSON object.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings, load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import running_servers, stop
from dalsegno.steps.contract import Finished, Work
from dalsegno.steps.spark.rows import FETCHED
from dalsegno.steps.spark.runner import SparkRunner
from dalsegno.steps.spark.sessions import server_address
from dalsegno.steps.spark.work import SqlWork
from dalsegno.store import Store
from tests.callers import admin

QUERY = "SELECT count(*) AS n FROM range(1000)"
ROUNDS, WARM_UP = 10, 30
#: Statements of the step behind a capture, how often it runs, and what one statement's record may cost.
STATEMENTS, RUNS, TARGET_MS = 10, 4, 15
RECORDED = """
Workflow:
  id: recorded
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [lake.bench.source]}}}}
    - job: {{id: write, type: Spark, spark: {{script: "{script}"}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = load(working_folder=Path(folder), environment={})
        try:
            added = measure(settings)
            recorded = measure_record(settings)
            result = {
                "step_adds_ms": round(added, 1),
                "bookkeeping_ms_per_statement": round(recorded, 2),
                "targets_met": recorded <= TARGET_MS,
            }
            print(json.dumps(result))
        finally:
            for found, _ in list(running_servers(settings.root)):
                stop(found)


def measure(settings: Settings) -> float:
    session = Session(server_address(settings, print), session_id_for("open"))
    numbers = iter(range(10_000))
    for _ in range(WARM_UP):
        session.execute(QUERY, FETCHED)
        run_step(settings, next(numbers))
    queries, steps = [], []
    for _ in range(ROUNDS):
        queries.append(milliseconds(lambda: session.execute(QUERY, FETCHED)))
        steps.append(milliseconds(lambda: run_step(settings, next(numbers))))
    session.release()
    added = [step - query for step, query in zip(steps, queries, strict=True)]
    for name, values in (("query in an open session", queries), ("step", steps), ("added by the step", added)):
        print(f"{name:<26} median {statistics.median(values):6.0f} ms   {[round(value) for value in sorted(values)]}")
    return statistics.median(added)


def measure_record(settings: Settings) -> float:
    """What a statement behind a capture takes beyond its execution, in milliseconds: the median of several runs."""
    session = Session(server_address(settings, print), session_id_for("record"))
    for statement in (
        "CREATE NAMESPACE IF NOT EXISTS lake.bench",
        "CREATE TABLE lake.bench.source (id BIGINT) USING iceberg",
        "CREATE TABLE lake.bench.target (id BIGINT) USING iceberg",
    ):
        session.execute(statement, 1)
    script = "; ".join(["INSERT INTO lake.bench.target SELECT id FROM ${capture.change_table}"] * STATEMENTS)
    spent: list[float] = []
    for name in ("__init__", "outputs_if_done", "resume", "begin", "end", "finish"):
        setattr(SqlWork, name, timed(getattr(SqlWork, name), spent))
    found = []
    operations = Operations(Store.open(settings.store), settings, admin("bench"))
    operations.workflows.push(RECORDED.format(script=script))
    for number in range(RUNS + 1):
        session.execute(f"INSERT INTO lake.bench.source VALUES ({number})", 1)
        spent.clear()
        done = operations.runs.finish(operations.runs.start("recorded", {}).id)
        assert done.status is RunStatus.SUCCEEDED, done.reason
        if number:
            found.append(sum(spent) / STATEMENTS)
    operations.close()
    session.release()
    print(
        f"recorded per statement     median {statistics.median(found):6.1f} ms   {[round(each, 1) for each in found]}"
    )
    return statistics.median(found)


def timed(method: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def measured(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return method(*arguments, **named)
        finally:
            spent.append(1000 * (time.perf_counter() - begin))

    return measured


def run_step(settings: Settings, number: int) -> None:
    folder = settings.root / "attempts" / str(number)
    folder.mkdir(parents=True)
    work = Work("bench", 1, "step", number, f"bench.{number}", {"spark": {"script": QUERY}}, folder, settings)
    runner = SparkRunner()
    runner.start(work)
    assert isinstance(runner.poll(work, 60), Finished)


def milliseconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
