"""What the store holds, counted: for whoever watches over the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from dalsegno.model.captures import CaptureState
from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import events, inbox, leases, nodes, runs, steps
from dalsegno.store.runs import OPEN
from dalsegno.store.tables import capture_tables, captures, checkpoints, positions


def open_runs(connection: Connection) -> dict[tuple[str, ...], int]:
    """How many, by workflow and status."""
    found = (
        select(runs.c.workflow_id, runs.c.status, func.count())
        .where(runs.c.status.in_(OPEN))
        .group_by(runs.c.workflow_id, runs.c.status)
    )
    return {(workflow_id, status): count for workflow_id, status, count in connection.execute(found)}


def ready_steps(connection: Connection, now: datetime) -> tuple[int, datetime | None]:
    """How many steps could begin now, and since when the first of them could."""
    found = select(func.count(), func.min(steps.c.ready_at)).where(steps.c.ready_at <= now)
    count, oldest = connection.execute(found).one()
    return count, oldest


def claimed_steps(connection: Connection) -> int:
    return connection.execute(select(func.count()).where(steps.c.lease_until.is_not(None))).scalar_one()


def messages(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(inbox)).scalar_one()


def node_count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(nodes)).scalar_one()


def lease_rows(connection: Connection) -> list[Row]:
    return row_queries.rows(connection, select(leases).order_by(leases.c.name))


def last_event(connection: Connection) -> int:
    return connection.execute(select(func.max(events.c.id))).scalar() or 0


@dataclass(frozen=True)
class RunEvent:
    number: int
    at: datetime
    run_id: str
    workflow_id: str
    data: Mapping[str, Any]


def run_events(connection: Connection, after: int) -> list[RunEvent]:
    """What became of runs, behind the event of this number."""
    found = (
        select(events.c.id, events.c.happened_at, runs.c.id, runs.c.workflow_id, events.c.data)
        .join(runs, runs.c.id == events.c.run_id)
        .where(events.c.id > after, events.c.kind == "run")
        .order_by(events.c.id)
    )
    return [RunEvent(*row) for row in connection.execute(found)]


def marks(connection: Connection) -> list[Row]:
    """Where each consumer stands in each table, since when, and whose move that was."""
    found = (
        select(
            positions.c.consumer,
            positions.c.table_name,
            positions.c.timestamp_ms,
            checkpoints.c.moved_at,
            checkpoints.c.moved_by,
        )
        .join(checkpoints, checkpoints.c.id == positions.c.checkpoint_id)
        .order_by(positions.c.consumer, positions.c.table_name)
    )
    return row_queries.rows(connection, found)


def captures_since(connection: Connection, since: datetime) -> list[Row]:
    """The tables of what was captured since then, and of what was committed."""
    is_made = captures.c.state != CaptureState.PREPARING.value
    is_new = (captures.c.created_at >= since) | (captures.c.settled_at >= since)
    found = (
        select(
            captures.c.id,
            captures.c.consumer,
            captures.c.state,
            captures.c.created_at,
            captures.c.settled_at,
            capture_tables.c.table_name,
            capture_tables.c.details,
        )
        .join(capture_tables, capture_tables.c.capture_id == captures.c.id)
        .where(is_made, is_new)
    )
    return row_queries.rows(connection, found)
