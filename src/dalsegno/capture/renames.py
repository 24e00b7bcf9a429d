"""Where a consumer stands on a table that may have had another name: a checkpoint belongs to a table, not to its name.

A table keeps its uuid when it is renamed. So a checkpoint under another name follows its table, if that name has no
table of this uuid any more. While it has, there are two tables of one uuid, as after ``register_table``: nobody
knows which of them is meant, so the user has to say where to begin.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.tables import Tables
from dalsegno.errors import CapturePending, HistoryLost
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import CaptureState
from dalsegno.model.snapshots import Position
from dalsegno.model.starts import AfterSnapshot, Earliest, Full, Start
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import capture_with
from dalsegno.store import CheckpointPosition, Store
from dalsegno.store.refusals import settle_first

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointOfTable:
    """Where a consumer's checkpoint on a table is, whatever the table was called when it was moved."""

    #: None: it has none.
    position: Position | None
    #: What is stored under the table's name, perhaps of another table that had it before.
    stored: Position | None
    #: What the table was called when the checkpoint was moved last, if it was something else.
    formerly: TableName | None = None
    #: Without a checkpoint: where the first capture began, if it was abandoned. The next one covers the same range.
    abandoned_start: Start | None = None


def checkpoint_of(
    tables: Tables, store: Store, request: TableRequest, table: LoadedTable, positions: Sequence[CheckpointPosition]
) -> CheckpointOfTable:
    """The consumer's checkpoint, or a refusal if that is not certain. Nothing is changed.

    ``positions`` are all checkpoints of the consumer.
    """
    uuid, consumer = table.metadata["table-uuid"], request.consumer
    refuse_pending_elsewhere(tables, store, consumer, table)
    own = next((each for each in positions if each.table == table.name), None)
    stored = None if own is None else own.position
    elsewhere = sorted(
        (each for each in positions if each.position.table_uuid == uuid and each.table != table.name),
        key=lambda each: -each.checkpoint_id,
    )
    if own is not None and own.position.table_uuid == uuid:
        newer = [each for each in elsewhere if each.checkpoint_id > own.checkpoint_id]
        moved = next((each for each in newer if not tables.has(each.table, uuid)), None)
        if moved is None:
            return CheckpointOfTable(stored, stored)
        return CheckpointOfTable(moved.position, stored, moved.table)
    if elsewhere:
        known: tuple[TableName, Position] | None = (elsewhere[0].table, elsewhere[0].position)
    else:
        known = store.last_position(consumer, uuid)
    if known is None:
        start = None if own is not None or request.start is not None else _abandoned_start(store, consumer, table)
        is_start_known = start is not None or request.start is not None
        if own is None and not is_start_known and store.checkpoints(consumer, table.name):
            raise _another_table(table.name, consumer)
        return CheckpointOfTable(stored, stored, abandoned_start=start)
    if known[0] != table.name and tables.has(known[0], uuid):
        if own is None and request.start is None:
            raise _two_tables(table.name, known, consumer)
        return CheckpointOfTable(stored, stored)
    return CheckpointOfTable(known[1], stored, known[0])


def _abandoned_start(store: Store, consumer: str, table: LoadedTable) -> Start | None:
    """Where a first capture that was abandoned began."""
    for earlier in store.captures(consumer):
        for captured in earlier.tables:
            is_meant = captured.table == table.name or captured.upto.table_uuid == table.metadata["table-uuid"]
            if is_meant and captured.is_first and earlier.state is CaptureState.ABANDONED:
                after = captured.after.snapshot_id
                return Full() if captured.is_full else Earliest() if after is None else AfterSnapshot(after)
    return None


def follow_rename(context: CaptureContext, consumer: str, table: TableName, checkpoint: CheckpointOfTable) -> None:
    """Carry a checkpoint under another name over to the table's name, and record why."""
    if checkpoint.formerly is None or checkpoint.position is None:
        return
    reason = f"{checkpoint.formerly} was renamed to {table}"
    if checkpoint.formerly == table:
        reason = f"{table} is the table again that had this name before"
    context.store.carry_over(
        consumer,
        checkpoint.formerly,
        table,
        checkpoint.stored,
        checkpoint.position,
        by=context.actor,
        now=context.clock(),
        reason=reason,
    )
    log.warning("the checkpoint of %s was carried over: %s", consumer, reason)


def refuse_pending_elsewhere(tables: Tables, store: Store, consumer: str, table: LoadedTable) -> None:
    """Raise if the table has a pending capture under a name that it no longer has."""
    uuid = table.metadata["table-uuid"]
    for capture in store.captures(consumer, pending_only=True):
        for captured in capture.tables:
            is_other = captured.table != table.name and captured.upto.table_uuid == uuid
            if is_other and not tables.has(captured.table, uuid):
                raise CapturePending(
                    f"Consumer {consumer!r} has capture {capture.id} pending, of {captured.table}, which was renamed "
                    f"to {table.name} since.",
                    capture_id=capture.id,
                    actions=settle_first(capture.id),
                )


def _two_tables(table: TableName, known: tuple[TableName, Position], consumer: str) -> HistoryLost:
    name, position = known
    to = "earliest" if position.snapshot_id is None else str(position.snapshot_id)
    return HistoryLost(
        f"{table} has the uuid of {name}, on which {consumer!r} stands at {position}: whether it is the same table, or "
        "a copy that was registered under another name, is unknown.",
        actions=[
            action(
                "If it is the same table, to continue from there",
                Verb.SET_CHECKPOINT,
                table=str(table),
                consumer=consumer,
                to=to,
            ),
            capture_with("If it is a copy, to capture all of it", table, consumer, from_="earliest"),
        ],
    )


def _another_table(table: TableName, consumer: str) -> HistoryLost:
    return HistoryLost(
        f"{table} is another table than the one of that name that {consumer!r} captured before, which was renamed.",
        actions=[capture_with("To capture all of the new one", table, consumer, from_="earliest")],
    )
