"""A table's history and a consumer's checkpoint → the range to capture next.

The same decision is shown by ``plan`` and carried out by ``capture``. It fails closed: a range is returned only if
every snapshot between its ends is known and of a kind that may be captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from dalsegno.clock import from_millis
from dalsegno.errors import DataError, HistoryLost, UnsupportedChange, UserError
from dalsegno.model.snapshots import History, Operation, Position, Snapshot
from dalsegno.model.starts import AfterSnapshot, Earliest, Full, Latest, Since, Start
from dalsegno.model.tables import TableName

#: Where a first capture begins if nobody says otherwise.
DEFAULT_START = Earliest()


class Treatment(StrEnum):
    """What a capture does with a snapshot."""

    TAKE = "captured"
    SKIP_REPLACE = "skipped: replace"
    SKIP_EMPTY = "skipped: empty"
    REFUSE = "refused"


@dataclass(frozen=True)
class Increment:
    """The half-open range ``(after, upto]`` of one table, and what is in it."""

    table: TableName
    after: Position
    upto: Position
    #: Oldest first.
    snapshots: tuple[tuple[Snapshot, Treatment], ...]
    is_first: bool
    is_full: bool
    #: Where the range goes back to the table's beginning, its oldest snapshot: the reader must prove that it is.
    root: Snapshot | None = None

    @property
    def taken(self) -> tuple[Snapshot, ...]:
        return tuple(snapshot for snapshot, treatment in self.snapshots if treatment is Treatment.TAKE)

    @property
    def has_news(self) -> bool:
        """Whether there is anything to process."""
        return bool(self.taken) or (self.is_full and self.upto.snapshot_id is not None)

    @property
    def moved(self) -> bool:
        """Whether the table went on at all, if only by snapshots that change no row."""
        return not self.after.is_at(self.upto)

    @property
    def schema_changed(self) -> bool:
        return self.after.snapshot_id is not None and self.after.schema_id != self.upto.schema_id


def treatment_of(snapshot: Snapshot) -> Treatment:
    """What a capture of appends does with a snapshot."""
    if snapshot.operation is Operation.REPLACE:
        return Treatment.SKIP_REPLACE
    if _is_empty(snapshot):
        return Treatment.SKIP_EMPTY
    return Treatment.TAKE if snapshot.operation is Operation.APPEND else Treatment.REFUSE


def next_increment(
    table: TableName,
    consumer: str,
    history: History,
    checkpoint: Position | None,
    *,
    start: Start | None = None,
    cut_ms: int | None = None,
) -> Increment:
    """The range that a consumer captures next.

    ``start`` says where a consumer without a checkpoint begins; ``cut_ms`` ends the range at the last snapshot of that
    moment or before, so that several tables are cut alike.
    """
    upto = _cut(history, cut_ms, checkpoint)
    if isinstance(start, Full):
        after = checkpoint or history.position(None)
        return Increment(table, after, history.position(upto), (), checkpoint is None, is_full=True)
    if checkpoint is not None and start is not None:
        raise UserError(
            f"Consumer {consumer!r} has a checkpoint on {table} already, at {checkpoint}; a start is chosen once.",
            hint=f"To move it: dalsegno checkpoints set {table} --consumer {consumer} --to …; "
            "to take the whole table again: --from full.",
        )
    after = checkpoint or starting_position(table, history, start or DEFAULT_START, upto)
    increment = increment_between(table, consumer, history, after, upto, is_first=checkpoint is None)
    refuse_changes(increment, consumer)
    return increment


def increment_between(
    table: TableName,
    consumer: str,
    history: History,
    after: Position,
    upto: Snapshot | None,
    *,
    is_first: bool,
) -> Increment:
    """The range between two places, proven to be without gaps; it may hold changes that a capture refuses."""
    snapshots, root = _proven_range(table, consumer, history, after, upto)
    treated = tuple((snapshot, treatment_of(snapshot)) for snapshot in snapshots)
    return Increment(table, after, history.position(upto), treated, is_first, is_full=False, root=root)


def starting_position(table: TableName, history: History, start: Start, head: Snapshot | None) -> Position:
    """The position that a choice of the user means on this table."""
    match start:
        case Earliest():
            return history.position(None)
        case Latest():
            return history.position(head)
        case AfterSnapshot(snapshot_id):
            line = list(history.ancestors(head))
            found = next((snapshot for snapshot in line if snapshot.id == snapshot_id), None)
            if found is None:
                raise UserError(
                    f"Snapshot {snapshot_id} is not in the history of {table}, branch {history.branch}, which goes "
                    f"back to {line[-1].id if line else 'nothing'}.",
                    hint=f"See them with: dalsegno plan {table} --consumer NAME",
                )
            return history.position(found)
        case Since(timestamp_ms):
            line = list(history.ancestors(head))
            return history.position(next((s for s in line if s.timestamp_ms <= timestamp_ms), None))
        case Full():
            raise UserError("'full' is not a place in the history; it is for capture alone.")
    assert_never(start)


def _cut(history: History, cut_ms: int | None, checkpoint: Position | None) -> Snapshot | None:
    """The last snapshot of that moment or before, but never before the checkpoint: a writer's clock may be ahead."""
    if cut_ms is None:
        return history.head
    reached = checkpoint.snapshot_id if checkpoint else None
    return next((s for s in history.ancestors(history.head) if s.timestamp_ms <= cut_ms or s.id == reached), None)


