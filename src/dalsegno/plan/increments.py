"""A table's history and a consumer's checkpoint → the range to capture next.

The same decision is shown by ``plan`` and carried out by ``capture``. It fails closed: a range is returned only if
every snapshot between its ends is known and of a kind that may be captured.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from dalsegno.clock import from_millis
from dalsegno.errors import DataError, HistoryLost, UnsupportedChange, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import ADDED_FILES, EVERY_OPERATION, CaptureSpec, ChangeKind
from dalsegno.model.snapshots import History, Operation, Position, Snapshot
from dalsegno.model.starts import AfterSnapshot, Bound, Earliest, Full, Latest, Since, Start
from dalsegno.model.tables import TableName

#: How many snapshots a message names.
_MANY = 5
#: Where a first capture begins if nobody says otherwise.
DEFAULT_START = Earliest()


class Treatment(StrEnum):
    """What a capture does with a snapshot."""

    TAKE = "captured"
    SKIP_REPLACE = "skipped: replace"
    SKIP_EMPTY = "skipped: empty"
    REFUSE = "refused"


#: Of snapshots that change rows.
_CHANGING = (Treatment.TAKE, Treatment.REFUSE)


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
    spec: CaptureSpec = ADDED_FILES
    #: Whether the snapshots lead from one end to the other; where only the ends count, they need not.
    is_line: bool = True
    #: Where the range goes back to the table's beginning, its oldest snapshot: the reader must prove that it is.
    root: Snapshot | None = None
    #: Whether something is left to capture after it, as far as the history went when it was planned.
    has_more: bool = False

    @property
    def taken(self) -> tuple[Snapshot, ...]:
        return tuple(snapshot for snapshot, treatment in self.snapshots if treatment is Treatment.TAKE)

    @property
    def removing(self) -> tuple[Snapshot, ...]:
        """Those taken that may have removed rows or carried them over; the first snapshot of all found none."""
        return tuple(each for each in self.taken if each.operation is not Operation.APPEND and each is not self.root)

    @property
    def has_news(self) -> bool:
        """Whether there is anything to process."""
        if not self.is_line:
            return self.moved
        # A whole table that is empty now is news to those who have seen it otherwise.
        ends = (self.after.snapshot_id, self.upto.snapshot_id)
        return bool(self.taken) or (self.is_full and ends != (None, None))

    @property
    def moved(self) -> bool:
        """Whether the table went on at all, if only by snapshots that change no row."""
        return not self.after.is_at(self.upto)

    @property
    def schema_changed(self) -> bool:
        return self.after.snapshot_id is not None and self.after.schema_id != self.upto.schema_id


def treatment_of(snapshot: Snapshot, operations: Collection[Operation] = (Operation.APPEND,)) -> Treatment:
    """What a capture of such operations does with a snapshot."""
    if snapshot.operation is Operation.REPLACE:
        return Treatment.SKIP_REPLACE
    if _is_empty(snapshot):
        return Treatment.SKIP_EMPTY
    return Treatment.TAKE if snapshot.operation in operations else Treatment.REFUSE


def _treatment(snapshot: Snapshot, spec: CaptureSpec, *, begins: bool) -> Treatment:
    """The first snapshot of all found nothing to remove, whatever it calls itself, as CREATE OR REPLACE TABLE does."""
    if begins and snapshot.operation is Operation.OVERWRITE:
        return treatment_of(snapshot, {*spec.operations, Operation.OVERWRITE})
    return treatment_of(snapshot, spec.operations)


def next_increment(request: TableRequest, history: History, checkpoint: Position | None) -> Increment:
    """The range that a consumer captures next.

    The bound ends it earlier than the end that was asked for if that is too much; a whole table, and a range of which
    only the ends are known, cannot be cut.
    """
    table, consumer, spec = request.table, request.consumer, request.spec
    start = None if checkpoint is not None and request.is_start_for_first else request.start
    upto = _end(table, history, request.end, checkpoint)
    if isinstance(start, Full):
        after = checkpoint or history.position(None)
        whole = Increment(table, after, history.position(upto), (), checkpoint is None, is_full=True, spec=spec)
        return replace(whole, has_more=has_changes_after(history, whole.upto, spec))
    if checkpoint is not None and start is not None:
        raise UserError(
            f"Consumer {consumer!r} has a checkpoint on {table} already, at {checkpoint}; a start is chosen once.",
            actions=[capture_with("To continue from there", table, consumer, from_=None), whole_table(table, consumer)],
        )
    after = checkpoint or starting_position(table, history, start or DEFAULT_START, upto)
    _refuse_end_before(table, history, after, upto)
    is_first = checkpoint is None
    increment = increment_between(table, consumer, history, after, upto, is_first=is_first, spec=spec)
    last = _last_within(increment, request.bound)
    if last is not None and last is not upto:
        increment = increment_between(table, consumer, history, after, last, is_first=is_first, spec=spec)
    refuse_changes(increment, consumer)
    return replace(increment, has_more=has_changes_after(history, increment.upto, spec))


def may_reprocess(history: History, checkpoint: Position, to: Position) -> bool:
    """Whether a consumer whose checkpoint is moved might get rows again; False if that cannot be."""
    is_other_table = checkpoint.table_uuid != history.table_uuid
    if is_other_table or checkpoint.snapshot_id is None or to.is_at(history.position(history.head)):
        return False
    end = history.snapshots.get(to.snapshot_id) if to.snapshot_id is not None else None
    return all(snapshot.id != checkpoint.snapshot_id for snapshot in history.ancestors(end))


def _last_within(increment: Increment, bound: Bound) -> Snapshot | None:
    """Where the longest beginning of a range ends that keeps within a bound; one snapshot is never too much."""
    count, size, last = 0, 0.0, None
    for snapshot, treatment in increment.snapshots:
        if treatment in _CHANGING:
            count, size = count + 1, size + _added_bytes(snapshot)
            is_too_much = count > (bound.snapshots or count) or (bound.bytes is not None and size > bound.bytes)
            if is_too_much and count > 1:
                break
        last = snapshot
    return last


def _added_bytes(snapshot: Snapshot) -> float:
    """The size of the files that a snapshot added; more than any bound where its writer did not say."""
    size = snapshot.count("added-files-size")
    if size is None and snapshot.operation is Operation.DELETE and snapshot.count("deleted-data-files"):
        # Iceberg leaves out what is zero.
        return 0
    return float("inf") if size is None else size


def has_changes_after(history: History, upto: Position, spec: CaptureSpec) -> bool:
    """Whether the branch has changes after the end of a range, so that there is something to capture next."""
    for snapshot in history.ancestors(history.head):
        if snapshot.id == upto.snapshot_id:
            return False
        if treatment_of(snapshot, spec.operations) in _CHANGING:
            return True
    return False


def _refuse_end_before(table: TableName, history: History, after: Position, upto: Snapshot | None) -> None:
    known = history.snapshots.get(after.snapshot_id) if after.snapshot_id is not None else None
    if known is None or upto == history.head or (upto is not None and upto.id == known.id):
        return
    if upto is None or any(snapshot.id == upto.id for snapshot in history.ancestors(known)):
        raise UserError(
            f"The range would end before it begins: the checkpoint on {table} is at {after}, which is later.",
            hint="Leave 'upto' out, or name a later snapshot.",
        )


def increment_between(
    table: TableName,
    consumer: str,
    history: History,
    after: Position,
    upto: Snapshot | None,
    *,
    is_first: bool,
    spec: CaptureSpec = ADDED_FILES,
) -> Increment:
    """The range between two places, proven to be without gaps; it may hold changes that a capture refuses.

    Where only its ends count, both must be known, and nothing need be proven of what lies between.
    """
    is_line = True
    try:
        snapshots, root = _proven_range(table, consumer, history, after, upto)
    except (HistoryLost, UserError):
        if not spec.compares_ends or not _has_both_ends(history, after):
            raise
        snapshots, root, is_line = (), None, False
    if spec.compares_ends:
        root = None
        if not _has_both_ends(history, after):
            raise _lost(table, consumer, "has expired history", after, "that this snapshot is gone")
    treated = tuple((snapshot, _treatment(snapshot, spec, begins=snapshot is root)) for snapshot in snapshots)
    deletes_keys = any(snapshot.count("added-equality-delete-files") for snapshot in snapshots)
    # Who writes equality deletes does not know the ids of the rows that are replaced.
    can_follow = is_line and not deletes_keys and _has_row_ids(history, after, upto)
    spec = replace(
        spec,
        by_row_id=spec.compares_ends and can_follow,
        has_deleted_keys=spec.compares_ends and deletes_keys,
    )
    return Increment(
        table,
        after,
        history.position(upto),
        treated,
        is_first,
        is_full=False,
        spec=spec,
        is_line=is_line,
        root=root,
    )


def _has_row_ids(history: History, after: Position, upto: Snapshot | None) -> bool:
    """Whether rows can be followed from one end to the other: both must be of format version 3.

    It takes a line between them as well: a rollback brings rows back that are older than the checkpoint.
    """
    first = history.snapshots.get(after.snapshot_id) if after.snapshot_id is not None else None
    return first is not None and upto is not None and first.has_row_ids and upto.has_row_ids


def _has_both_ends(history: History, after: Position) -> bool:
    known = after.snapshot_id is None or after.snapshot_id in history.snapshots
    return known and after.table_uuid == history.table_uuid


def starting_position(table: TableName, history: History, start: Start, head: Snapshot | None) -> Position:
    """The position that a choice of the user means on this table."""
    match start:
        case Earliest():
            return history.position(None)
        case Latest():
            return history.position(head)
        case AfterSnapshot(snapshot_id):
            return history.position(_in_line(table, history, snapshot_id))
        case Since(timestamp_ms):
            line = list(history.ancestors(head))
            return history.position(next((s for s in line if s.timestamp_ms <= timestamp_ms), None))
        case Full():
            raise UserError("'full' is not a place in the history; it is for capture alone.")
    assert_never(start)


def _end(
    table: TableName, history: History, end: AfterSnapshot | Since | None, checkpoint: Position | None
) -> Snapshot | None:
    line = history.ancestors(history.head)
    # Clocks of writers differ, so what was captured may seem to be of the future: it stays captured.
    reached = checkpoint.snapshot_id if checkpoint else None
    match end:
        case None:
            return history.head
        case Since(timestamp_ms):
            return next((s for s in line if s.timestamp_ms <= timestamp_ms or s.id == reached), None)
        case AfterSnapshot(snapshot_id):
            return _in_line(table, history, snapshot_id)


def _in_line(table: TableName, history: History, snapshot_id: int) -> Snapshot:
    """A snapshot that a user named, which must be one of the branch's."""
    line = list(history.ancestors(history.head))
    for snapshot in line:
        if snapshot.id == snapshot_id:
            return snapshot
    newest = ", ".join(str(snapshot.id) for snapshot in line[:_MANY]) or "none"
    raise UserError(
        f"Snapshot {snapshot_id} is not in the history of {table}, branch {history.branch}.",
        hint=f"The newest of its {len(line)} snapshots: {newest}.",
    )


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
            actions=[capture_with("To continue on its branch", table, consumer, branch=after.branch)],
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
    if after.snapshot_id is None:
        return unproven_beginning(table, consumer, oldest)
    since = f"snapshot {oldest.id} of {from_millis(oldest.timestamp_ms):%Y-%m-%d %H:%M} UTC"
    line = {snapshot.id for snapshot in history.ancestors(history.head)}
    common = next((s.id for s in history.ancestors(history.snapshots.get(after.snapshot_id)) if s.id in line), None)
    if common is not None:
        return _lost(table, consumer, "was rolled back", after, f"a history that continues from snapshot {common}")
    if oldest.parent_id is not None:
        return _lost(table, consumer, "has expired history", after, f"nothing older than {since}")
    return _lost(table, consumer, "was replaced, or its history expired,", after, f"a history that begins with {since}")


