"""Several processes share the work: who is dead is noticed, who is not is left alone, whatever clocks say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from dalsegno.engine import listening
from dalsegno.engine.ledger import Ledger
from dalsegno.engine.machine import machine_name
from dalsegno.engine.node import Node, Seen
from dalsegno.engine.records import Claim, Report
from dalsegno.model.messages import Admit
from dalsegno.model.outcomes import Succeeded
from dalsegno.model.runs import StepEnded
from dalsegno.operations.facade import Operations
from dalsegno.store import database, nodes, runs, waking
from tests.callers import admin
from tests.engine.support import SUCCEEDED, Place, noop, shell

NOW = datetime(2030, 1, 1, tzinfo=UTC)
#: Longer than a process may be silent.
LONG = 16


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Member:
    """A process that takes steps, without a thread of its own."""

    place: Place
    host: str = "here"
    stopwatch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        self.node = Node(self.place.operations.store, host=self.host, stopwatch=self.stopwatch)
        self.node.join(NOW)
        self.ledger = Ledger(self.place.operations.store, self.node.id, self.place.operations.machinery.versions)

    def claim(self, capacity: int = 10) -> tuple[Claim, ...]:
        return self.ledger.claim_due(NOW, capacity=capacity).claims

    def look(self, seconds: int = 1, *, room: int = 10, roots: list[str] | None = None) -> Seen:
        """Look once a second, give signs of life, and say what was seen last."""
        for _ in range(seconds):
            self.stopwatch.seconds += 1
            self.node.beat(NOW)
            seen = self.node.look(NOW, roots=roots, room=room)
        return seen

    def say_dead(self) -> None:
        """Let it look as if the process were gone."""
        boot = self.row()["process_began"].partition(" ")[0]
        with self.place.operations.store.database.writing() as connection:
            connection.exec_driver_sql(
                f"UPDATE nodes SET process_began = '{boot} long ago' WHERE id = '{self.node.id}'"
            )

    def row(self) -> Any:
        with self.place.operations.store.database.reading() as connection:
            return next(row for row in nodes.node_rows(connection) if row["id"] == self.node.id)

    def is_over(self) -> bool:
        return self.node.membership is not None and self.node.membership.is_over

    def is_known(self) -> bool:
        with self.place.operations.store.database.reading() as connection:
            return self.node.id in {row["id"] for row in nodes.node_rows(connection)}


def begun(place: Place) -> Place:
    place.push("w", *(noop(f"s{number}", "end") for number in range(5)), noop("end"))
    place.start("w")
    return place


@pytest.fixture
def place(either_place: Place) -> Place:
    return begun(either_place)


def test_one_who_is_silent_is_given_up(place: Place) -> None:
    silent, other = Member(place, "there"), Member(place)
    assert len(silent.claim(2)) == 2
    seen = other.look(15)
    assert (seen.lost, seen.left, silent.is_known()) == ((), (), True)
    lost = other.look(2).lost
    assert len(lost) == 2
    assert not silent.is_known()
    taken = other.ledger.record(lost, NOW, capacity=2).claims
    assert [(claim.state.fence, claim.state.attempt) for claim in taken] == [(2, 1)] * 2


def test_one_who_gives_signs_of_life_is_not(place: Place) -> None:
    """Whatever its clock and ours show."""
    alive, other = Member(place, "there"), Member(place)
    alive.claim()
    for number in range(20):
        alive.stopwatch.seconds += 3
        alive.node.beat(NOW + timedelta(days=(-1) ** number * number))
        assert other.look(3).lost == ()
    assert alive.is_known()
    assert not alive.is_over()


def test_a_node_of_an_earlier_version_is_alive_while_its_clock_goes_on(place: Place) -> None:
    old, other = Member(place, "there"), Member(place)
    old.claim()
    for number in range(20):
        with place.operations.store.database.writing() as connection:
            moment = 1_900_000_000_000_000 + number
            text = str(moment) if place.operations.store.database.is_sqlite else f"to_timestamp({moment} / 1000000.0)"
            connection.exec_driver_sql(f"UPDATE nodes SET seen_at = {text} WHERE id = '{old.node.id}'")
        assert other.look(5).lost == ()
    assert old.is_known()


def test_a_report_after_the_steps_were_taken_is_refused(place: Place) -> None:
    sleeper, other = Member(place, "there"), Member(place)
    claim = sleeper.claim(1)[0]
    (taken,) = other.ledger.record(other.look(LONG + 1).lost, NOW, capacity=1).claims
    late, right = (
        Report(claim.run.id, claim.run.id, StepEnded(claim.step.id, fence, Succeeded(), ("end",)))
        for fence in (claim.state.fence, taken.state.fence)
    )
    assert sleeper.ledger.record([late], NOW).refused == (late,)
    assert other.ledger.record([right], NOW).refused == ()
    assert place.statuses()[claim.step.id] == "SUCCEEDED"


def test_one_who_was_given_up_claims_nothing_more(place: Place) -> None:
    sleeper, other = Member(place, "there"), Member(place)
    other.look(LONG + 1)
    assert not sleeper.is_known()
    assert sleeper.claim() == ()
    sleeper.node.beat(NOW)
    assert sleeper.is_over()
    assert len(other.claim()) == 5


def test_one_who_cannot_give_signs_lets_go_before_others_take_its_steps(place: Place) -> None:
    member = Member(place)
    was_over, before = [], member.node.id
    for seconds in (9.9, 0.1, 0.0):
        member.stopwatch.seconds += seconds
        was_over.append(member.is_over())
        if member.is_over():
            # It is over for good, whatever the store says.
            member.node.beat(NOW)
    assert was_over == [False, True, True]
    assert member.node.membership is not None
    assert member.node.membership.seconds_until_let_go() == pytest.approx(2)
    assert not member.node.join(NOW).is_over
    assert member.node.id != before


def test_the_dead_of_a_machine_are_noticed_there_at_once(place: Place) -> None:
    """Only there may a job be found again, so nobody else gets the steps."""
    dead, near, far = Member(place), Member(place), Member(place, "there")
    dead.claim(3)
    dead.say_dead()
    assert (far.look().left, far.look().lost) == ((), ())
    left = near.look().left
    assert len(left) == 3
    taken = near.ledger.take_over(left, NOW).claims
    assert [(claim.state.fence, claim.state.attempt, claim.state.is_claimed) for claim in taken] == [(2, 1, True)] * 3
    for _ in range(LONG):
        assert (near.look().left, far.look().lost) == ((), ())
    assert not dead.is_known()


def test_no_more_are_taken_than_there_is_room_for(place: Place) -> None:
    """The others stay with the dead, until there is room, or the time is over for all."""
    dead, near, far = Member(place), Member(place), Member(place, "there")
    dead.claim(3)
    dead.say_dead()
    near.ledger.take_over(near.look(room=2).left, NOW)
    assert (near.look(room=0).left, dead.is_known()) == ((), True)
    assert len(near.look(room=5).left) == 1
    for _ in range(10):
        assert (len(near.look(room=5).left), far.look().lost) == (1, ())
    for _ in range(8):
        near.look(room=0)
        lost = far.look().lost
    assert len(lost) == 1


def test_only_one_of_those_who_find_the_dead_gets_a_step(place: Place) -> None:
    dead, one, other = Member(place), Member(place), Member(place)
    dead.claim(3)
    dead.say_dead()
    first, second = one.look().left, other.look().left
    assert len(one.ledger.take_over(first, NOW).claims) == 3
    assert other.ledger.take_over(second, NOW).claims == ()


def test_one_that_runs_some_runs_takes_steps_of_those(place: Place) -> None:
    dead, near = Member(place), Member(place)
    dead.claim(3)
    dead.say_dead()
    assert near.look(roots=["another"]).left == ()
    assert len(near.look(roots=[place.operations.runs.get("w").id]).left) == 3


def test_one_that_leaves_steps_is_as_good_as_dead(place: Place) -> None:
    leaving, near, far = Member(place), Member(place), Member(place, "there")
    leaving.claim(3)
    leaving.node.leave(NOW, has_left_steps=True)
    assert (far.look().left, far.look().lost) == ((), ())
    assert len(near.look().left) == 3


def test_one_that_leaves_nothing_is_forgotten(place: Place) -> None:
    leaving = Member(place)
    leaving.node.leave(NOW, has_left_steps=False)
    assert not leaving.is_known()


@pytest.mark.postgres
def test_machines_of_the_same_name_are_told_apart(postgres_place: Place) -> None:
    place = begun(postgres_place)
    twin, near = Member(place), Member(place)
    twin.claim(3)
    with place.operations.store.database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE nodes SET process_began = 'other 7' WHERE id = '{twin.node.id}'")
    seen = near.look(14)
    assert (seen.left, seen.lost) == ((), ())
    assert len(near.look(3).lost) == 3


def test_containers_that_share_a_name_have_machines_of_their_own() -> None:
    assert machine_name("host").startswith("host")
    if Path("/proc/self/ns/pid").exists():
        assert machine_name("host") == f"host {Path('/proc/self/ns/pid').readlink()}"


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.02)


def test_an_engine_that_was_cut_off_starts_over(either_place: Place) -> None:
    """Its jobs are found again, not started again; and what it does then counts."""
    place = either_place
    place.push(
        "w",
        shell("a", f"echo a >> {place.folder}/out; until test -e {place.folder}/go; do sleep 0.05; done", "b"),
        shell("b", f"echo b >> {place.folder}/out"),
    )
    run = place.start("w")
    stopwatch = Stopwatch()
    place.operations.machinery.node._stopwatch = stopwatch
    first = place.operations.machinery.node.id
    thread = threading.Thread(target=place.operations.runs.finish, args=(run.id,))
    thread.start()
    wait_until(lambda: place.lines() == ["a"])
    stopwatch.seconds += 60
    wait_until(lambda: place.operations.machinery.node.id != first)
    (place.folder / "go").touch()
    thread.join(60)
    assert place.operations.runs.get(run.id).status is SUCCEEDED
    assert place.lines() == ["a", "b"]
    assert [step.attempt for step in place.steps(run).values()] == [1, 1]


@pytest.mark.postgres
class TestWaking:
    @pytest.fixture
    def place(self, postgres_place: Place) -> Place:
        postgres_place.push("w", noop("a"))
        return postgres_place

    def test_an_engine_hears_of_what_others_did(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dalsegno.engine.engine.SAFETY_LOOK", 600)
        monkeypatch.setattr(listening, "_PAUSE_SECONDS", 0.05)
        first = place.operations
        other = Operations(first.store, first.settings, admin("bob"))
        engine, is_over = first.machinery.engine(), threading.Event()
        thread = threading.Thread(target=engine.run, args=(is_over.is_set,))
        thread.start()
        try:
            wait_until(lambda: engine._listener.is_listening)
            for _ in range(2):
                run = other.runs.start("w")
                wait_until(lambda: other.runs.get(run.id).status is SUCCEEDED)  # noqa: B023
                with first.store.database.writing() as connection:
                    connection.exec_driver_sql(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
                    )
                wait_until(lambda: not engine._listener.is_listening)
                wait_until(lambda: engine._listener.is_listening)
        finally:
            is_over.set()
            engine.wake()
            thread.join(30)

    def test_stores_of_one_database_do_not_wake_each_other(self, place: Place) -> None:
        store = place.operations.store
        with waking.listening(store.database) as ear:
            with store.database.writing() as connection:
                connection.exec_driver_sql("SET LOCAL search_path TO public")
                waking.announce(connection)
            assert not ear.hears(0.2)
            with store.database.writing() as connection:
                waking.announce(connection)
            assert ear.hears(10)

    def test_where_nothing_is_heard_it_looks_often(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """As behind a pooler that hands a connection to one client after the other."""
        new_engine = database.new_engine

        def deaf(*arguments: Any) -> Any:
            engine = new_engine(*arguments)

            @event.listens_for(engine, "after_cursor_execute")
            def after(_: Any, cursor: Any, statement: str, *__: Any) -> None:
                if statement.startswith("LISTEN"):
                    cursor.execute("UNLISTEN *")

            return engine

        monkeypatch.setattr(waking, "new_engine", deaf)
        monkeypatch.setattr(listening, "_HEARD_SECONDS", 0.1)
        run = place.start("w")
        engine = place.operations.machinery.engine()
        engine.run_until_ended(run.id)
        assert not engine._listener.is_listening
        assert place.operations.runs.get(run.id).status is SUCCEEDED


@pytest.mark.postgres
def test_messages_that_somebody_is_acting_on_are_left_to_it(postgres_place: Place) -> None:
    place, store = begun(postgres_place), postgres_place.operations.store
    place.push("x", noop("a"))
    with store.database.writing() as connection:
        runs.send(connection, "r1", Admit("w"), NOW)
        runs.send(connection, "r2", Admit("x"), NOW)
    with store.database.writing() as connection:
        first = runs.messages(connection)[0]["id"]
        assert runs.forget_messages(connection, [first]) == [first]
        assert place.operations.machinery.ledger.deliver(NOW) is not None
        assert place.operations.machinery.ledger.deliver(NOW) is None
