"""``make bench-spark``: what a Spark SQL step adds to its query on a warm server.

The same query is run in a session that is open, and as a step: thread, new session, its configuration, query, log,
outcome, release of the session. The two take turns, because a machine is not equally busy all the time.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dalsegno.settings import Settings, load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import running_servers, stop
from dalsegno.steps.contract import Finished, Work
from dalsegno.steps.spark import SparkRunner
from dalsegno.steps.spark_rows import FETCHED
from dalsegno.steps.spark_sessions import server_address

QUERY = "SELECT count(*) AS n FROM range(1000)"
ROUNDS, WARM_UP = 10, 30


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = load(working_folder=Path(folder), environment={})
        try:
            measure(settings)
        finally:
            for found, _ in list(running_servers(settings.root)):
                stop(found)


def measure(settings: Settings) -> None:
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
