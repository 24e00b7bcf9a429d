"""How far a consumer is behind is what came after its checkpoint, whatever was expired before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dalsegno.model.snapshots import History, Operation, Snapshot
from dalsegno.plan.lags import Lag, lag_of

OPERATIONS = st.lists(st.sampled_from(Operation), max_size=12)


def history(operations: list[Operation], *, expired: int = 0, uuid: str = "u") -> History:
    """A line of snapshots, numbered from 1, of which the first are gone."""
    line = [
        Snapshot(number, number - 1 or None, number, 1000 * number, operation, 0, "", {})
        for number, operation in enumerate(operations, start=1)
    ]
    known = line[expired:]
    return History(uuid, 2, "main", known[-1] if known else None, 0, {each.id: each for each in known})


@given(operations=OPERATIONS, data=st.data())
def test_what_came_after_the_checkpoint(operations: list[Operation], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(operations)))
    expired = data.draw(st.integers(0, max(at - 1, 0)))
    whole = history(operations)
    position = whole.position(whole.snapshots.get(at))
    found = lag_of(history(operations, expired=expired), position)
    waiting = [number for number in range(at + 1, len(operations) + 1) if operations[number - 1] != Operation.REPLACE]
    assert found == Lag(len(waiting), 1000 * waiting[0] if waiting else None)


@given(operations=OPERATIONS.filter(len), data=st.data())
def test_what_cannot_be_proven_is_not_told(operations: list[Operation], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(operations) - 1))
    expired = data.draw(st.integers(max(at, 1), len(operations)))
    whole = history(operations)
    position = whole.position(whole.snapshots.get(at))
    found = lag_of(history(operations, expired=expired), position)
    if expired < len(operations) or at:
        assert (found.snapshots, found.oldest_ms) == (None, None)
        assert found.problem
    other = lag_of(history(operations, uuid="v"), position)
    assert (other.snapshots, other.problem) == (None, "The table was dropped and created anew.")
