"""A process that is killed at any moment of its work leaves a state from which the work can be finished."""

from __future__ import annotations

import os
import signal
import sqlite3.dbapi2
from collections.abc import Callable

import pytest
from sqlalchemy import event

from dalsegno.model.captures import CaptureState
from dalsegno.store import Store, database
from tests.store.examples import MEMBERS, NOW, PLAYBACK, at, capture
from tests.store.races import PROCESSES

NEW = capture("c1", upto=10, tables=(PLAYBACK, MEMBERS))
DETAILS = {PLAYBACK: {"files": 3}, MEMBERS: {"files": 4}}


def work(store: Store) -> None:
    """What a consumer does; also what it does after it died, since every operation may be repeated."""
    store.record_capture(NEW)
    store.mark_ready(NEW.id, DETAILS)
    store.commit(NEW.id, by="ada", now=NOW)


def work_until(url: str, moment: int, own_sqlite: bool) -> None:
    """Die at the given moment; moments are before each statement, before each COMMIT, and after it."""
    use_own_sqlite(own_sqlite)
    passed = 0

    def tick(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    with Store.open(url) as store:
        engine = store.database.engine
        event.listen(engine, "before_cursor_execute", tick)
        event.listen(engine, "commit", tick)
        event.listen(engine, "checkin", tick)
        work(store)


def use_own_sqlite(wanted: bool) -> None:
    """Python's own SQLite is an old one on most machines, and then has another kind of journal."""
    if wanted:
        database.sqlite = sqlite3.dbapi2


@pytest.mark.parametrize("own_sqlite", [False, True], ids=["bundled", "own"])
def test_work_can_be_finished_after_a_kill_at_any_moment(
    new_url: Callable[[], str], own_sqlite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own_sqlite and not new_url().startswith("sqlite"):
        pytest.skip("PostgreSQL has no library of its own")
    monkeypatch.setattr(database, "sqlite", database.sqlite)
    use_own_sqlite(own_sqlite)
    seen = set()
    moment, survived = 0, False
    while not survived:
        moment += 1
        url = new_url()
        # The database exists, so that no moment is spent on its schema.
        Store.open(url).close()
        child = PROCESSES.Process(target=work_until, args=(url, moment, own_sqlite))
        child.start()
        child.join()
        survived = child.exitcode == 0
        assert survived or child.exitcode == -signal.SIGKILL
        with Store.open(url) as store:
            seen.add(check(store))
            work(store)
            assert check(store) is CaptureState.COMMITTED
    # Fewer would mean that we did not die where we think we did.
    assert moment > 30
    assert seen == {None, CaptureState.PREPARING, CaptureState.READY, CaptureState.COMMITTED}


def check(store: Store) -> CaptureState | None:
    """The state is one of the four that an undisturbed run goes through, whole; which one?"""
    known = store.captures()
    if not known:
        assert store.pending("daily", PLAYBACK) is None
        assert store.positions() == []
        return None
    (found,) = known
    assert len(found.tables) == 2
    is_committed = found.state is CaptureState.COMMITTED
    assert store.pending("daily", PLAYBACK) == store.pending("daily", MEMBERS) == (None if is_committed else found)
    expected_details = {} if found.state is CaptureState.PREPARING else DETAILS
    assert {c.table: c.details for c in found.tables if c.details} == expected_details
    assert [m.position for m in store.positions()] == ([at(10), at(10)] if is_committed else [])
    assert [c.capture_id for c in store.checkpoints("daily")] == (["c1"] if is_committed else [])
    assert (found.settled_by, found.settled_at) == (("ada", NOW) if is_committed else (None, None))
    if store.database.is_sqlite:
        with store.database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    return found.state


def open_until(url: str, moment: int) -> None:
    passed = 0

    def tick(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    new_engine = database.new_engine

    def watched(*arguments: object, **options: object) -> object:
        engine = new_engine(*arguments, **options)  # type: ignore[arg-type]
        for name in ("before_cursor_execute", "commit", "checkin"):
            event.listen(engine, name, tick)
        return engine

    database.new_engine = watched  # type: ignore[assignment]
    Store.open(url).close()


def test_a_database_is_made_whole_or_not_at_all(new_url: Callable[[], str]) -> None:
    moment, survived = 0, False
    while not survived:
        moment += 1
        url = new_url()
        child = PROCESSES.Process(target=open_until, args=(url, moment))
        child.start()
        child.join()
        survived = child.exitcode == 0
        assert survived or child.exitcode == -signal.SIGKILL
        with Store.open(url) as store:
            work(store)
            assert check(store) is CaptureState.COMMITTED
    assert moment > 10
