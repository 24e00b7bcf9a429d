"""Where a consumer stands on a table that may have had another name: a checkpoint belongs to a table, not to its name.

A table keeps its uuid when it is renamed. So a checkpoint under another name follows its table, if that name has no
table of this uuid any more. While it has, there are two tables of one uuid, as after ``register_table``: nobody can
tell which of them is meant, so the user has to say where to begin.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalsegno.errors import CapturePending, HistoryLost, UnknownName
from dalsegno.hints import Action, Verb
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import capture_with
from dalsegno.store.refusals import settle_first

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Standing:
    """Where a consumer stands on a table."""

    #: None: it has no checkpoint on it.
    position: Position | None
    #: What is stored under the table's name, perhaps of another table that had it before.
    stored: Position | None
    #: What the table was called when the checkpoint was moved last, if it was something else.
    formerly: TableName | None = None


def standing(lake: Lake, consumer: str, table: LoadedTable, *, is_start_chosen: bool) -> Standing:
    """Where the consumer stands, or a refusal if that cannot be told. Nothing is changed."""
    uuid = table.metadata["table-uuid"]
    refuse_pending_elsewhere(lake, consumer, table)
    marks = lake.store.positions(consumer)
    own = next((mark for mark in marks if mark.table == table.name), None)
    stored = None if own is None else own.position
    elsewhere = sorted(
        (mark for mark in marks if mark.position.table_uuid == uuid and mark.table != table.name),
        key=lambda mark: -mark.checkpoint_id,
    )
    if own is not None and own.position.table_uuid == uuid:
        newer = [mark for mark in elsewhere if mark.checkpoint_id > own.checkpoint_id]
        moved = next((mark for mark in newer if not _has(lake, mark.table, uuid)), None)
        return Standing(stored, stored) if moved is None else Standing(moved.position, stored, moved.table)
    if elsewhere:
        known: tuple[TableName, Position] | None = (elsewhere[0].table, elsewhere[0].position)
    else:
        known = lake.store.last_position(consumer, uuid)
    if known is None:
        if own is None and not is_start_chosen and lake.store.checkpoints(consumer, table.name):
            raise _another_table(table.name, consumer)
        return Standing(stored, stored)
    if known[0] != table.name and _has(lake, known[0], uuid):
        if own is None and not is_start_chosen:
            raise _two_tables(table.name, known, consumer)
        return Standing(stored, stored)
    return Standing(known[1], stored, known[0])


def followed(lake: Lake, consumer: str, table: LoadedTable, *, is_start_chosen: bool) -> Position | None:
    """Where the consumer stands; a checkpoint under another name is carried over, and that is recorded."""
    found = standing(lake, consumer, table, is_start_chosen=is_start_chosen)
    if found.formerly is not None and found.position is not None:
        reason = f"{found.formerly} was renamed to {table.name}"
        if found.formerly == table.name:
            reason = f"{table.name} is the table again that had this name before"
        lake.store.carry_over(
            consumer,
            found.formerly,
            table.name,
            found.stored,
            found.position,
            by=lake.actor,
            now=lake.clock(),
            reason=reason,
        )
        log.warning("the checkpoint of %s goes on: %s", consumer, reason)
    return found.position


def refuse_pending_elsewhere(lake: Lake, consumer: str, table: LoadedTable) -> None:
    """Raise if the table has a pending capture under a name that it no longer has."""
    uuid = table.metadata["table-uuid"]
    for capture in lake.store.captures(consumer, pending_only=True):
        for captured in capture.tables:
            is_other = captured.table != table.name and captured.upto.table_uuid == uuid
            if is_other and not _has(lake, captured.table, uuid):
                raise CapturePending(
                    f"Consumer {consumer!r} has capture {capture.id} pending, of {captured.table}, which was renamed "
                    f"to {table.name} since.",
                    capture_id=capture.id,
                    actions=settle_first(capture.id),
                )


def _has(lake: Lake, name: TableName, uuid: str) -> bool:
    """Whether there is a table of this name and uuid; where the catalog is no longer known, nobody can say that not."""
    if name.catalog not in lake.settings.catalogs:
        return True
    try:
        return bool(lake.load(name).metadata["table-uuid"] == uuid)
    except UnknownName:
        return False


def _two_tables(table: TableName, known: tuple[TableName, Position], consumer: str) -> HistoryLost:
    name, position = known
    to = "earliest" if position.snapshot_id is None else str(position.snapshot_id)
    return HistoryLost(
        f"{table} has the uuid of {name}, on which {consumer!r} stands at {position}: whether it is the same table, or "
        "a copy that was registered under another name, cannot be told.",
        actions=[
            Action(
                "If it is the same table, to continue from there",
                Verb.SET_CHECKPOINT,
                {"table": str(table), "consumer": consumer, "to": to},
            ),
            capture_with("If it is a copy, to capture all of it", table, consumer, **{"from": "earliest"}),
        ],
    )


def _another_table(table: TableName, consumer: str) -> HistoryLost:
    return HistoryLost(
        f"{table} is another table than the one of that name that {consumer!r} captured before, which was renamed.",
        actions=[capture_with("To capture all of the new one", table, consumer, **{"from": "earliest"})],
    )
