"""A process that is killed at any moment of its work leaves a state from which the work can be finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.model.captures import CaptureState
from dalsegno.store import Store, database
from tests.store.crashes import DETAILS, killed_at, make_and_process, process, use_own_sqlite
from tests.store.examples import MEMBERS, NOW, PLAYBACK, at


def test_work_can_be_finished_after_a_kill_at_any_moment(url: str) -> None:
    kill_at_every_moment(url, own_sqlite=False)


def test_so_it_can_with_pythons_own_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "sqlite", database.sqlite)
    use_own_sqlite(True)
    kill_at_every_moment(f"sqlite:///{tmp_path}/store.db", own_sqlite=True)


def kill_at_every_moment(url: str, *, own_sqlite: bool) -> None:
    # The database exists, so that no moment is spent on its schema.
    Store.open(url).close()
    seen = set()
    moment, was_killed = 0, True
    while was_killed:
        moment += 1
        name = f"killed at moment {moment}"
        was_killed = killed_at(moment, make_and_process, url, name, own_sqlite)
        # Opened each time: while it is open here, nobody is the first to open it after the crash.
        with Store.open(url) as store:
            seen.add(check(store, name))
            process(store, name)
            assert check(store, name) is CaptureState.COMMITTED
    # Fewer would mean that it did not die where we think it did.
    assert moment > 30
    assert seen == {None, CaptureState.PREPARING, CaptureState.READY, CaptureState.COMMITTED}


def test_a_database_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    moment, was_killed = 0, True
    while was_killed:
        moment += 1
        url = f"sqlite:///{tmp_path}/{moment}.db"
        was_killed = killed_at(moment, make, url)
        with Store.open(url) as store:
            process(store, "daily")
            assert check(store, "daily") is CaptureState.COMMITTED
    assert moment > 10


def make(url: str) -> None:
    Store.open(url).close()


def check(store: Store, name: str) -> CaptureState | None:
    """The state is one of the four that undisturbed work goes through, and it is whole; which one?"""
    if store.database.is_sqlite:
        with store.database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    known = store.captures(name)
    if not known:
        assert store.pending(name, PLAYBACK) is None
        assert store.positions(name) == []
        return None
    (found,) = known
    is_committed = found.state is CaptureState.COMMITTED
    assert [captured.table for captured in found.tables] == [PLAYBACK, MEMBERS]
    assert store.pending(name, PLAYBACK) == (None if is_committed else found)
    assert store.pending(name, MEMBERS) == (None if is_committed else found)
    expected_details = {} if found.state is CaptureState.PREPARING else DETAILS
    assert {c.table: c.details for c in found.tables if c.details} == expected_details
    assert [mark.position for mark in store.positions(name)] == ([at(10), at(10)] if is_committed else [])
    assert [move.capture_id for move in store.checkpoints(name)] == ([name] if is_committed else [])
    assert (found.settled_by, found.settled_at) == (("ada", NOW) if is_committed else (None, None))
    return found.state
