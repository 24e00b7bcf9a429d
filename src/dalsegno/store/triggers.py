"""Triggers that are watched: up to where each was dealt with, and when there is something to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from dalsegno.model.runs import RunStatus
from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import runs, triggers, workflows


def of_workflow(connection: Connection, workflow_id: str) -> list[Row]:
    found = select(triggers).where(triggers.c.workflow_id == workflow_id)
    return row_queries.rows(connection, found.order_by(triggers.c.kind, triggers.c.name))


def of_kind(connection: Connection, kind: str) -> list[Row]:
    found = select(triggers).where(triggers.c.kind == kind)
    return row_queries.rows(connection, found.order_by(triggers.c.workflow_id, triggers.c.name))


def watched(connection: Connection, kind: str) -> list[Row]:
    """All of a kind, each with the version of its workflow that is active."""
    found = select(triggers, workflows.c.active_version).join(workflows, workflows.c.id == triggers.c.workflow_id)
    return row_queries.rows(connection, found.where(triggers.c.kind == kind).order_by(triggers.c.workflow_id))


def with_open_runs(connection: Connection) -> set[str]:
    """The workflows of which a run has not ended."""
    statuses = [status.value for status in RunStatus if not status.is_final]
    found = select(runs.c.workflow_id).where(runs.c.status.in_(statuses)).distinct()
    return set(connection.execute(found).scalars())


def due(connection: Connection, kind: str, now: datetime, limit: int = 100) -> list[Row]:
    """Those that there is something to do about, the longest waiting first."""
    found = select(triggers).where(triggers.c.kind == kind, triggers.c.next_at <= now)
    return row_queries.rows(connection, found.order_by(triggers.c.next_at).limit(limit))


def next_at(connection: Connection, kind: str) -> datetime | None:
    found = select(func.min(triggers.c.next_at)).where(triggers.c.kind == kind)
    return connection.execute(found).scalar()


@dataclass(frozen=True)
class NewTrigger:
    """The row of a trigger that is registered for the first time."""

    upto: datetime | None = None
    next_at: datetime | None = None
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replaced:
    """Names of triggers that were registered, and of those that are not registered any more."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


def replace(
    connection: Connection,
    workflow_id: str,
    kind: str,
    wanted: Mapping[str, NewTrigger],
    registered: Mapping[str, Row],
) -> Replaced:
    """Register the wanted triggers of a kind, by name, and no others; those that were registered stay as they are."""
    added = tuple(name for name in wanted if name not in registered)
    removed = tuple(name for name in registered if name not in wanted)
    forget(connection, [registered[name] for name in removed])
    shared = {"workflow_id": workflow_id, "kind": kind}
    rows = [{**shared, "name": name, **vars(wanted[name])} for name in added]
    if rows:
        connection.execute(insert(triggers), rows)
    return Replaced(added, removed)


def change(connection: Connection, row: Row, **values: Any) -> bool:
    """False if somebody else has changed it since it was read, or it is not watched any more."""
    upto = triggers.c.upto.is_(None) if row["upto"] is None else triggers.c.upto == row["upto"]
    done = connection.execute(update(triggers).where(_is(row), upto).values(**values))
    return done.rowcount == 1


def forget(connection: Connection, rows: Iterable[Row]) -> None:
    found = [_is(row) for row in rows]
    if found:
        connection.execute(delete(triggers).where(or_(*found)))


def _is(row: Row) -> Any:
    return and_(*(triggers.c[name] == row[name] for name in ("workflow_id", "kind", "name")))
