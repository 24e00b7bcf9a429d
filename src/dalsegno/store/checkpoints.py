"""Statements about checkpoints; every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, exists, insert, literal, select, update
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from dalsegno.model.captures import Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import rows
from dalsegno.store.tables import checkpoint_positions, checkpoints, positions


@dataclass(frozen=True)
class Mark:
    """Where one consumer stands in one table, and who put the mark there."""

    consumer: str
    table: TableName
    position: Position
    checkpoint_id: int
    #: None where somebody set the checkpoint by hand.
    capture_id: str | None
    moved_at: datetime
    moved_by: str
    reason: str


def marks(connection: Connection, consumer: str | None = None, table: TableName | None = None) -> list[Mark]:
    query = select(positions, checkpoints).join(checkpoints, checkpoints.c.id == positions.c.checkpoint_id)
    if consumer is not None:
        query = query.where(positions.c.consumer == consumer)
    if table is not None:
        query = query.where(positions.c.table_name == str(table))
    found = connection.execute(query.order_by(positions.c.consumer, positions.c.table_name))
    return [
        Mark(
            consumer=row[positions.c.consumer],
            table=TableName.of(row[positions.c.table_name]),
            position=rows.position_of(row, positions),
            checkpoint_id=row[checkpoints.c.id],
            capture_id=row[checkpoints.c.capture_id],
            moved_at=row[checkpoints.c.moved_at],
            moved_by=row[checkpoints.c.moved_by],
            reason=row[checkpoints.c.reason],
        )
        for row in found.mappings()
    ]


def standing(connection: Connection) -> dict[tuple[str, str], Position]:
    """Where every consumer stands in every table, by the names of both, and nothing else about it."""
    columns = [positions.c[name] for name in rows.POSITION_FIELDS]
    found = connection.execute(select(positions.c.consumer, positions.c.table_name, *columns))
    return {(row[0], row[1]): Position(*row[2:]) for row in found}


def mark(connection: Connection, consumer: str, table: TableName) -> Mark | None:
    return next(iter(marks(connection, consumer, table)), None)


def last_of_table(connection: Connection, consumer: str, table_uuid: str) -> tuple[TableName, Position] | None:
    """Where the consumer's newest move on a table led, and what the table was called then."""
    columns = [checkpoint_positions.c[name] for name in rows.POSITION_FIELDS]
    query = (
        select(checkpoint_positions.c.table_name, *columns)
        .join(checkpoints, checkpoints.c.id == checkpoint_positions.c.checkpoint_id)
        .where(checkpoints.c.consumer == consumer, checkpoint_positions.c.table_uuid == table_uuid)
        .order_by(checkpoints.c.id.desc())
        .limit(1)
    )
    found = connection.execute(query).first()
    return None if found is None else (TableName.of(found[0]), Position(*found[1:]))


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


def history(
    connection: Connection,
    consumer: str | None = None,
    table: TableName | None = None,
    capture_id: str | None = None,
) -> list[Checkpoint]:
    """Newest first."""
    query = select(checkpoints, checkpoint_positions).join(checkpoint_positions)
    if consumer is not None:
        query = query.where(checkpoints.c.consumer == consumer)
    if capture_id is not None:
        query = query.where(checkpoints.c.capture_id == capture_id)
    if table is not None:
        moves = checkpoint_positions.alias()
        of_table = select(moves.c.checkpoint_id).where(moves.c.table_name == str(table))
        query = query.where(checkpoints.c.id.in_(of_table))
    found = connection.execute(query.order_by(checkpoints.c.id.desc(), checkpoint_positions.c.table_name))
    return rows.checkpoints_of(found.mappings())
