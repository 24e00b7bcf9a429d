"""Runs, their events, and what was asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select, update

from dalsegno.model import messages as messages_model
from dalsegno.model.messages import Message
from dalsegno.model.runs import RunStatus
from dalsegno.store import row_queries
from dalsegno.store.database import lock, try_lock
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import events, inbox, runs

OPEN = [status.value for status in RunStatus if not status.is_final]


def add_run(connection: Connection, values: Mapping[str, Any]) -> None:
    connection.execute(insert(runs).values(**values))


def revision_of(connection: Connection, run_id: str) -> int | None:
    """None: there is no such run."""
    return connection.execute(_REVISION, {"run": run_id}).scalar()


_REVISION = select(runs.c.revision).where(runs.c.id == bindparam("run"))


#: Columns that can be large.
_PARAMS = ("params", "run_params")
_WITHOUT_PARAMS = [column for column in runs.c if column.name not in _PARAMS]


def run_rows(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None, with_params: bool = False
) -> list[Row]:
    """Newest first; without their parameters, unless they are wanted."""
    found = (
        select(*(runs.c if with_params else _WITHOUT_PARAMS))
        .where(*conditions)
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    )
    return row_queries.rows(connection, found.limit(limit) if limit else found)


def asked_before(connection: Connection, workflow_id: str, idempotency_key: str) -> Row | None:
    found = select(runs).where(runs.c.workflow_id == workflow_id, runs.c.idempotency_key == idempotency_key)
    return row_queries.row(connection, found)


def hold(connection: Connection, run_id: str) -> None:
    """Nobody else changes the run until the transaction ends.

    Whoever needs several locks takes them in this order, so that no two wait for each other: the workflow's, the runs'
    in the order of their ids, the signals', the consumers' of captures, the permits'.
    """
    lock(connection, f"run {run_id}")


def try_hold(connection: Connection, run_id: str) -> bool:
    """As ``hold``; False if somebody else is changing it now."""
    return try_lock(connection, f"run {run_id}")


def hold_workflow(connection: Connection, workflow_id: str) -> None:
    """Nobody else starts or ends runs of the workflow until the transaction ends."""
    lock(connection, f"workflow {workflow_id}")


def change_run(connection: Connection, run_id: str, **values: Any) -> None:
    connection.execute(update(runs).where(runs.c.id == run_id).values(**values))


def set_revisions(connection: Connection, revisions: Mapping[str, int]) -> None:
    """By run."""
    if revisions:
        values = [{"run": run_id, "now": revision} for run_id, revision in sorted(revisions.items())]
        connection.execute(_SET_REVISION, values)


_SET_REVISION = update(runs).where(runs.c.id == bindparam("run")).values(revision=bindparam("now"))


def open_runs(connection: Connection, workflow_id: str) -> list[Row]:
    """Id, number, version and status of each, from the oldest to the newest."""
    return row_queries.rows(connection, _OPEN_RUNS.where(runs.c.workflow_id == workflow_id))


_OPEN_RUNS = (
    select(runs.c.id, runs.c.number, runs.c.version, runs.c.status)
    .where(runs.c.status.in_(OPEN))
    .order_by(runs.c.number)
)


def last_ended(connection: Connection, workflow_id: str) -> RunStatus | None:
    """How the newest of the runs that ended ended; one that was unblocked counts as stopped."""
    found = (
        select(runs.c.status, runs.c.reason)
        .where(runs.c.workflow_id == workflow_id, runs.c.status.not_in(OPEN))
        .order_by(runs.c.number.desc())
        .limit(1)
    )
    row = connection.execute(found).one_or_none()
    return RunStatus(row[0]) if row else None


def open_children(connection: Connection, flow_id: str, step_id: str) -> list[str]:
    """The runs that a subworkflow's step has started and that have not ended."""
    found = select(runs.c.id).where(
        runs.c.parent_flow == flow_id, runs.c.parent_step == step_id, runs.c.status.in_(OPEN)
    )
    return list(connection.execute(found).scalars())


def last_child(connection: Connection, flow_id: str, step_id: str) -> Row | None:
    """The run that a subworkflow's step has started last."""
    mine = (runs.c.parent_flow == flow_id, runs.c.parent_step == step_id)
    return next(iter(run_rows(connection, *mine, limit=1, with_params=True)), None)


def add_events(connection: Connection, happened: Sequence[Mapping[str, Any]]) -> None:
    if happened:
        connection.execute(insert(events), list(happened))


def send(connection: Connection, run_id: str, message: Message, now: datetime) -> None:
    """Leave something for whoever works on the run."""
    connection.execute(insert(inbox).values(run_id=run_id, message=messages_model.written(message), created_at=now))


def messages(connection: Connection, limit: int = 100) -> list[Row]:
    """The oldest that wait, each with its ``message``; those that only a newer version knows are left out."""
    found: list[Row] = []
    last = 0
    while len(found) < limit:
        page = row_queries.rows(connection, select(inbox).where(inbox.c.id > last).order_by(inbox.c.id).limit(limit))
        for row in page:
            message = messages_model.read(row["message"])
            if message is not None:
                found.append({**row, "message": message})
        if len(page) < limit:
            break
        last = page[-1]["id"]
    return found[:limit]


def forget_messages(connection: Connection, ids: Sequence[int]) -> list[int]:
    """Those of the messages that nobody else took first, or is taking now; they are this transaction's to act on."""
    free = select(inbox.c.id).where(inbox.c.id.in_(list(ids))).with_for_update(skip_locked=True)
    found = connection.execute(delete(inbox).where(inbox.c.id.in_(free)).returning(inbox.c.id)).scalars()
    return sorted(found)


def counts(connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, int]:
    """How many runs stand how."""
    found = select(runs.c.status, func.count()).where(*conditions).group_by(runs.c.status)
    return {status: number for status, number in connection.execute(found)}


def next_unique_id(connection: Connection, run_id: str) -> int | None:
    """None: there is no such run yet."""
    counted = (
        update(runs)
        .where(runs.c.id == run_id)
        .values(last_unique_id=runs.c.last_unique_id + 1)
        .returning(runs.c.last_unique_id)
    )
    return connection.execute(counted).scalar()


def overdue(connection: Connection, now: datetime) -> list[str]:
    """The runs that should have ended by now."""
    found = select(runs.c.id).where(runs.c.status == RunStatus.IN_PROGRESS.value, runs.c.deadline <= now)
    return list(connection.execute(found).scalars())


def touch_open_runs(connection: Connection, workflow_id: str) -> None:
    """Make every process read the open runs of a workflow again: something around them has changed."""
    for run_id in sorted(row["id"] for row in open_runs(connection, workflow_id)):
        touch(connection, run_id)


def touch(connection: Connection, run_id: str, **values: Any) -> None:
    """Change something of a run, so that every process reads it again."""
    hold(connection, run_id)
    change_run(connection, run_id, revision=runs.c.revision + 1, **values)


def open_below(connection: Connection, root_run: str) -> list[str]:
    """The runs that a run has started, itself included, and that have not ended."""
    below = (runs.c.root_run == root_run) | (runs.c.id == root_run)
    found = select(runs.c.id).where(below, runs.c.status.in_(OPEN))
    return list(connection.execute(found).scalars())
