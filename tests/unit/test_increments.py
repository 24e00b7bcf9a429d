"""Which range comes next, and what is said where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.errors import HistoryLost, UnsupportedChange, UserError
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.snapshots import History, Operation, Position, Snapshot
from dalsegno.model.starts import AfterSnapshot, Bound, Earliest, Full, Latest, Since, parse_start
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment, Treatment, next_increment

TABLE = TableName("lake", ("db",), "t")


def next_range(history: History, checkpoint: Position | None, **options: Any) -> Increment:
    return next_increment(TableRequest(TABLE, "c", **options), history, checkpoint)


def snap(id_: int, parent: int | None, operation: str = "append", **summary: str) -> Snapshot:
    counts = summary or {"added-data-files": "1", "added-records": "5", "changed-partition-count": "1"}
    counts = {key.replace("_", "-"): value for key, value in counts.items()}
    return Snapshot(id_, parent, id_, 1000 * id_, Operation(operation), 0, f"list-{id_}", counts)


def history(*snapshots: Snapshot, head: int | None = None, schema: int = 0) -> History:
    known = {each.id: each for each in snapshots}
    return History("u", 2, "main", known[head or snapshots[-1].id] if snapshots else None, schema, known)


def at(snapshot_id: int | None, **changed: object) -> Position:
    values = {"table_uuid": "u", "branch": "main", "sequence_number": 0, "timestamp_ms": 0, "schema_id": 0}
    return Position(snapshot_id=snapshot_id, **{**values, **changed})  # type: ignore[arg-type] # a test's shorthand


LINE = (snap(1, None), snap(2, 1), snap(3, 2, "replace"), snap(4, 3))


def test_after_a_checkpoint() -> None:
    found = next_range(history(*LINE), at(1))
    assert [(each.id, treatment) for each, treatment in found.snapshots] == [
        (2, Treatment.TAKE),
        (3, Treatment.SKIP_REPLACE),
        (4, Treatment.TAKE),
    ]
    assert (found.after.snapshot_id, found.upto.snapshot_id, found.has_news, found.is_first) == (1, 4, True, False)


@pytest.mark.parametrize(
    ("start", "after"),
    [
        (None, None),
        (Earliest(), None),
        (Latest(), 4),
        (AfterSnapshot(2), 2),
        (Since(2500), 2),
        (Since(2000), 2),
        (Since(1), None),
    ],
)
def test_where_a_first_capture_begins(start: object, after: int | None) -> None:
    found = next_range(history(*LINE), None, start=start)
    assert found.after.snapshot_id == after
    assert found.is_first


def test_full_is_always_possible() -> None:
    lost = history(snap(7, 6), snap(8, 7, "overwrite"))
    found = next_range(lost, at(2, table_uuid="other"), start=Full())
    assert (found.is_full, found.has_news, found.upto.snapshot_id) == (True, True, 8)


def test_a_start_is_chosen_once() -> None:
    with pytest.raises(UserError, match=r"has a checkpoint on lake.db.t already, at snapshot 2") as refused:
        next_range(history(*LINE), at(2), start=Latest())
    assert "without --from" in str(refused.value)


@pytest.mark.parametrize("kind", ["overwrite", "delete"])
def test_other_changes_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedChange, match=rf"snapshot 2 .* is of kind '{kind}'"):
        next_range(history(snap(1, None), snap(2, 1, kind)), at(1))


@pytest.mark.parametrize("kind", ["append", "overwrite", "delete"])
def test_empty_snapshots_are_skipped(kind: str) -> None:
    empty = snap(2, 1, kind, changed_partition_count="0", total_records="5")
    found = next_range(history(snap(1, None), empty), at(1))
    assert [treatment for _, treatment in found.snapshots] == [Treatment.SKIP_EMPTY]
    assert (found.has_news, found.moved) == (False, True)


def test_a_snapshot_without_counts_is_not_taken_for_empty() -> None:
    silent = Snapshot(2, 1, 2, 2000, Operation.APPEND, 0, "list-2", {})
    found = next_range(history(snap(1, None), silent), at(1))
    assert [treatment for _, treatment in found.snapshots] == [Treatment.TAKE]


def test_a_range_can_end_earlier() -> None:
    found = next_range(history(*LINE), at(1), end=AfterSnapshot(2))
    assert [each.id for each, _ in found.snapshots] == [2]
    assert next_range(history(*LINE), at(2), end=AfterSnapshot(2)).moved is False
    with pytest.raises(UserError, match="would end before it begins"):
        next_range(history(*LINE), at(3), end=AfterSnapshot(2))
    with pytest.raises(UserError, match=r"Snapshot 9 is not in the history of lake.db.t"):
        next_range(history(*LINE), at(1), end=AfterSnapshot(9))


def test_a_refusal_says_how_to_lose_nothing() -> None:
    past = history(snap(1, None), snap(2, 1), snap(3, 2, "overwrite"))
    with pytest.raises(UnsupportedChange) as refused:
        next_range(past, at(1))
    assert "dalsegno capture lake.db.t --consumer c --changes before_after" in str(refused.value)
    # To move the checkpoint over it would lose what it removed.
    assert "checkpoints set" not in str(refused.value)


def test_an_expired_parent_still_proves_the_range() -> None:
    found = next_range(history(snap(2, 1), snap(3, 2)), at(1))
    assert [each.id for each in found.taken] == [2, 3]


@pytest.mark.parametrize(
    ("past", "checkpoint", "words"),
    [
        (history(snap(1, None), snap(2, 1), head=1), at(2), "was rolled back since"),
        (history(snap(1, None), snap(2, 1), snap(3, 1)), at(2), "rolled back .* continues from snapshot 1"),
        (history(snap(1, None), snap(2, 1), snap(3, None)), at(2), "was replaced, or its history expired"),
        (history(snap(1, None), snap(4, 3)), at(1), "has expired history"),
        (history(snap(3, None), snap(4, 3)), at(1), "was replaced, or its history expired"),
        (history(snap(3, 2), snap(4, 3)), at(1), "has expired history"),
        (history(), at(1), "has lost its history"),
        (history(*LINE), at(1, table_uuid="v"), "was dropped and created anew"),
        (history(snap(3, 2), snap(4, 3)), at(None), "is not its first"),
    ],
)
def test_lost_history_says_what_was_found(past: History, checkpoint: Position, words: str) -> None:
    with pytest.raises(HistoryLost, match=words) as refused:
        next_range(past, checkpoint)
    assert refused.value.hint and "--from full" in refused.value.hint


def test_another_branch_needs_another_consumer() -> None:
    with pytest.raises(UserError, match="is on branch 'audit', not on 'main'"):
        next_range(history(*LINE), at(1, branch="audit"))


def test_the_schema_of_the_head_is_the_current_one() -> None:
    newer = history(*LINE, schema=3)
    assert next_range(newer, at(1)).upto.schema_id == 3
    assert next_range(newer, at(1), end=Since(2000)).upto.schema_id == 0
    assert next_range(newer, at(1)).schema_changed


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Earliest()),
        (" Latest ", Latest()),
        ("full", Full()),
        ("42", AfterSnapshot(42)),
        ("1970-01-02", Since(86_400_000)),
        ("1970-01-01T02:00+01:00", Since(3_600_000)),
        ("1970-01-01T00:00:01Z", Since(1000)),
    ],
)
def test_starts_as_people_write_them(text: str, start: object) -> None:
    assert parse_start(text) == start


def test_a_start_that_is_none() -> None:
    with pytest.raises(UserError, match="expected earliest, latest, full"):
        parse_start("yesterday")


def sized(id_: int, size: int | None, operation: str = "append") -> Snapshot:
    told = {"added_data_files": "1", **({} if size is None else {"added_files_size": str(size)})}
    return snap(id_, id_ - 1 or None, operation, **told)


@pytest.mark.parametrize(
    ("bound", "upto", "has_more"),
    [
        (Bound(snapshots=1), 1, True),
        # What changes no row comes along.
        (Bound(snapshots=2), 3, True),
        (Bound(snapshots=3), 4, True),
        (Bound(snapshots=9), 5, False),
        (Bound(bytes=10), 1, True),
        (Bound(bytes=30), 3, True),
        # One is never too much.
        (Bound(bytes=1), 1, True),
        # What does not tell its size is not taken together with anything.
        (Bound(bytes=10**9), 4, True),
        (Bound(snapshots=3, bytes=15), 1, True),
    ],
)
def test_a_bound_ends_a_range_earlier(bound: Bound, upto: int, has_more: bool) -> None:
    line = history(sized(1, 10), sized(2, 20), sized(3, 99, "replace"), sized(4, 30), sized(5, None))
    found = next_range(line, None, bound=bound)
    assert (found.upto.snapshot_id, found.has_more) == (upto, has_more)


def test_what_cannot_be_cut_is_taken_whole() -> None:
    line = history(sized(1, None), sized(2, None))
    found = next_range(line, None, start=Full(), bound=Bound(1, 1))
    assert (found.upto.snapshot_id, found.has_more) == (2, False)
    # The one of unknown size, alone.
    assert next_range(line, None, bound=Bound(bytes=1)).upto.snapshot_id == 1


def test_a_refused_change_behind_the_bound_waits() -> None:
    line = history(snap(1, None), snap(2, 1), snap(3, 2, "delete"))
    assert next_range(line, None, bound=Bound(snapshots=2)).has_more
    with pytest.raises(UnsupportedChange):
        next_range(line, at(2), bound=Bound(snapshots=2))


@pytest.mark.parametrize("bound", [{"snapshots": 0}, {"bytes": -1}])
def test_a_bound_is_above_zero(bound: dict[str, int]) -> None:
    with pytest.raises(UserError, match="above 0"):
        Bound(**bound)
