"""How far something that goes through all events has come."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from dalsegno.store.database import lock
from dalsegno.store.service_tables import progress


def upto(connection: Connection, name: str) -> int | None:
    """None: it has never begun."""
    return connection.execute(select(progress.c.upto).where(progress.c.name == name)).scalar()


def count_up(connection: Connection, name: str) -> None:
    """Write something, whatever there is."""
    lock(connection, f"progress {name}")
    found = connection.execute(update(progress).where(progress.c.name == name).values(upto=progress.c.upto + 1))
    if found.rowcount == 0:
        connection.execute(insert(progress).values(name=name, upto=1))


def move(connection: Connection, name: str, number: int) -> None:
    """Never back: somebody who had the duty before may be late."""
    known = upto(connection, name)
    if known is None:
        connection.execute(insert(progress).values(name=name, upto=number))
    elif number > known:
        connection.execute(update(progress).where(progress.c.name == name).values(upto=number))