def _lost(table: TableName, consumer: str, what: str, after: Position, found: str) -> HistoryLost:
    return HistoryLost(
        f"{table} {what} since the checkpoint of {consumer!r}: expected {after} of table {after.table_uuid}, found "
        f"{found}; what changed in between cannot be proven.",
        actions=[whole_table(table, consumer)],
    )


def unproven_beginning(table: TableName, consumer: str, oldest: Snapshot) -> HistoryLost:
    """The refusal of a capture from the beginning where the oldest known snapshot is not the first."""
    return HistoryLost(
        f"The history of {table} begins with snapshot {oldest.id} of {from_millis(oldest.timestamp_ms):%Y-%m-%d %H:%M} "
        "UTC, which is not its first: older ones have expired, so what was added before is unknown.",
        actions=[
            capture_with("To take the whole table as it is now", table, consumer, from_="full"),
            capture_with("To skip what it holds now and take only what comes", table, consumer, from_="latest"),
        ],
    )


def refuse_changes(increment: Increment, consumer: str) -> None:
    """Raise for the first snapshot of the range that is of a kind which was not expected and changed something."""
    table, expected = increment.table, ", ".join(op for op in Operation if op in increment.spec.operations)
    if not increment.is_line and increment.moved and not increment.spec.operations >= EVERY_OPERATION:
        raise UnsupportedChange(
            f"{table} was rolled back, or lost snapshots in between, since the checkpoint of {consumer!r}: expected "
            f"only {expected}, but which operations led to {increment.upto} is unknown.",
            actions=[
                capture_with(
                    "To capture whatever changed",
                    table,
                    consumer,
                    changes=increment.spec.changes,
                    operation=None,
                ),
                whole_table(table, consumer),
            ],
        )
    refused = [snapshot for snapshot, treatment in increment.snapshots if treatment is Treatment.REFUSE]
    if not refused:
        return
    first = refused[0]
    kind = first.operation.value if first.operation else "unnamed"
    more = f" (and {len(refused) - 1} more like it)" if len(refused) > 1 else ""
    found = f"snapshot {first.id} of {from_millis(first.timestamp_ms):%Y-%m-%d %H:%M} UTC is of kind '{kind}'{more}"
    if increment.spec.operations == {Operation.APPEND} and not increment.spec.compares_ends:
        said = f"that is not an append: {found}; a capture of appends would miss what it removed."
    else:
        said = f"that was not expected: {found}; expected only {expected}."
    raise UnsupportedChange(
        f"{table} has a change in the range {said}",
        actions=[
            capture_with("To capture it exactly", table, consumer, changes=ChangeKind.BEFORE_AFTER),
            whole_table(table, consumer),
        ],
    )


def capture_with(aim: str, table: TableName, consumer: str, **options: str | None) -> Action:
    return action(aim, Verb.CAPTURE, table=str(table), consumer=consumer, **options)


def whole_table(table: TableName, consumer: str) -> Action:
    return action("To take the whole table again", Verb.REFRESH, table=str(table), consumer=consumer)
