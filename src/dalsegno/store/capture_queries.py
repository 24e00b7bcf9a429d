"""What is read of captures and checkpoints; see ``reading`` for the connections that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import groupby
from typing import Any

from dalsegno.model.captures import (
    ADDED_FILES,
    Capture,
    CapturedTable,
    CaptureSpec,
    CaptureState,
    ChangeKind,
    Checkpoint,
    Mode,
)
from dalsegno.model.snapshots import Operation, Position
from dalsegno.model.tables import TableName
from dalsegno.store import refusals
from dalsegno.store.reading import Row, one_of, row, rows, scalar, true

POSITION_FIELDS = tuple(field.name for field in fields(Position))
#: A list of columns, as a part of a query.
_POSITION = ", ".join(POSITION_FIELDS)


# Captures.


def matching(connection: Any, condition: str = "", **values: Any) -> list[Capture]:
    """Whole captures, newest first."""
    query = (
        "SELECT captures.*, capture_tables.* FROM captures"
        " JOIN capture_tables ON capture_tables.capture_id = captures.id"
        f"{f' WHERE {condition}' if condition else ''}"
        " ORDER BY captures.created_at DESC, captures.id DESC, capture_tables.ordinal"
    )
    found = rows(connection, query, **values)
    return [_capture(list(group)) for _, group in groupby(found, lambda each: each["id"])]


def listed(
    connection: Any,
    consumer: str | None,
    *,
    pending_only: bool,
    undropped_only: bool,
    limit: int | None = None,
    after: str | None = None,
) -> list[Capture]:
    """Newest first; so many at most, and those behind a capture, if these are given."""
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if consumer is not None:
        conditions.append("captures.consumer = :consumer")
        values["consumer"] = consumer
    if pending_only:
        condition, states = one_of("captures.state", (state.value for state in CaptureState if state.is_pending))
        conditions.append(condition)
        values |= states
    if undropped_only:
        conditions.append("captures.dropped_at IS NULL")
    if after is not None:
        conditions.append(
            "(captures.created_at, captures.id) < (SELECT created_at, id FROM captures WHERE id = :after)"
        )
        values["after"] = after
    condition = " AND ".join(conditions)
    if limit is None:
        return matching(connection, condition, **values)
    where = f" WHERE {condition}" if condition else ""
    newest = f"SELECT id FROM captures{where} ORDER BY created_at DESC, id DESC LIMIT :limit"
    return matching(connection, f"captures.id IN ({newest})", **values, limit=limit)


def the(connection: Any, capture_id: str) -> Capture:
    """The capture of this id."""
    for capture in matching(connection, "captures.id = :capture", capture=capture_id):
        return capture
    raise refusals.unknown_capture(capture_id, ids(connection))


def named(connection: Any, capture_ids: Iterable[str]) -> list[Capture]:
    """Those of these ids that are there, by id."""
    condition, values = one_of("captures.id", capture_ids)
    return sorted(matching(connection, condition, **values), key=lambda capture: capture.id)


def consumer(connection: Any, capture_id: str) -> str:
    """Whose it is: unlike all else about a capture, this can be read before the lock is held."""
    found = scalar(connection, "SELECT consumer FROM captures WHERE id = :capture", capture=capture_id)
    if found is None:
        raise refusals.unknown_capture(capture_id, ids(connection))
    return str(found)


def beginning_with(connection: Any, text: str) -> Capture:
    """The capture of this id, or the only one whose id begins with it."""
    found = ids(connection, text) if text else []
    if text in found or not found:
        return the(connection, text)
    if len(found) > 1:
        raise refusals.ambiguous_capture(text, found)
    return the(connection, found[0])


def ids(connection: Any, beginning: str = "") -> list[str]:
    # Not LIKE, which has wildcards, and for which SQLite takes upper and lower case for the same.
    query = "SELECT id FROM captures WHERE substr(id, 1, :length) = :beginning ORDER BY id"
    return [each["id"] for each in rows(connection, query, length=len(beginning), beginning=beginning)]


def pending(connection: Any, consumer: str, table: TableName) -> Capture | None:
    condition = f"consumer = :consumer AND table_name = :table AND pending = {true(connection)}"
    return _owner(connection, condition, consumer=consumer, table=str(table))


def owner(connection: Any, change_table: TableName) -> Capture | None:
    """The capture whose change table has this name now."""
    condition = f"change_table = :change_table AND dropped = {'0' if true(connection) == '1' else 'false'}"
    return _owner(connection, condition, change_table=str(change_table))


def _owner(connection: Any, condition: str, **values: str) -> Capture | None:
    chosen = f"captures.id IN (SELECT capture_id FROM capture_tables WHERE {condition})"
    return next(iter(matching(connection, chosen, **values)), None)


def _capture(found: list[Row]) -> Capture:
    head = found[0]
    return Capture(
        id=head["id"],
        consumer=head["consumer"],
        state=CaptureState(head["state"]),
        created_at=head["created_at"],
        created_by=head["created_by"],
        expires_at=head["expires_at"],
        tables=tuple(_captured_table(each) for each in found),
        settled_at=head["settled_at"],
        settled_by=head["settled_by"],
        reason=head["reason"],
        dropped_at=head["dropped_at"],
    )


def _captured_table(found: Row) -> CapturedTable:
    return CapturedTable(
        table=TableName.of(found["table_name"]),
        after=_position(found, "after_"),
        upto=_position(found, "upto_"),
        is_first=found["is_first"],
        is_full=found["is_full"],
        change_table=TableName.of(found["change_table"]),
        location=found["location"],
        spec=_spec(found["capture_spec"]),
        details=found["details"],
    )


def _spec(values: Mapping[str, Any]) -> CaptureSpec:
    if not values:
        return ADDED_FILES
    return CaptureSpec(
        ChangeKind(values["changes"]),
        frozenset(map(Operation, values["operations"])),
        tuple(values["keys"]),
        values["by_row_id"],
        values.get("has_deleted_keys", False),
        # Captures that were recorded before there were views do not say.
        Mode(values.get("mode", Mode.ICDC)),
    )


def _position(found: Row, prefix: str = "") -> Position:
    return Position(**{name: found[f"{prefix}{name}"] for name in POSITION_FIELDS})


# Checkpoints.


@dataclass(frozen=True)
class CheckpointPosition:
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


def marks(connection: Any, consumer: str | None = None, table: TableName | None = None) -> list[CheckpointPosition]:
    wanted = {"consumer": consumer, "table_name": None if table is None else str(table)}
    values = {name: value for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"positions.{name} = :{name}" for name in values)
    query = (
        f"SELECT positions.consumer, table_name, {_POSITION}, checkpoint_id, capture_id, moved_at, moved_by, reason"
        " FROM positions JOIN checkpoints ON checkpoints.id = positions.checkpoint_id"
        f"{f' WHERE {where}' if where else ''} ORDER BY positions.consumer, positions.table_name"
    )
    return [
        CheckpointPosition(
            consumer=found["consumer"],
            table=TableName.of(found["table_name"]),
            position=_position(found),
            checkpoint_id=found["checkpoint_id"],
            capture_id=found["capture_id"],
            moved_at=found["moved_at"],
            moved_by=found["moved_by"],
            reason=found["reason"],
        )
        for found in rows(connection, query, **values)
    ]


def mark(connection: Any, consumer: str, table: TableName) -> CheckpointPosition | None:
    return next(iter(marks(connection, consumer, table)), None)


def standing(connection: Any) -> dict[tuple[str, str], Position]:
    """Where every consumer stands in every table, by the names of both, and nothing else about it."""
    found = rows(connection, f"SELECT consumer, table_name, {_POSITION} FROM positions")
    return {(each["consumer"], each["table_name"]): _position(each) for each in found}


def last_of_table(connection: Any, consumer: str, table_uuid: str) -> tuple[TableName, Position] | None:
    """Where the consumer's newest move on a table led, and what the table was called then."""
    query = (
        f"SELECT table_name, {_POSITION} FROM checkpoint_positions"
        " JOIN checkpoints ON checkpoints.id = checkpoint_positions.checkpoint_id"
        " WHERE checkpoints.consumer = :consumer AND table_uuid = :table_uuid ORDER BY checkpoints.id DESC LIMIT 1"
    )
    found = row(connection, query, consumer=consumer, table_uuid=table_uuid)
    return None if found is None else (TableName.of(found["table_name"]), _position(found))


