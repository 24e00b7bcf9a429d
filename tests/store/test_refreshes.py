"""Refreshes count when their capture is committed, and neither before nor twice."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from dalsegno.errors import CheckpointMoved
from dalsegno.model.captures import CaptureState
from dalsegno.model.refreshes import Refresh
from dalsegno.model.work_units import UnitState
from dalsegno.store import Store, checkpoints, refresh_tables
from dalsegno.store.refresh_queries import decision_of, decision_values
from dalsegno.store.sqlite_file import open_for_reading
from dalsegno.store.store_reader import StoreReader
from tests.store.crashes import killed_at, refresh_and_commit
from tests.store.examples import NOW, PLAYBACK, TARGET, at, capture, make_ready, refresh, work


def seen(store: Store) -> list[Refresh]:
    return store.refreshes(TARGET, limit=100)


def test_a_refresh_counts_when_its_capture_is_committed(store: Store) -> None:
    make_ready(store, capture("c1"))
    done = work(store, "u1")
    assert seen(store) == []
    store.commit("c1", by="ada", now=NOW)
    # Whoever commits again moves nothing, the time of the refresh included.
    store.commit("c1", by="bob", now=NOW + timedelta(hours=1))
    assert seen(store) == [done]
    assert store.refreshes_behind(["c1", "c2"]) == [done]


def test_a_commit_that_is_refused_records_nothing(store: Store) -> None:
    make_ready(store, capture("c1"))
    work(store, "u1")
    other = replace(at(5), table_uuid="another")
    # Somebody has set the checkpoint although the capture is pending: the commit finds it elsewhere.
    with store.database.writing() as connection:
        moved = checkpoints.append(connection, "daily", {PLAYBACK: other}, capture_id=None, by="x", now=NOW, reason="x")
        assert checkpoints.move(connection, moved, PLAYBACK, None)
    with pytest.raises(CheckpointMoved):
        store.commit("c1", by="ada", now=NOW)
    assert seen(store) == []


def test_what_was_undone_does_not_count(store: Store) -> None:
    make_ready(store, capture("c1"))
    work(store, "u1", state=UnitState.UNDONE)
    again = work(store, "u1.1")
    store.commit("c1", by="ada", now=NOW)
    assert seen(store) == [again]


def test_pages_have_each_refresh_once(store: Store) -> None:
    for number in range(1, 6):
        start = None if number == 1 else number - 1
        make_ready(store, capture(f"c{number}", after=start, upto=number))
        work(store, f"u{number}", f"c{number}")
        # Two at the same moment have an order, too.
        store.commit(f"c{number}", by="ada", now=NOW + timedelta(seconds=number // 2))
    found: list[str] = []
    while page := store.refreshes(TARGET, limit=2, after=found[-1] if found else None):
        found += [each.unit_id for each in page]
    assert found == ["u5", "u4", "u3", "u2", "u1"]
    assert store.refreshes(PLAYBACK, limit=2) == []


def test_both_ways_read_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url) as store:
        make_ready(store, capture("c1"))
        done = work(store, "u1")
        store.commit("c1", by="ada", now=NOW)
        assert seen(store) == [done]
    with closing(open_for_reading(url)) as database:
        assert StoreReader(database).refreshes(TARGET, limit=1) == [done]


def test_refreshes_depend_on_nothing_that_is_deleted_in_time() -> None:
    tables = (refresh_tables.refreshes, refresh_tables.refresh_reads, refresh_tables.refresh_writes)
    named = {key.column.table.name for table in tables for key in table.foreign_keys}
    assert named == {"captures", "work_units", "refreshes"}


def test_a_decision_reads_back_as_it_was() -> None:
    done = refresh("u1")
    found = decision_of(decision_values(done))
    assert {name: getattr(done, name) for name in vars(found)} == vars(found)


def test_a_kill_at_any_moment_leaves_a_refresh_with_its_commit_or_neither(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    Store.open(url).close()
    moment, was_killed, recorded = 0, True, set()
    while was_killed:
        moment += 1
        name = f"killed_at_{moment}"
        was_killed = killed_at(moment, refresh_and_commit, url, name)
        with Store.open(url) as store:
            known = store.captures(name)
            committed = {each.id for each in known if each.state is CaptureState.COMMITTED}
            assert {each.capture_id for each in store.refreshes_behind([name])} == committed
            recorded |= committed
        refresh_and_commit(url, name)
        with Store.open(url) as store:
            assert len(store.refreshes_behind([name])) == 1
    # Fewer would mean that it did not die where we think it did.
    assert moment > 30
    assert len(recorded) > 1
