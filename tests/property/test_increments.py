"""Whatever happened to a table's history: a range is exactly what lies between its ends, or it is refused."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.errors import DataError, HistoryLost, UnsupportedChange
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import EVERY_OPERATION, CaptureSpec, ChangeKind
from dalsegno.model.snapshots import History, Operation, Position, Snapshot
from dalsegno.model.starts import Bound, Since
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment, Treatment, next_increment

TABLE = TableName("lake", ("db",), "t")


def next_range(history: History, checkpoint: Position | None, **options: Any) -> Increment:
    return next_increment(TableRequest(TABLE, "c", **options), history, checkpoint)


def snapshot(id_: int, parent: int | None, operation: Operation) -> Snapshot:
    counts = {"added-data-files": "1", "added-records": "10", "changed-partition-count": "1"}
    return Snapshot(id_, parent, id_, 1000 * id_, operation, 0, f"list-{id_}", counts)


@dataclass(frozen=True)
class Past:
    """A tree of snapshots as it truly was, and what is left of it."""

    truth: dict[int, Snapshot]
    known: dict[int, Snapshot]
    head: int
    checkpoint: int | None

    def line(self, id_: int | None) -> list[int]:
        """The true ancestors of a snapshot, oldest first."""
        found: list[int] = []
        while id_ is not None:
            found.append(id_)
            id_ = self.truth[id_].parent_id
        return found[::-1]

    def history(self) -> History:
        return History("uuid", 2, "main", self.known[self.head], 0, self.known)


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    kinds = st.sampled_from([Operation.APPEND] * 6 + [Operation.REPLACE] * 2 + [Operation.OVERWRITE, Operation.DELETE])
    count = draw(st.integers(1, 12))
    truth: dict[int, Snapshot] = {}
    tip: int | None = None
    for id_ in range(1, count + 1):
        if truth and draw(st.integers(0, 9)) == 0:
            tip = draw(st.sampled_from(sorted(truth)))  # a rollback, or a branch
        truth[id_] = snapshot(id_, tip, draw(kinds) if tip is not None else Operation.APPEND)
        tip = id_
    head = draw(st.sampled_from(sorted(truth)))
    checkpoint = draw(st.none() | st.sampled_from(sorted(truth)))
    gone = draw(st.sets(st.sampled_from(sorted(truth)), max_size=count)) - {head} if draw(st.booleans()) else set()
    known = {id_: each for id_, each in truth.items() if id_ not in gone}
    if draw(st.booleans()):  # as PyIceberg expires: the parent's id goes with the parent
        known = {id_: replace(s, parent_id=None) if s.parent_id in gone else s for id_, s in known.items()}
    return Past(truth, known, head, checkpoint)


@given(pasts())
def test_a_range_is_exact_or_refused(past: Past) -> None:
    history = past.history()
    checkpoint = Position("uuid", "main", past.checkpoint, past.checkpoint or 0, 0, 0)
    line = past.line(past.head)
    try:
        increment = next_range(history, checkpoint)
    except DataError as error:
        unharmed = past.known == past.truth and (past.checkpoint is None or past.checkpoint in line)
        assert isinstance(error, UnsupportedChange) or not unharmed, "a whole history must not be called lost"
        return
    found = [each.id for each, _ in increment.snapshots]
    if past.checkpoint is None:
        # From the beginning: the reader is told which snapshot it must prove to be the first.
        assert increment.root is not None
        assert found == line[line.index(increment.root.id) :]
    else:
        assert past.checkpoint in line
        assert found == line[line.index(past.checkpoint) + 1 :]
    for each, treatment in increment.snapshots:
        # What says that it is the first of all is proven to have found nothing to overwrite before it is read.
        begins = each is increment.root and each.operation is Operation.OVERWRITE
        taken = begins or each.operation is Operation.APPEND
        assert treatment is (Treatment.TAKE if taken else Treatment.SKIP_REPLACE)


@given(pasts())
def test_another_table_is_never_taken_for_the_same(past: Past) -> None:
    checkpoint = Position("another", "main", past.checkpoint, 0, 0, 0)
    with pytest.raises(HistoryLost, match="created anew"):
        next_range(past.history(), checkpoint)


@given(pasts(), st.integers(0, 13))
def test_a_cut_ends_at_the_last_snapshot_before_it(past: Past, second: int) -> None:
    whole = replace(past, known=past.truth)
    line = [id_ for id_ in whole.line(past.head) if id_ <= second]
    try:
        increment = next_range(whole.history(), None, end=Since(1000 * second))
    except UnsupportedChange:
        return
    assert increment.upto.snapshot_id == (line[-1] if line else None)
    assert [each.id for each, _ in increment.snapshots] == line


@given(
    st.lists(st.tuples(st.sampled_from(["append", "replace", "delete"]), st.none() | st.integers(1, 9)), max_size=12),
    st.lists(st.tuples(st.none() | st.integers(1, 4), st.none() | st.integers(1, 20)), min_size=1, max_size=4),
)
def test_bounded_captures_take_what_one_would(
    commits: list[tuple[str, int | None]], bounds: list[tuple[int | None, int | None]]
) -> None:
    """Each snapshot in one of them, in order; each within its bound, or a single snapshot."""
    spec = CaptureSpec(ChangeKind.BEFORE_AFTER, EVERY_OPERATION)
    known: dict[int, Snapshot] = {}
    for id_, (word, size) in enumerate(commits, 1):
        told = {} if size is None else {"added-files-size": str(size)}
        made = snapshot(id_, id_ - 1 or None, Operation(word))
        known[id_] = replace(made, summary={**made.summary, **told})
    history = History("uuid", 2, "main", known.get(len(known)), 0, known)
    whole = next_range(history, None, spec=spec)
    taken: list[Snapshot] = []
    position: Position | None = None
    for most, size in itertools.cycle(bounds):
        increment = next_range(history, position, bound=Bound(most, size), spec=spec)
        assert increment.has_news == (len(taken) < len(whole.taken))
        position = increment.upto
        taken += increment.taken
        assert increment.has_more == (len(taken) < len(whole.taken))
        if len(increment.taken) > 1:
            assert len(increment.taken) <= (most or len(increment.taken))
            assert size is None or sum(int(each.summary["added-files-size"]) for each in increment.taken) <= size
        if not increment.has_more:
            break
    assert taken == [*whole.taken]
    assert position is not None
    assert position.is_at(whole.upto)
