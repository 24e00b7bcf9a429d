"""Statements about captures; every function works inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from dalsegno.model.captures import MOVES, Capture, CaptureState
from dalsegno.model.tables import TableName
from dalsegno.store import refusals, rows
from dalsegno.store.tables import capture_tables, captures


def add(connection: Connection, capture: Capture) -> None:
    """Write the capture; the unique indexes refuse a second one of the same range or change table."""
    connection.execute(insert(captures).values(rows.capture_values(capture)))
    # Two consumers may want the same change tables: taken in the same order, one waits for the other.
    in_order = sorted(rows.captured_table_values(capture), key=lambda values: str(values["change_table"]))
    connection.execute(insert(capture_tables), in_order)


def matching(connection: Connection, *conditions: ColumnElement[bool]) -> list[Capture]:
    """Whole captures, newest first."""
    query = select(captures, capture_tables).join(capture_tables).where(*conditions)
    newest_first = query.order_by(captures.c.created_at.desc(), captures.c.id.desc(), capture_tables.c.ordinal)
    return rows.captures_of(connection.execute(newest_first).mappings())


def the(connection: Connection, capture_id: str) -> Capture:
    """The capture of this id."""
    for capture in matching(connection, captures.c.id == capture_id):
        return capture
    raise refusals.unknown_capture(capture_id, ids(connection))


def named(connection: Connection, capture_ids: Iterable[str]) -> list[Capture]:
    """Those of these ids that are there, by id."""
    found = matching(connection, captures.c.id.in_(list(capture_ids)))
    return sorted(found, key=lambda capture: capture.id)


def consumer(connection: Connection, capture_id: str) -> str:
    """Whose it is: unlike all else about a capture, this can be read before the lock is held."""
    found = connection.scalar(select(captures.c.consumer).where(captures.c.id == capture_id))
    if found is None:
        raise refusals.unknown_capture(capture_id, ids(connection))
    return str(found)


def beginning_with(connection: Connection, text: str) -> Capture:
    """The capture of this id, or the only one whose id begins with it."""
    found = ids(connection, text) if text else []
    if text in found or not found:
        return the(connection, text)
    if len(found) > 1:
        raise refusals.ambiguous_capture(text, found)
    return the(connection, found[0])


def ids(connection: Connection, beginning: str = "") -> list[str]:
    query = select(captures.c.id).where(captures.c.id.startswith(beginning, autoescape=True))
    # SQLite takes upper and lower case for the same there.
    return [found for found in connection.scalars(query.order_by(captures.c.id)) if found.startswith(beginning)]


def pending(connection: Connection, consumer: str, table: TableName) -> Capture | None:
    condition = (
        (capture_tables.c.consumer == consumer) & (capture_tables.c.table_name == str(table)) & capture_tables.c.pending
    )
    return _owner(connection, condition)


def owner(connection: Connection, change_table: TableName) -> Capture | None:
    """The capture whose change table has this name now."""
    return _owner(connection, (capture_tables.c.change_table == str(change_table)) & ~capture_tables.c.dropped)


def _owner(connection: Connection, condition: ColumnElement[bool]) -> Capture | None:
    ids = select(capture_tables.c.capture_id).where(condition).scalar_subquery()
    return next(iter(matching(connection, captures.c.id.in_(ids))), None)


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
