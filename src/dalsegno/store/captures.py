"""Statements about captures; every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from dalsegno.model.captures import MOVES, Capture, CaptureState
from dalsegno.model.tables import TableName
from dalsegno.store import rows
from dalsegno.store.tables import capture_tables, captures


def add(connection: Connection, capture: Capture) -> None:
    """Write the capture; the unique indexes refuse a second one of the same range or change table."""
    connection.execute(insert(captures).values(rows.capture_values(capture)))
    # Two consumers may want the same change tables: taken in the same order, one waits for the other.
    in_order = sorted(rows.captured_table_values(capture), key=lambda values: str(values["change_table"]))
    connection.execute(insert(capture_tables), in_order)


def change_state(connection: Connection, capture_id: str, to: CaptureState, **values: Any) -> bool:
    """Go to the state if there is a way there, and tell whether there was."""
    origins = [state.value for state, reachable in MOVES.items() if to in reachable]
    done = connection.execute(
        update(captures)
        .where(captures.c.id == capture_id, captures.c.state.in_(origins))
        .values(state=to.value, **values)
    )
    return done.rowcount == 1


def settle(
    connection: Connection,
    capture_id: str,
    to: CaptureState,
    *,
    by: str,
    now: datetime,
    reason: str | None = None,
) -> bool:
    """End the capture and free its range; tell whether that was still possible."""
    if not change_state(connection, capture_id, to, settled_at=now, settled_by=by, reason=reason):
        return False
    connection.execute(update(capture_tables).where(capture_tables.c.capture_id == capture_id).values(pending=False))
    return True


def hand_over(connection: Connection, capture_id: str, giver: str, taker: str) -> None:
    theirs = (captures.c.id == capture_id) & (captures.c.created_by == giver)
    connection.execute(update(captures).where(theirs).values(created_by=taker))


def want_commit(connection: Connection, capture_ids: Iterable[str], root_run: str) -> None:
    """Remember that a run has processed captures; they may have to wait for others."""
    which = captures.c.id.in_(list(capture_ids))
    connection.execute(update(captures).where(which).values(commit_wanted_by=root_run))


def wanted_by(connection: Connection, root_run: str) -> list[str]:
    """The pending captures that a run has processed."""
    pending_states = [state.value for state in CaptureState if state.is_pending]
    query = select(captures.c.id).where(captures.c.commit_wanted_by == root_run, captures.c.state.in_(pending_states))
    return sorted(connection.scalars(query))


def add_details(connection: Connection, capture_id: str, details: Mapping[TableName, Mapping[str, Any]]) -> None:
    for table, found in details.items():
        of_table = (capture_tables.c.capture_id == capture_id) & (capture_tables.c.table_name == str(table))
        connection.execute(update(capture_tables).where(of_table).values(details=dict(found)))


def mark_dropped(connection: Connection, capture_id: str, now: datetime) -> None:
    settled = [state.value for state in CaptureState if not state.is_pending]
    done = connection.execute(
        update(captures)
        .where(captures.c.id == capture_id, captures.c.dropped_at.is_(None), captures.c.state.in_(settled))
        .values(dropped_at=now)
    )
    if done.rowcount == 1:
        connection.execute(update(capture_tables).where(capture_tables.c.capture_id == capture_id).values(dropped=True))
