"""Processes that are killed in the middle of their work."""

from __future__ import annotations

import os
import signal
import sqlite3.dbapi2
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from sqlalchemy import Engine, event

from dalsegno.model.captures import CaptureState
from dalsegno.store import Store, database, work_units
from tests.processes import PROCESSES
from tests.store.examples import MEMBERS, NOW, PLAYBACK, capture, work

#: Whoever starts a child also looks for ended ones, and two who look at the same child disturb each other.
_ONE_AT_A_TIME = threading.Lock()
DETAILS = {PLAYBACK: {"files": 3}, MEMBERS: {"files": 4}}


def killed_at(moment: int, function: Callable[..., None], *arguments: object) -> bool:
    """Whether a process that runs the function was killed at this moment, or had finished before it.

    Moments are before each statement, before each COMMIT, and after it.
    """
    child = PROCESSES.Process(target=_run, args=(moment, function, arguments))
    with _ONE_AT_A_TIME:
        child.start()
    wait([child.sentinel])
    with _ONE_AT_A_TIME:
        child.join()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


def _run(moment: int, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    passed = 0

    def tick(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    new_engine = database.new_engine

    def watched_engine(*arguments: Any, **options: Any) -> Engine:
        engine = new_engine(*arguments, **options)
        for name in ("before_cursor_execute", "commit", "checkin"):
            event.listen(engine, name, tick)
        return engine

    database.new_engine = watched_engine
    function(*arguments)


def make_and_process(url: str, name: str, own_sqlite: bool) -> None:
    use_own_sqlite(own_sqlite)
    with Store.open(url) as store:
        process(store, name)


def process(store: Store, name: str) -> None:
    """What a consumer does; also what it does when it comes back after it died."""
    if not store.positions(name):
        store.record_capture(capture(name, consumer=name, upto=10, tables=(PLAYBACK, MEMBERS)))
        store.mark_ready(name, DETAILS)
    store.commit(name, by="ada", now=NOW)


def refresh_and_commit(url: str, name: str) -> None:
    """What a step that declares a table does, and whoever comes back after it died."""
    with Store.open(url) as store:
        known = {each.id: each for each in store.captures(name)}.get(name)
        if known is None:
            store.record_capture(capture(name, consumer=name))
        if known is None or known.state is CaptureState.PREPARING:
            store.mark_ready(name, {PLAYBACK: {"files": 3}})
        with store.database.reading() as connection:
            is_done = work_units.the(connection, f"u {name}") is not None
        if not is_done:
            work(store, f"u {name}", name)
        store.commit(name, by="ada", now=NOW)


def use_own_sqlite(wanted: bool) -> None:
    """Python's own SQLite is an old one on most machines, and then has another kind of journal."""
    if wanted:
        database.sqlite = sqlite3.dbapi2
