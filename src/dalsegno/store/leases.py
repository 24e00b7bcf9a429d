"""Duties that one process at a time has."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from dalsegno.store import row_queries
from dalsegno.store.database import lock
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import leases


def lease_row(connection: Connection, name: str) -> Row | None:
    return row_queries.row(connection, select(leases).where(leases.c.name == name))


def take(connection: Connection, name: str, owner: str, seen: Row | None) -> Row | None:
    """Make it the owner's, if it still is as it was seen; None if it is not."""
    lock(connection, f"lease {name}")
    found = lease_row(connection, name)
    if found != seen:
        return None
    if found is None:
        connection.execute(insert(leases).values(name=name, owner=owner, term=1, beat=0))
    else:
        mine = update(leases).where(leases.c.name == name)
        connection.execute(mine.values(owner=owner, term=found["term"] + 1, beat=0))
    return lease_row(connection, name)


def renew(connection: Connection, name: str, owner: str, term: int) -> bool:
    """False if it is somebody else's by now."""
    mine = (leases.c.name == name, leases.c.owner == owner, leases.c.term == term)
    return connection.execute(update(leases).where(*mine).values(beat=leases.c.beat + 1)).rowcount == 1


def release(connection: Connection, name: str, owner: str, term: int) -> None:
    mine = (leases.c.name == name, leases.c.owner == owner, leases.c.term == term)
    connection.execute(update(leases).where(*mine).values(owner=None))
