"""From the model to rows; ``capture_queries`` leads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table, and_

from dalsegno.model.captures import Capture, CaptureSpec
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store.capture_queries import POSITION_FIELDS


def position_values(position: Position, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": getattr(position, name) for name in POSITION_FIELDS}


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
            "capture_spec": spec_values(captured.spec),
            "details": dict(captured.details),
        }
        for ordinal, captured in enumerate(capture.tables)
    ]


def spec_values(spec: CaptureSpec) -> dict[str, Any]:
    return {
        "changes": spec.changes.value,
        "operations": sorted(operation.value for operation in spec.operations),
        "keys": list(spec.keys),
        "by_row_id": spec.by_row_id,
        "has_deleted_keys": spec.has_deleted_keys,
        "mode": spec.mode.value,
    }


def checkpoint_position_values(checkpoint_id: int, positions: Mapping[TableName, Position]) -> list[dict[str, Any]]:
    return [
        {"checkpoint_id": checkpoint_id, "table_name": str(table), **position_values(position)}
        for table, position in positions.items()
    ]
