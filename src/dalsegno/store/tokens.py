"""Digests of the tokens that the server lets in."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from dalsegno.store.database import lock
from dalsegno.store.service_tables import tokens


def valid(connection: Connection) -> list[str]:
    return list(connection.execute(select(tokens.c.digest).where(tokens.c.revoked_at.is_(None))).scalars())


def add_first(connection: Connection, digest: str, *, by: str, now: datetime) -> bool:
    """False if there was one before: several nodes may start at once."""
    lock(connection, "tokens")
    if connection.execute(select(tokens.c.digest).limit(1)).first() is not None:
        return False
    _add(connection, digest, by, now)
    return True


def replace_all(connection: Connection, digest: str, *, by: str, now: datetime) -> None:
    """From now on this one is valid, and no other."""
    lock(connection, "tokens")
    connection.execute(update(tokens).where(tokens.c.revoked_at.is_(None)).values(revoked_at=now))
    _add(connection, digest, by, now)


def _add(connection: Connection, digest: str, by: str, now: datetime) -> None:
    connection.execute(insert(tokens).values(digest=digest, created_at=now, created_by=by))
