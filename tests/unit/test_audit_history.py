"""Which state of a target each run left: by stamps, by time where there are none, and as far back as it is known."""

from __future__ import annotations

from collections.abc import Sequence

from dalsegno.audit.history import Consumed, line_of
from dalsegno.model.snapshots import History, Operation, Snapshot


def run(number: int, began: int, ended: int) -> Consumed:
    return Consumed({"workflow_id": "w", "number": number}, (f"c{number}",), {}, began, ended)


#: Three runs: at 10 to 20, at 30 to 40, at 50 to 60.
RUNS = [run(1, 10, 20), run(2, 30, 40), run(3, 50, 60)]


def snapshot(
    at: int, captures: str = "", operation: Operation = Operation.APPEND, parent: int | None = None
) -> Snapshot:
    stamps = {"dalsegno.captures": captures, "dalsegno.workflow": "w"} if captures else {}
    return Snapshot(at, parent, at, at, operation, 0, f"{at}.avro", stamps)


def history(*snapshots: Snapshot, is_cut: bool = False) -> History:
    """A line of snapshots, whose ids are their times."""
    before: int | None = 1 if is_cut else None
    line = []
    for each in snapshots:
        line.append(
            snapshot(each.id, each.summary.get("dalsegno.captures", ""), each.operation or Operation.APPEND, before)
        )
        before = each.id
    return History("uuid", 2, "main", line[-1] if line else None, 0, {each.id: each for each in line})


def told(found: History, runs: Sequence[Consumed] = RUNS) -> list[tuple[int, int | None, bool]]:
    return [
        (state.after + 1, state.snapshot.id if state.snapshot else None, state.is_foreign)
        for state in line_of(found, "w", runs).states
    ]


def test_the_last_snapshot_that_a_run_stamped_is_what_it_left() -> None:
    found = history(snapshot(11, "c1"), snapshot(12, "c1"), snapshot(31, "c2"), snapshot(51, "c3"))
    assert told(found) == [(1, 12, False), (2, 31, False), (3, 51, False)]
    assert line_of(found, "w", RUNS).seed is None
    assert line_of(found, "w", RUNS).has_beginning


def test_what_others_wrote_comes_after_the_run_before() -> None:
    compacted = snapshot(45, operation=Operation.REPLACE)
    found = history(
        snapshot(5), snapshot(11, "c1"), snapshot(25), snapshot(31, "c2"), compacted, snapshot(51, "c3"), snapshot(70)
    )
    assert told(found) == [(1, 11, False), (1, 25, True), (2, 31, False), (3, 51, False), (3, 70, True)]
    seed = line_of(found, "w", RUNS).seed
    assert seed is not None
    assert seed.id == 5


def test_without_stamps_time_tells() -> None:
    found = history(snapshot(15), snapshot(25), snapshot(35), snapshot(36), snapshot(70))
    assert told(found) == [(1, 15, False), (1, 25, True), (2, 36, False), (3, 36, False), (3, 70, True)]


def test_a_run_that_wrote_nothing_left_what_was_there() -> None:
    assert told(history(snapshot(11, "c1"), snapshot(51, "c3"))) == [(1, 11, False), (2, 11, False), (3, 51, False)]
    assert told(history()) == [(1, None, False), (2, None, False), (3, None, False)]


def test_what_has_expired_is_not_told() -> None:
    found = history(snapshot(31, "c2"), snapshot(51, "c3"), is_cut=True)
    assert told(found) == [(2, 31, False), (3, 51, False)]
    assert not line_of(found, "w", RUNS).has_beginning
    # All that is left is somebody else's.
    assert told(history(snapshot(70), is_cut=True)) == [(3, 70, True)]


def test_a_run_under_way_is_not_judged() -> None:
    found = history(snapshot(11, "c1"), snapshot(31, "c2"), snapshot(51, "c3"), snapshot(71, "c4"), snapshot(72))
    assert told(found)[-1] == (3, 51, False)
    # What was written for a capture that was given up stays, and counts as anybody's.
    found = history(snapshot(11, "c1"), snapshot(25, "gone"), snapshot(31, "c2"))
    assert told(found, RUNS[:2]) == [(1, 11, False), (1, 25, True), (2, 31, False)]
