"""Which finished runs may go, and what goes with them.

A run goes with all that it started, and with the run that started it. Those that captures name stay: an audit reads
what they consumed. So do the newest of each workflow, and whatever is open.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, String, and_, cast, delete, exists, literal, not_, select

from dalsegno.store.run_tables import events, flows, inbox, runs, signal_waits, steps, workflows
from dalsegno.store.runs import OPEN
from dalsegno.store.tables import captures


def old_roots(connection: Connection, before: datetime, least: int, *, after: str = "", limit: int) -> list[str]:
    """Runs that somebody or something started and that may be old enough, by id; those behind ``after``."""
    found = (
        select(runs.c.id)
        .join(workflows, workflows.c.id == runs.c.workflow_id)
        .where(_is_old(before, least), runs.c.root_run == runs.c.id, runs.c.id > after, not_(_is_named()))
        .order_by(runs.c.id)
        .limit(limit)
    )
    return list(connection.execute(found).scalars())


def delete_family(connection: Connection, root: str, before: datetime, least: int) -> list[tuple[str, int]]:
    """Delete a run with all that it started, if nothing speaks against it: the workflow and number of each."""
    family = select(runs.c.id).where(runs.c.root_run == root)
    # Somebody may be about to restart one of them.
    size = len(connection.execute(family.with_for_update()).all())
    may_go = (
        select(runs.c.workflow_id, runs.c.number)
        .join(workflows, workflows.c.id == runs.c.workflow_id)
        .where(runs.c.root_run == root, _is_old(before, least), not_(_is_named()))
    )
    going = [(workflow_id, number) for workflow_id, number in connection.execute(may_go)]
    if len(going) < size:
        return []
    for table in (steps, flows, events, inbox, signal_waits):
        connection.execute(delete(table).where(table.c.run_id.in_(family)))
    connection.execute(delete(runs).where(runs.c.root_run == root))
    return going


def delete_events(
    connection: Connection, before: datetime, least: int, *, after: int = 0, limit: int
) -> tuple[int, int] | None:
    """Delete old events of old runs that stay: how many, and up to which number was looked at; None: that was all."""
    page = list(
        connection.execute(
            select(events.c.id, events.c.run_id, events.c.happened_at)
            .where(events.c.id > after)
            .order_by(events.c.id)
            .limit(limit)
        )
    )
    # They come in the order of time, or nearly so.
    old = {(number, run_id) for number, run_id, at in page if at < before}
    if not old:
        return None
    finished = (
        select(runs.c.id)
        .join(workflows, workflows.c.id == runs.c.workflow_id)
        .where(runs.c.id.in_({run_id for _, run_id in old}), _is_old(before, least))
    )
    ended = set(connection.execute(finished).scalars())
    numbers = [number for number, run_id in old if run_id in ended]
    if numbers:
        connection.execute(delete(events).where(events.c.id.in_(numbers)))
    return len(numbers), page[-1][0]


def ended_before(connection: Connection, keys: Collection[tuple[str, int]], before: datetime) -> set[tuple[str, int]]:
    """Those of the runs, by workflow and number, that ended before, or are not there any more."""
    wanted = {workflow_id for workflow_id, _ in keys}
    found = connection.execute(
        select(runs.c.workflow_id, runs.c.number, runs.c.status, runs.c.ended_at).where(
            runs.c.workflow_id.in_(wanted), runs.c.number.in_({number for _, number in keys})
        )
    )
    needed = {
        (workflow_id, number)
        for workflow_id, number, status, ended_at in found
        if status in OPEN or ended_at is None or ended_at >= before
    }
    return set(keys) - needed


def _is_old(before: datetime, least: int) -> ColumnElement[bool]:
    """Of a run beside its workflow: whether it ended long ago, and is none of the newest."""
    return and_(runs.c.status.not_in(OPEN), runs.c.ended_at < before, runs.c.number <= workflows.c.last_run - least)


def _is_named() -> ColumnElement[bool]:
    """Whether a capture is this run's, as ``model.captures.actor_of_run`` names it."""
    actor = literal("run ") + runs.c.workflow_id + "/" + cast(runs.c.number, String)
    return exists().where(captures.c.created_by == actor)
