"""A node that cannot write to the store says so, although it can read."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from dalsegno.operations import write_check
from dalsegno.operations.service import Role, Service
from dalsegno.operations.write_check import WriteCheck
from dalsegno.store import Store, database
from tests.engine.support import Place


def test_a_write_is_one(either_place: Place) -> None:
    store = either_place.operations.store
    check = WriteCheck(store)
    for count in (1, 2):
        check.write()
        with store.database.reading() as connection:
            sql = "SELECT upto FROM progress WHERE name = 'write check'"
            assert connection.exec_driver_sql(sql).scalars().all() == [count]
    assert check.problems() == []


def test_nodes_that_begin_at_once(either_place: Place) -> None:
    checks = [WriteCheck(either_place.operations.store) for _ in range(4)]
    threads = [threading.Thread(target=check.write) for check in checks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert either_place.operations.store.database.failures == 0


def test_not_ready_while_nothing_can_be_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_check, "_TOO_OLD_SECONDS", 0.3)
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    with Store.open(place.operations.settings.store) as store:
        service = Service(place.operations.settings, store, [Role.API])
        assert service.problems() == []
        with closing(database.sqlite.connect(str(store.database.url.database), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            threading.Event().wait(0.4)
            [problem] = service.problems()
            assert problem.startswith("The last write to the store succeeded")
            assert store.database.write_age > 0.4
            other.execute("ROLLBACK")
        assert service.problems() == []
        assert store.database.write_age < 0.3


def test_a_node_that_only_answers_writes_by_itself(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalsegno.operations.service.CHECK_SECONDS", 0.01)
    store = place.operations.store
    service = Service(place.operations.settings, store, [Role.API])
    thread = threading.Thread(target=service.run)
    written = threading.Event()
    monkeypatch.setattr(store.database, "confirm_write", written.set)
    thread.start()
    try:
        for _ in range(3):
            assert written.wait(10)
            written.clear()
    finally:
        service.stop()
        thread.join()
