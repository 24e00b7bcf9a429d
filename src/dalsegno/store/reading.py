"""Plain SQL that reads, on a connection of SQLAlchemy's or of SQLite's driver.

SQLAlchemy takes longer to load than a command takes that only looks something up. So what such commands read is plain
SQL, written once, which the engine and the server run through SQLAlchemy inside of their transactions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from dalsegno.store.sqlite_driver import sqlite
from dalsegno.store.values import refuse_unstorable

if TYPE_CHECKING:
    from sqlalchemy import TextClause

Row = Mapping[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

#: What SQLite has no type for, by the name of the column. A test compares this with the schema.
MOMENTS = frozenset(
    [
        "created_at",
        "changed_at",
        "deleted_at",
        "started_at",
        "ended_at",
        "deadline",
        "ready_at",
        "lease_until",
        "happened_at",
        "expires_at",
        "settled_at",
        "dropped_at",
        "moved_at",
        "recorded_at",
        "announced_at",
        "committed_at",
    ]
)
JSONS = frozenset(
    [
        "properties",
        "definition",
        "run_params",
        "params",
        "initiator",
        "tried",
        "taken",
        "loop",
        "failure",
        "outputs",
        "handle",
        "progress",
        "data",
        "wanted",
        "details",
        "capture_spec",
        "roles",
        "before_change",
        "after_change",
        "payload",
        "source",
        "snapshots",
    ]
)
FLAGS = frozenset(["is_paused", "pending", "dropped", "is_first", "is_full", "is_companion", "is_proven"])


class Readable(Protocol):
    """A store that can be read: ``Database``, or a ``SqliteFile``."""

    def reading(self) -> AbstractContextManager[Any]:
        """A transaction, as a connection that ``rows`` takes."""

    def close(self) -> None: ...


def rows(connection: Any, sql: str, **values: Any) -> list[Row]:
    """What a query finds; ``:name`` in it stands for a value."""
    if isinstance(connection, sqlite.Connection):
        refuse_unstorable(connection, None, sql, values, None, False)
        cursor = connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [_from_sqlite(names, record) for record in cursor]
    found = connection.execute(_text(sql), values)
    names = list(found.keys())
    if connection.dialect.name == "sqlite":
        return [_from_sqlite(names, record) for record in found]
    return [_from_postgres(names, record) for record in found]


def row(connection: Any, sql: str, **values: Any) -> Row | None:
    """The only one there can be, if it is there."""
    return next(iter(rows(connection, sql, **values)), None)


def scalar(connection: Any, sql: str, **values: Any) -> Any:
    found = row(connection, sql, **values)
    return None if found is None else next(iter(found.values()))


def one_of(column: str, wanted: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The condition that a column holds one of these, and its values."""
    values = {f"{column.rpartition('.')[2]}_{number}": each for number, each in enumerate(wanted)}
    # A list without anything in it is no SQL.
    return f"{column} IN ({', '.join(f':{name}' for name in values) or 'NULL'})", values


def true(connection: Any) -> str:
    """SQLite uses a partial index only for a query that says its condition in the same words, and ours say ``= 1``."""
    return "1" if isinstance(connection, sqlite.Connection) or connection.dialect.name == "sqlite" else "true"


@lru_cache(maxsize=256)
def _text(sql: str) -> TextClause:
    from sqlalchemy import text  # noqa: PLC0415 - whoever has a connection of SQLAlchemy's has loaded it

    return text(sql)


def _from_sqlite(names: list[str], record: Iterable[Any]) -> Row:
    return {name: _value(name, value) for name, value in zip(names, record, strict=True)}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in MOMENTS:
        # Whole numbers throughout: a float cannot hold today's microseconds exactly.
        return EPOCH + value * MICROSECOND
    if name in JSONS:
        return json.loads(value)
    return bool(value) if name in FLAGS else value


def _from_postgres(names: list[str], record: Iterable[Any]) -> Row:
    """The driver knows JSON and booleans; moments come in the session's time zone."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in zip(names, record, strict=True)
    }
