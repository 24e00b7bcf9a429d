"""Attempts of SQL steps on a real Spark Connect server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from dalsegno.model.outcomes import Outcome
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark.runner import SparkRunner
from dalsegno.steps.spark.sessions import local_server

RUNNER = SparkRunner()
#: Two cores take days for it, and let go of it at once: between rows Spark asks whether a task may go on.
ENDLESS = "SELECT max(hash(id)) AS m FROM range(0, 100000000000000, 1, 4)"

Worker = Callable[..., Work]


def outcome_of(work: Work, patience: float = 60) -> Outcome:
    started = RUNNER.start(work)
    if isinstance(started, Started):
        return end_of(work, patience)
    return started.outcome


def end_of(work: Work, patience: float = 60) -> Outcome:
    """How an attempt ends that was started."""
    finished = RUNNER.poll(work, patience)
    assert isinstance(finished, Finished), finished
    return finished.outcome


def executing(settings: Settings) -> set[str]:
    """What the server executes, whoever asked for it."""
    session = Session(address_of(settings), session_id_for("looking"))
    # Each question is executed as well, but not twice.
    found = session.executing() & session.executing()
    session.disconnect()
    return found


def rows_of(settings: Settings, query: str) -> list[dict[str, Any]]:
    # A session each: it remembers tables for a while, whatever others do to them.
    session = Session(address_of(settings), session_id_for(uuid4().hex))
    found: list[dict[str, Any]] = session.execute(query, 100).to_pylist()
    session.release()
    return found


def address_of(settings: Settings) -> str:
    server = local_server(settings).running()
    assert server is not None
    return server.address


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def running_with_progress(work: Work) -> Running:
    found: list[Running] = []

    def has_progress() -> bool:
        state = RUNNER.poll(work, 0.1)
        assert isinstance(state, Running), state
        found.append(state)
        return state.progress is not None

    wait_until(has_progress)
    return found[-1]
