"""What one transaction takes, and what is remembered between transactions."""

from __future__ import annotations

from dalsegno.engine.engine import Engine
from dalsegno.engine.ledger import KEPT_SECONDS
from dalsegno.model.messages import EndRun
from dalsegno.model.runs import Ending
from dalsegno.operations.run_views import RunView
from dalsegno.store import runs
from tests.engine.support import STOPPED, SUCCEEDED, Place, foreach, noop, shell


def joined(place: Place, run: RunView) -> Engine:
    engine = place.operations.machinery.engine([run.id])
    engine.node.join(place.operations.clock())
    return engine


def test_a_limit_holds_for_all_that_one_transaction_claims(place: Place) -> None:
    place.push("w", *(shell(f"s{number}", "true") for number in range(5)), properties={"step_concurrency": 1})
    run = place.start("w")
    engine = joined(place, run)
    recorded = engine.ledger.claim_due(place.operations.clock(), capacity=3)
    assert len(recorded.claims) == 1
    # To look again at once would change nothing.
    assert not recorded.has_backlog


def test_no_more_is_claimed_than_there_is_room_for(place: Place) -> None:
    place.push("w", *(noop(f"s{number}") for number in range(5)))
    run = place.start("w")
    engine = joined(place, run)
    now = place.operations.clock()
    first, second = (engine.ledger.claim_due(now, capacity=3) for _ in range(2))
    assert [len(each.claims) for each in (first, second)] == [3, 2]
    assert [each.has_backlog for each in (first, second)] == [True, False]
    claimed = [claim.step.id for claim in first.claims + second.claims]
    assert sorted(claimed) == ["s0", "s1", "s2", "s3", "s4"]


def test_every_run_is_ended_that_was_asked_to(place: Place) -> None:
    place.push("w", noop("a"), properties={"run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 5}})
    started = [place.start("w") for _ in range(3)]
    with place.operations.store.database.writing() as connection:
        for run in started:
            runs.send(connection, run.id, EndRun(Ending.STOP), place.operations.clock())
    place.operations.machinery.deliver()
    assert {place.operations.runs.get(run.id).status for run in started} == {STOPPED}


def test_what_has_ended_is_not_remembered(place: Place) -> None:
    inner = foreach("inner", [], [noop("leaf")])
    numbers = {"j": {"type": "LONG_ARRAY", "value": [1, 2]}}
    inner["foreach"]["params"] = {"loop_params": {"type": "MAP", "value": numbers}}
    place.push("w", foreach("outer", list(range(30)), [inner], concurrency=2))
    run = place.start("w")
    engine = place.operations.machinery.engine([run.id])
    most = _most_remembered(engine, run.id)
    assert place.operations.runs.get(run.id).status is SUCCEEDED
    # Two iterations at a time, of two each, in the run itself: not all of the thirty that there were.
    assert max(most.values()) <= 7, most


def test_what_another_process_ended_is_not_remembered_for_ever(either_place: Place) -> None:
    """Nobody tells a process that a run of which it has done a part has ended elsewhere."""
    place, seconds = either_place, [1000.0]
    for name in "v", "w":
        place.push(name, shell("a", "true"))
    first = place.start("v")
    ledger = joined(place, first).ledger
    ledger.roots, ledger.stopwatch = None, lambda: seconds[0]

    def remembered_after(later: float) -> set[str]:
        seconds[0] += later
        ledger.claim_due(place.operations.clock(), capacity=10)
        return set(ledger._known)

    assert remembered_after(0) == {first.id}
    place.operations.runs.kill(first.id)
    second = place.start("w")
    assert remembered_after(KEPT_SECONDS - 1) == {first.id, second.id}
    assert remembered_after(2) == {second.id}
    assert remembered_after(KEPT_SECONDS) == set()


def _most_remembered(engine: Engine, run_id: str) -> dict[str, int]:
    most = {"flows": 0, "iterations": 0, "loops": 0}

    def until() -> bool:
        known = engine.ledger._known.get(run_id)
        for name, before in most.items():
            most[name] = max(before, len(getattr(known, name, ())))
        with engine.store.database.reading() as connection:
            return not runs.open_below(connection, run_id)

    engine.run(until)
    return most
