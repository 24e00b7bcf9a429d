"""How far consumers are behind, as it was when somebody last looked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, insert, select, tuple_, update

from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.service_tables import lags

Key = tuple[str, str]


def all_lags(connection: Connection) -> list[Row]:
    return row_queries.rows(connection, select(lags).order_by(lags.c.consumer, lags.c.table_name))


def save(
    connection: Connection,
    key: Key,
    *,
    snapshots: int | None,
    oldest_at: datetime | None,
    problem: str | None,
    now: datetime,
) -> None:
    values = {"snapshots": snapshots, "oldest_at": oldest_at, "problem": problem, "measured_at": now}
    if connection.execute(update(lags).where(_is(key)).values(**values)).rowcount == 0:
        connection.execute(insert(lags).values(consumer=key[0], table_name=key[1], **values))


def told_at(connection: Connection, key: Key) -> datetime | None:
    return connection.execute(select(lags.c.told_at).where(_is(key))).scalar()


def set_told(connection: Connection, key: Key, *, was: datetime | None, now: datetime | None) -> bool:
    """False if somebody else was first."""
    before = lags.c.told_at.is_(None) if was is None else lags.c.told_at == was
    return connection.execute(update(lags).where(_is(key), before).values(told_at=now)).rowcount == 1


def forget_others(connection: Connection, keys: Iterable[Key]) -> None:
    """Keep those of these consumers and tables alone."""
    known = {(row["consumer"], row["table_name"]) for row in all_lags(connection)}
    if gone := known - set(keys):
        connection.execute(delete(lags).where(tuple_(lags.c.consumer, lags.c.table_name).in_(list(gone))))


def _is(key: Key) -> ColumnElement[bool]:
    return (lags.c.consumer == key[0]) & (lags.c.table_name == key[1])
