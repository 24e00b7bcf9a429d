"""Statements about checkpoints; every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, exists, insert, literal, select, update
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from dalsegno.model.captures import Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import rows
from dalsegno.store.tables import checkpoint_positions, checkpoints, positions


def remove(connection: Connection, consumer: str, table: TableName) -> None:
    """Take a mark away; what moved it stays in the history."""
    connection.execute(delete(positions).where(positions.c.consumer == consumer, positions.c.table_name == str(table)))


def append(
    connection: Connection,
    consumer: str,
    reached: Mapping[TableName, Position],
    *,
    capture_id: str | None,
    by: str,
    now: datetime,
    reason: str,
) -> Checkpoint:
    """Add an entry to the history; the marks themselves are moved by ``move``."""
    values = {
        "consumer": consumer,
        "capture_id": capture_id,
        "moved_at": now,
        "moved_by": by,
        "reason": reason,
    }
    number = connection.execute(insert(checkpoints).values(values).returning(checkpoints.c.id)).scalar_one()
    connection.execute(insert(checkpoint_positions), rows.checkpoint_position_values(number, reached))
    return Checkpoint(
        id=number,
        consumer=consumer,
        capture_id=capture_id,
        moved_at=now,
        moved_by=by,
        reason=reason,
        positions=dict(reached),
    )


def move(
    connection: Connection,
    checkpoint: Checkpoint,
    table: TableName,
    expected: Position | None,
) -> bool:
    """Move the mark to where the checkpoint says, and tell whether it stood where it was expected."""
    key = (positions.c.consumer == checkpoint.consumer) & (positions.c.table_name == str(table))
    values = rows.position_values(checkpoint.positions[table]) | {"checkpoint_id": checkpoint.id}
    statement: ReturningInsert[tuple[int]] | ReturningUpdate[tuple[int]]
    if expected is not None:
        is_there = rows.is_at(positions, expected)
        statement = update(positions).where(key, is_there).values(values).returning(positions.c.checkpoint_id)
    else:
        values |= {"consumer": checkpoint.consumer, "table_name": str(table)}
        new = select(*(literal(value, positions.c[name].type) for name, value in values.items()))
        if_absent = new.where(~exists().where(key))
        statement = insert(positions).from_select(list(values), if_absent).returning(positions.c.checkpoint_id)
    return connection.execute(statement).first() is not None
