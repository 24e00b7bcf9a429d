"""What goes wrong around a run: a clock that jumps, a store that is locked or full."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from dalsegno.store import database
from tests.engine.support import SUCCEEDED, Place, foreach, noop, shell


# A supervisor goes by the real clock, which does not jump here.
@pytest.mark.parametrize(
    ("jump", "timeout"), [(timedelta(hours=3), "1h"), (timedelta(hours=-3), "1 day")], ids=["forward", "back"]
)
def test_a_clock_that_jumps(place: Place, jump: timedelta, timeout: str) -> None:
    """Neither is a step lost or run twice, nor is one ended that has time left."""
    shift = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + shift

    place.use_clock(clock)
    body = [shell("x", f"echo ${{i}} >> {place.folder}/out; sleep 0.3", timeout=timeout)]
    place.push("w", foreach("each", list(range(8)), body, "end", concurrency=2), noop("end"))
    run = place.start("w")
    thread = threading.Thread(target=place.operations.runs.finish, args=(run.id,))
    thread.start()
    while len(place.lines()) < 3:
        time.sleep(0.02)
    shift = jump
    thread.join(60)
    assert place.operations.runs.get(run.id).status is SUCCEEDED
    assert sorted(place.lines()) == [str(number) for number in range(8)]


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another process writes, and does not come to an end."""
    connection = database.sqlite.connect(str(file), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def test_a_store_that_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    place = Place.at(tmp_path)
    place.push("w", shell("a", f"echo a >> {tmp_path}/out; sleep 0.5", "b"), shell("b", f"echo b >> {tmp_path}/out"))
    run = place.start("w")
    thread = threading.Thread(target=place.operations.runs.finish, args=(run.id,))
    thread.start()
    while place.lines() != ["a"]:
        time.sleep(0.02)
    with locked(tmp_path / ".dalsegno" / "dalsegno.db"):
        time.sleep(2)
    thread.join(60)
    assert place.operations.runs.get(run.id).status is SUCCEEDED
    assert place.lines() == ["a", "b"]
    place.operations.close()


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store takes nothing more for a while; what was done meanwhile is saved when it does again."""
    is_full = threading.Event()
    new_engine = database.new_engine

    def filling(*arguments: Any, **options: Any) -> Any:
        engine = new_engine(*arguments, **options)

        @event.listens_for(engine, "before_cursor_execute", retval=True)
        def before(_: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> tuple[str, Any]:
            if is_full.is_set() and statement.startswith(("INSERT", "UPDATE")):
                raise database.sqlite.OperationalError("database or disk is full")
            return statement, parameters

        return engine

    monkeypatch.setattr(database, "new_engine", filling)
    place = Place.at(tmp_path)
    place.push("w", shell("a", f"echo a >> {tmp_path}/out; sleep 0.5", "b"), shell("b", f"echo b >> {tmp_path}/out"))
    run = place.start("w")
    thread = threading.Thread(target=place.operations.runs.finish, args=(run.id,))
    thread.start()
    while place.lines() != ["a"]:
        time.sleep(0.02)
    is_full.set()
    time.sleep(2)
    assert place.lines() == ["a"]
    is_full.clear()
    thread.join(60)
    assert place.operations.runs.get(run.id).status is SUCCEEDED
    assert place.lines() == ["a", "b"]
    place.operations.close()