def _is_empty(snapshot: Snapshot) -> bool:
    """Whether the summary proves that the snapshot neither added nor removed a file."""
    counted = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
    if any(snapshot.count(key) for key in counted):
        return False
    if snapshot.operation is Operation.APPEND and snapshot.count("added-data-files") == 0:
        return True
    return snapshot.count("changed-partition-count") == 0


def _proven_range(
    table: TableName, consumer: str, history: History, after: Position, head: Snapshot | None
) -> tuple[Sequence[Snapshot], Snapshot | None]:
    """Every snapshot of ``(after, head]``, oldest first, and the oldest of all if the range has no lower end."""
    if after.table_uuid != history.table_uuid:
        raise _lost(table, consumer, "was dropped and created anew", after, f"table {history.table_uuid}")
    if after.branch != history.branch:
        raise UserError(
            f"The checkpoint of {consumer!r} on {table} is on branch {after.branch!r}, not on {history.branch!r}.",
            hint=f"Use --branch {after.branch}, or another consumer for the other branch.",
        )
    found: list[Snapshot] = []
    for snapshot in history.ancestors(head):
        if snapshot.id == after.snapshot_id:
            return found[::-1], None
        found.append(snapshot)
    if not found:
        if after.snapshot_id is None:
            return (), None
        raise _lost(table, consumer, "has lost its history", after, "no snapshot at all")
    oldest = found[-1]
    # Java keeps a parent's id after the parent expired, which still proves that nothing lies between.
    if after.snapshot_id is not None and oldest.parent_id == after.snapshot_id:
        return found[::-1], None
    if after.snapshot_id is None and oldest.parent_id is None:
        return found[::-1], oldest
    raise _broken_chain(table, consumer, history, after, oldest)


def _broken_chain(table: TableName, consumer: str, history: History, after: Position, oldest: Snapshot) -> DataError:
    since = f"snapshot {oldest.id} of {from_millis(oldest.timestamp_ms):%Y-%m-%d %H:%M} UTC"
    if after.snapshot_id is None:
        return unproven_beginning(table, consumer, oldest)
    if after.snapshot_id in history.snapshots:
        ancestors = history.ancestors(history.snapshots[after.snapshot_id])
        if history.head is not None and any(snapshot.id == history.head.id for snapshot in ancestors):
            return _lost(table, consumer, "was rolled back", after, f"its head at {history.head.id}, before it")
        return _lost(
            table,
            consumer,
            "was rolled back or replaced",
            after,
            f"a line of snapshots without it, back to {since}",
        )
    if oldest.parent_id is None:
        return _lost(
            table,
            consumer,
            "was replaced, or its history expired,",
            after,
            f"a history that begins with {since}",
        )
    return _lost(table, consumer, "has expired history", after, f"nothing older than {since}")


def _lost(table: TableName, consumer: str, what: str, after: Position, found: str) -> HistoryLost:
    return HistoryLost(
        f"{table} {what} since the checkpoint of {consumer!r}: expected {after} of table {after.table_uuid}, found "
        f"{found}; what changed in between cannot be proven.",
        hint=f"To take the whole table again: dalsegno capture {table} --consumer {consumer} --from full. "
        f"To go on from now: dalsegno checkpoints set {table} --consumer {consumer} --to latest.",
    )


def unproven_beginning(table: TableName, consumer: str, oldest: Snapshot) -> HistoryLost:
    """The refusal of a capture from the beginning where the oldest known snapshot is not the first."""
    return HistoryLost(
        f"The history of {table} begins with snapshot {oldest.id} of {from_millis(oldest.timestamp_ms):%Y-%m-%d %H:%M} "
        "UTC, which is not its first: older ones have expired, so what was added before cannot be told.",
        hint=f"To take the whole table as it is now: dalsegno capture {table} --consumer {consumer} --from full. "
        "To take only what comes: --from latest.",
    )


def refuse_changes(increment: Increment, consumer: str) -> None:
    """Raise for the first snapshot of the range that is not an append and changed something."""
    refused = [snapshot for snapshot, treatment in increment.snapshots if treatment is Treatment.REFUSE]
    if not refused:
        return
    table, first = increment.table, refused[0]
    kind = first.operation.value if first.operation else "unnamed"
    more = f" (and {len(refused) - 1} more like it)" if len(refused) > 1 else ""
    raise UnsupportedChange(
        f"{table} has a change in the range that is not an append: snapshot {first.id} of "
        f"{from_millis(first.timestamp_ms):%Y-%m-%d %H:%M} UTC is of kind '{kind}'{more}; a capture of appends "
        "would miss what it removed.",
        hint=f"To take the whole table again: dalsegno capture {table} --consumer {consumer} --from full. "
        f"To step over it knowingly: dalsegno checkpoints set {table} --consumer {consumer} --to {first.id}.",
    )
