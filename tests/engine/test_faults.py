"""What goes wrong around a run: a lost lease, a clock that jumps, a store that is locked or full."""

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

from dalsegno.engine.ledger import Ledger
from dalsegno.engine.node import Node
from dalsegno.engine.records import LEASE, Report
from dalsegno.model.outcomes import Succeeded
from dalsegno.model.runs import StepEnded
from dalsegno.store import database
from tests.engine.support import SUCCEEDED, Place, foreach, noop, shell


def test_a_report_after_the_lease_was_lost_is_refused(either_place: Place) -> None:
    """A process that slept for longer than its lease finds that another has its step."""
    place = either_place
    place.push("w", noop("a", "b"), noop("b"))
    run = place.start("w")
    now = datetime.now(UTC) + timedelta(seconds=1)
    sleeper, other = (Node(place.orchestrator.store, id=name) for name in ("sleeper", "other"))
    sleeper.join(now)
    other.join(now)
    ledgers = [
        Ledger(place.orchestrator.store, node.id, place.orchestrator.versions.blueprint) for node in (sleeper, other)
    ]
    (claim,) = ledgers[0].claim_due(now, capacity=1).claims
    assert claim.step.id == "a"
    assert other.look(now, roots=None).lost == ()
    later = now + LEASE + timedelta(seconds=1)
    lost = other.look(later, roots=None).lost
    (taken,) = ledgers[1].record(lost, later, capacity=1).claims
    assert (taken.step.id, taken.state.fence, taken.state.attempt) == ("a", 2, 1)
    late = Report(run.id, run.id, StepEnded("a", claim.state.fence, Succeeded(), ("b",)))
    assert ledgers[0].record([late], later).refused == (late,)
    assert place.statuses(run)["b"] == "NOT_CREATED"
    report = Report(run.id, run.id, StepEnded("a", taken.state.fence, Succeeded(), ("b",)))
    assert ledgers[1].record([report], later).refused == ()
    assert place.statuses(run) == {"a": "SUCCEEDED", "b": "CREATED"}


def test_the_steps_of_a_process_that_is_gone_are_taken_at_once(place: Place) -> None:
    place.push("w", noop("a"))
    place.start("w")
    now = datetime.now(UTC) + timedelta(seconds=1)
    dead, other = Node(place.orchestrator.store, id="dead"), Node(place.orchestrator.store, id="other")
    dead.join(now)
    other.join(now)
    Ledger(place.orchestrator.store, "dead", place.orchestrator.versions.blueprint).claim_due(now, capacity=1)
    with place.orchestrator.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE nodes SET process_began = 'long ago' WHERE id = 'dead'")
    (lost,) = other.look(now, roots=None).lost
    assert lost.flow_id == lost.run_id


# A supervisor goes by the real clock, which does not jump here.
@pytest.mark.parametrize(
    ("jump", "timeout"), [(timedelta(hours=3), "1h"), (timedelta(hours=-3), "1 day")], ids=["forward", "back"]
)
def test_a_clock_that_jumps(place: Place, jump: timedelta, timeout: str) -> None:
    """Neither is a step lost or run twice, nor is one ended that has time left."""
    shift = timedelta()

    def clock() -> datetime:
        return datetime.now(UTC) + shift

    place.orchestrator.clock = clock
    body = [shell("x", f"echo ${{i}} >> {place.folder}/out; sleep 0.3", timeout=timeout)]
    place.push("w", foreach("each", list(range(8)), body, "end", concurrency=2), noop("end"))
    run = place.start("w")
    thread = threading.Thread(target=place.orchestrator.finish, args=(run.id,))
    thread.start()
    while len(place.lines()) < 3:
        time.sleep(0.02)
    shift = jump
    thread.join(60)
    assert place.orchestrator.run(run.id).status is SUCCEEDED
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
    thread = threading.Thread(target=place.orchestrator.finish, args=(run.id,))
    thread.start()
    while place.lines() != ["a"]:
        time.sleep(0.02)
    with locked(tmp_path / ".dalsegno" / "dalsegno.db"):
        time.sleep(2)
    thread.join(60)
    assert place.orchestrator.run(run.id).status is SUCCEEDED
    assert place.lines() == ["a", "b"]
    place.orchestrator.close()


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
    thread = threading.Thread(target=place.orchestrator.finish, args=(run.id,))
    thread.start()
    while place.lines() != ["a"]:
        time.sleep(0.02)
    is_full.set()
    time.sleep(2)
    assert place.lines() == ["a"]
    is_full.clear()
    thread.join(60)
    assert place.orchestrator.run(run.id).status is SUCCEEDED
    assert place.lines() == ["a", "b"]
    place.orchestrator.close()