def history(
    connection: Any,
    consumer: str | None = None,
    table: TableName | None = None,
    capture_id: str | None = None,
    *,
    limit: int | None = None,
    below: int | None = None,
) -> list[Checkpoint]:
    """Newest first; so many at most, and those with ids below one, if these are given."""
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if consumer is not None:
        conditions.append("checkpoints.consumer = :consumer")
        values["consumer"] = consumer
    if capture_id is not None:
        conditions.append("checkpoints.capture_id = :capture")
        values["capture"] = capture_id
    if table is not None:
        of_table = "SELECT checkpoint_id FROM checkpoint_positions WHERE table_name = :table"
        conditions.append(f"checkpoints.id IN ({of_table})")
        values["table"] = str(table)
    if below is not None:
        conditions.append("checkpoints.id < :below")
        values["below"] = below
    if limit is not None:
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        conditions = [f"checkpoints.id IN (SELECT id FROM checkpoints{where} ORDER BY id DESC LIMIT :limit)"]
        values["limit"] = limit
    query = (
        "SELECT checkpoints.*, checkpoint_positions.* FROM checkpoints"
        " JOIN checkpoint_positions ON checkpoint_positions.checkpoint_id = checkpoints.id"
        f"{' WHERE ' if conditions else ''}{' AND '.join(conditions)}"
        " ORDER BY checkpoints.id DESC, checkpoint_positions.table_name"
    )
    found = rows(connection, query, **values)
    return [_checkpoint(list(group)) for _, group in groupby(found, lambda each: each["id"])]


def _checkpoint(found: list[Row]) -> Checkpoint:
    head = found[0]
    return Checkpoint(
        id=head["id"],
        consumer=head["consumer"],
        capture_id=head["capture_id"],
        moved_at=head["moved_at"],
        moved_by=head["moved_by"],
        reason=head["reason"],
        positions={TableName.of(each["table_name"]): _position(each) for each in found},
    )
