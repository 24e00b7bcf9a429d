"""Processes that run steps, and the signs of life that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, exists, insert, select, update

from dalsegno.store import row_queries, waking
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import nodes, steps


def greet(connection: Connection, values: Mapping[str, Any]) -> None:
    connection.execute(insert(nodes).values(**values))


def say_alive(connection: Connection, node_id: str, now: datetime) -> bool:
    """False if the others have given it up."""
    mine = update(nodes).where(nodes.c.id == node_id)
    return connection.execute(mine.values(seen_at=now, beat=nodes.c.beat + 1)).rowcount == 1


def is_known(connection: Connection, node_id: str) -> bool:
    """Whether it is among those who work; nobody gives it up until the transaction ends."""
    mine = select(nodes.c.id).where(nodes.c.id == node_id).with_for_update(read=True, key_share=True)
    return connection.execute(mine).first() is not None


def node_rows(connection: Connection) -> list[Row]:
    return row_queries.rows(connection, select(nodes))


def say_left(connection: Connection, node_id: str, began: str, now: datetime) -> None:
    """It works no more, but has steps that others of its machine may take up at once: no process began so."""
    mine = update(nodes).where(nodes.c.id == node_id)
    connection.execute(mine.values(seen_at=now, beat=nodes.c.beat + 1, process_began=began))
    waking.announce(connection)


def forget(connection: Connection, node_ids: Sequence[str]) -> None:
    """What they had is anybody's."""
    if node_ids:
        connection.execute(delete(nodes).where(nodes.c.id.in_(list(node_ids))))


def give_up(connection: Connection, silent: Sequence[Row]) -> None:
    """Forget those that look as they looked when they were last seen; not one that is just claiming something."""
    for row in sorted(silent, key=lambda each: str(each["id"])):
        same = (nodes.c.id == row["id"], nodes.c.beat == row["beat"], nodes.c.seen_at == row["seen_at"])
        unused = select(nodes.c.id).where(*same).with_for_update(skip_locked=True)
        connection.execute(delete(nodes).where(nodes.c.id.in_(unused)))


def forget_idle(connection: Connection, node_ids: Sequence[str]) -> None:
    """Forget those of the dead whose steps have all been taken up."""
    has_steps = exists().where(steps.c.lease_owner == nodes.c.id, steps.c.lease_until.is_not(None))
    connection.execute(delete(nodes).where(nodes.c.id.in_(list(node_ids)), ~has_steps))
