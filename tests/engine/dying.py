"""Processes that run workflows and are killed in the middle of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine as Connections
from sqlalchemy import event

from dalsegno.store import database
from tests.engine.support import Place

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "tests.engine.support", "dalsegno.steps.shell"])


def in_a_process(function: Callable[..., None], *arguments: object, kill_at: int = 0) -> bool:
    """Run a function in a process of its own, which is killed at a moment; whether it was.

    Moments are before every statement that is sent to the database, before every commit, and after it.
    """
    child = PROCESSES.Process(target=_watched, args=(kill_at, function, arguments))
    child.start()
    child.join(120)
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode != 0


def _watched(kill_at: int, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    passed = 0

    def tick(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    new_engine = database.new_engine

    def watched_engine(*arguments: Any, **options: Any) -> Connections:
        engine = new_engine(*arguments, **options)
        for name in ("before_cursor_execute", "commit", "checkin"):
            event.listen(engine, name, tick)
        return engine

    if kill_at:
        database.new_engine = watched_engine
    function(*arguments)


def start_and_work(folder: str, workflow_id: str) -> None:
    place = Place.at(Path(folder))
    place.orchestrator.start(workflow_id, idempotency_key="once")
    place.orchestrator.work()
    place.orchestrator.close()


def work(folder: str) -> None:
    place = Place.at(Path(folder))
    place.orchestrator.work()
    place.orchestrator.close()
