"""What a table has that a consumer has not processed, from the table's metadata alone.

Counted is what a capture would take: compaction is not, nor is a table that was rolled back to something that is
processed, unless the consumer captures what both ends of its range hold, for which that is a change like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dalsegno.clock import from_millis
from dalsegno.errors import DataError, UserError
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import CaptureSpec
from dalsegno.model.snapshots import History, Position, Snapshot
from dalsegno.model.starts import Full, Latest
from dalsegno.plan.forecast import Cost
from dalsegno.plan.increments import DEFAULT_START, Increment, increment_between, next_increment, starting_position
from dalsegno.triggers.table_triggers.model import Unprocessed

NextRange = Callable[[TableRequest, History, Position | None], Increment]

#: In the place of a snapshot's id, where there is none.
_NONE = 0
_REFUSED = -1

_ADDED = (("added-data-files",), ("added-records",), ("added-files-size",))
_CHANGED = (
    ("added-data-files", "deleted-data-files", "added-delete-files"),
    ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes"),
    ("added-files-size", "removed-files-size"),
)


def unprocessed(
    request: TableRequest, history: History, position: Position | None, next_range: NextRange = next_increment
) -> Unprocessed | None:
    """What waits for the consumer, whose checkpoint is at the position; None if nothing does.

    ``next_range`` is the decision of the capture that would follow.
    """
    head = history.head
    if position is None and isinstance(request.start, Latest):
        return _beginning(head)
    if head is None:
        is_emptied = position is not None and position.snapshot_id is not None and request.spec.compares_ends
        return _emptied(request, history, position, next_range) if position and is_emptied else None
    if position is None and isinstance(request.start, Full):
        return _whole(head)
    return _since(request, history, head, position, next_range)


def _since(
    request: TableRequest, history: History, head: Snapshot, position: Position | None, next_range: NextRange
) -> Unprocessed | None:
    name, consumer, spec = request.table, request.consumer, request.spec
    after = position
    try:
        after = after or starting_position(name, history, request.start or DEFAULT_START, head)
        if _is_processed(history, head, after) and not spec.compares_ends:
            return None
        found = increment_between(name, consumer, history, after, head, is_first=position is None, spec=spec)
        if found.moved and not next_range(request, history, position).has_news:
            return None
    except (DataError, UserError) as error:
        return refused(head, after, error)
    return _counted(found, head) if found.has_news else None


def _emptied(request: TableRequest, history: History, position: Position, next_range: NextRange) -> Unprocessed | None:
    """A table that was replaced by an empty one: those who capture both ends learn what is gone."""
    moment = from_millis(position.timestamp_ms or 0)
    try:
        next_range(request, history, position)
    except (DataError, UserError) as error:
        return refused(None, position, error)
    return Unprocessed((position.snapshot_id or _NONE, _NONE), moment, moment, 1, None, None, None)


def _is_processed(history: History, head: Snapshot, after: Position) -> bool:
    """Whether the branch is at the checkpoint, or was rolled back to something before it."""
    if after.table_uuid != history.table_uuid or after.snapshot_id is None:
        return False
    processed = history.ancestors(history.snapshots.get(after.snapshot_id))
    return after.snapshot_id == head.id or any(snapshot.id == head.id for snapshot in processed)


def _counted(increment: Increment, head: Snapshot) -> Unprocessed:
    taken = increment.taken if increment.is_line else ()
    if not taken:
        # A rollback, for those who capture both ends: which rows are concerned is found by the capture.
        moment = from_millis(head.timestamp_ms)
        return Unprocessed((increment.after.snapshot_id or _NONE, head.id), moment, moment, 1, None, None, None)
    cost = Cost.total(_cost(snapshot, increment.spec) for snapshot in taken)
    first, last = taken[0], taken[-1]
    return Unprocessed(
        (first.id, last.id),
        from_millis(first.timestamp_ms),
        from_millis(last.timestamp_ms),
        len(taken),
        cost.files,
        cost.rows,
        cost.bytes,
    )


def _cost(snapshot: Snapshot, spec: CaptureSpec) -> Cost:
    return Cost(*(_sum(snapshot, keys) for keys in (_CHANGED if spec.compares_ends else _ADDED)))


def _sum(snapshot: Snapshot, keys: Iterable[str]) -> int | None:
    """Iceberg leaves out what is zero; a writer that says nothing at all leaves it unknown."""
    found = [count for key in keys if (count := snapshot.count(key)) is not None]
    return sum(found) if found else None


def _whole(head: Snapshot) -> Unprocessed:
    moment = from_millis(head.timestamp_ms)
    files, rows, size = (head.count(f"total-{what}") for what in ("data-files", "records", "files-size"))
    return Unprocessed((_NONE, head.id), moment, moment, 1, files, rows, size)


def _beginning(head: Snapshot | None) -> Unprocessed:
    moment, newest = (from_millis(head.timestamp_ms), head.id) if head else (from_millis(0), _NONE)
    return Unprocessed((_NONE, newest), moment, moment, 0, 0, 0, 0, is_beginning=True)


def refused(head: Snapshot | None, after: Position | None, error: DataError | UserError) -> Unprocessed:
    """The same as long as the checkpoint stays, however many snapshots follow: to be refused once is enough."""
    moment = from_millis(head.timestamp_ms if head else (after and after.timestamp_ms) or 0)
    span = (_REFUSED, (after and after.snapshot_id) or _NONE)
    return Unprocessed(span, moment, moment, 0, None, None, None, refusal=error.message)
