"""Messages to people that were not sent yet, and those that were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.service_tables import outbox


def add(connection: Connection, key: str, channels: Iterable[str], message: Mapping[str, Any], now: datetime) -> None:
    """Leave a message for each channel, unless there is one about the same."""
    rows = [
        {"key": key, "channel": name, "message": dict(message), "created_at": now, "next_at": now, "attempts": 0}
        for name in sorted(set(channels))
    ]
    if rows:
        from sqlalchemy.dialects import postgresql, sqlite  # noqa: PLC0415 - PostgreSQL's takes long to import

        new = sqlite.insert(outbox) if connection.dialect.name == "sqlite" else postgresql.insert(outbox)
        connection.execute(new.on_conflict_do_nothing(index_elements=["key", "channel"]), rows)


def due(connection: Connection, now: datetime, limit: int) -> list[Row]:
    """Those that are to be sent, the longest waiting first."""
    found = select(outbox).where(outbox.c.next_at <= now).order_by(outbox.c.next_at, outbox.c.id)
    return row_queries.rows(connection, found.limit(limit))


def take(connection: Connection, row: Row, next_at: datetime) -> bool:
    """Make one try ours, and say when the next one is due should we die; False if somebody else was first."""
    mine = (outbox.c.id == row["id"], outbox.c.attempts == row["attempts"], outbox.c.next_at.is_not(None))
    taken = update(outbox).where(*mine).values(attempts=row["attempts"] + 1, next_at=next_at)
    return connection.execute(taken).rowcount == 1


def mark_sent(connection: Connection, message_id: int, now: datetime) -> None:
    connection.execute(update(outbox).where(outbox.c.id == message_id).values(sent_at=now, next_at=None, problem=None))


def mark_failed(connection: Connection, message_id: int, problem: str, next_at: datetime | None) -> None:
    """None: nobody tries again."""
    unsent = (outbox.c.id == message_id, outbox.c.sent_at.is_(None))
    connection.execute(update(outbox).where(*unsent).values(problem=problem, next_at=next_at))


def waiting(connection: Connection) -> int:
    return connection.execute(select(func.count()).where(outbox.c.next_at.is_not(None))).scalar_one()


def forget(connection: Connection, before: datetime) -> None:
    """Those that were dealt with before."""
    connection.execute(delete(outbox).where(outbox.c.next_at.is_(None), outbox.c.created_at < before))
