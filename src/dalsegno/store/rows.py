"""Rows to model and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Table, and_

from dalsegno.model.captures import (
    ADDED_FILES,
    Capture,
    CapturedTable,
    CaptureState,
    ChangeKind,
    Checkpoint,
    Manner,
    Mode,
)
from dalsegno.model.snapshots import Operation, Position
from dalsegno.model.tables import TableName
from dalsegno.store import tables

POSITION_FIELDS = tuple(field.name for field in fields(Position))


def position_values(position: Position, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": getattr(position, name) for name in POSITION_FIELDS}


def position_of(row: RowMapping, table: Table, prefix: str = "") -> Position:
    return Position(**{name: row[table.c[f"{prefix}{name}"]] for name in POSITION_FIELDS})


def is_at(table: Table, position: Position) -> ColumnElement[bool]:
    """``Position.is_at`` as a condition."""
    return and_(
        table.c.table_uuid == position.table_uuid,
        table.c.branch == position.branch,
        table.c.snapshot_id.is_not_distinct_from(position.snapshot_id),
    )


def capture_values(capture: Capture) -> dict[str, Any]:
    return {
        "id": capture.id,
        "consumer": capture.consumer,
        "state": capture.state.value,
        "created_at": capture.created_at,
        "created_by": capture.created_by,
        "expires_at": capture.expires_at,
    }


def captured_table_values(capture: Capture) -> list[dict[str, Any]]:
    return [
        {
            "capture_id": capture.id,
            "ordinal": ordinal,
            "consumer": capture.consumer,
            "table_name": str(captured.table),
            "pending": True,
            **position_values(captured.after, "after_"),
            **position_values(captured.upto, "upto_"),
            "is_first": captured.is_first,
            "is_full": captured.is_full,
            "change_table": str(captured.change_table),
            "dropped": False,
            "location": captured.location,
            "manner": manner_values(captured.manner),
            "details": dict(captured.details),
        }
        for ordinal, captured in enumerate(capture.tables)
    ]


def manner_values(manner: Manner) -> dict[str, Any]:
    return {
        "changes": manner.changes.value,
        "operations": sorted(operation.value for operation in manner.operations),
        "keys": list(manner.keys),
        "by_row_id": manner.by_row_id,
        "has_deleted_keys": manner.has_deleted_keys,
        "mode": manner.mode.value,
    }


def manner_of(values: Mapping[str, Any]) -> Manner:
    if not values:
        return ADDED_FILES
    return Manner(
        ChangeKind(values["changes"]),
        frozenset(map(Operation, values["operations"])),
        tuple(values["keys"]),
        values["by_row_id"],
        values.get("has_deleted_keys", False),
        # Captures that were recorded before there were views do not say.
        Mode(values.get("mode", Mode.ICDC)),
    )


def captures_of(rows: Iterable[RowMapping]) -> list[Capture]:
    """One capture per run of rows with the same id, in the order they come."""
    return [_capture_of(list(group)) for _, group in groupby(rows, lambda row: row[tables.captures.c.id])]


def _capture_of(rows: list[RowMapping]) -> Capture:
    head, columns = rows[0], tables.captures.c
    return Capture(
        id=head[columns.id],
        consumer=head[columns.consumer],
        state=CaptureState(head[columns.state]),
        created_at=head[columns.created_at],
        created_by=head[columns.created_by],
        expires_at=head[columns.expires_at],
        tables=tuple(_captured_table_of(row) for row in rows),
        settled_at=head[columns.settled_at],
        settled_by=head[columns.settled_by],
        reason=head[columns.reason],
        dropped_at=head[columns.dropped_at],
    )


def _captured_table_of(row: RowMapping) -> CapturedTable:
    columns = tables.capture_tables.c
    return CapturedTable(
        table=TableName.of(row[columns.table_name]),
        after=position_of(row, tables.capture_tables, "after_"),
        upto=position_of(row, tables.capture_tables, "upto_"),
        is_first=row[columns.is_first],
        is_full=row[columns.is_full],
        change_table=TableName.of(row[columns.change_table]),
        location=row[columns.location],
        manner=manner_of(row[columns.manner]),
        details=row[columns.details],
    )


def checkpoint_position_values(checkpoint_id: int, positions: Mapping[TableName, Position]) -> list[dict[str, Any]]:
    return [
        {"checkpoint_id": checkpoint_id, "table_name": str(table), **position_values(position)}
        for table, position in positions.items()
    ]


def checkpoints_of(rows: Iterable[RowMapping]) -> list[Checkpoint]:
    return [_checkpoint_of(list(group)) for _, group in groupby(rows, lambda row: row[tables.checkpoints.c.id])]


def _checkpoint_of(rows: list[RowMapping]) -> Checkpoint:
    head, columns = rows[0], tables.checkpoints.c
    return Checkpoint(
        id=head[columns.id],
        consumer=head[columns.consumer],
        capture_id=head[columns.capture_id],
        moved_at=head[columns.moved_at],
        moved_by=head[columns.moved_by],
        reason=head[columns.reason],
        positions={
            TableName.of(row[tables.checkpoint_positions.c.table_name]): position_of(row, tables.checkpoint_positions)
            for row in rows
        },
    )
