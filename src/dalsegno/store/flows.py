"""Flows and the states of their steps: rows to model and back, many at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, bindparam, case, func, insert, select, update

from dalsegno.model.runs import Ending, Flow, Graph, Loop, RunStatus, StepState, StepStatus, Tries
from dalsegno.store import row_queries
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import flows, steps


@dataclass(frozen=True)
class StepChange:
    """A step as it is now, and what else became known of it."""

    flow_id: str
    run_id: str
    state: StepState
    now: datetime
    lease_owner: str
    #: Some of ``params``, ``outputs``, ``handle`` and ``deadline``; the others stay as they are.
    update: Mapping[str, Any] = field(default_factory=dict)


#: Older versions of dalsegno take up a step whose time has come, so it never does. Only its being there counts.
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def add_flows(connection: Connection, new: Sequence[Mapping[str, Any]]) -> None:
    if new:
        connection.execute(insert(flows), list(new))


def change_flows(connection: Connection, changed: Sequence[Mapping[str, Any]]) -> None:
    """Set status, ending and times; ``key`` names the flow."""
    if changed:
        values: dict[str, Any] = {name: bindparam(name) for name in ("status", "ending", "ended_at")}
        in_order = sorted(changed, key=lambda each: str(each["key"]))
        connection.execute(update(flows).where(flows.c.id == bindparam("key")).values(**values), in_order)


def save_steps(connection: Connection, changes: Sequence[StepChange]) -> None:
    if not changes:
        return
    # In order, as whoever notes something of several steps does: so no two wait for each other.
    in_order = sorted(changes, key=lambda change: (change.flow_id, change.state.step_id))
    connection.execute(_upsert(connection.dialect.name), [_values(change) for change in in_order])


#: What is kept of a step beside its state.
UPDATED = ("params", "outputs", "handle", "deadline")


@cache
def _upsert(dialect: str) -> Insert:
    # PostgreSQL's takes long to import, and a capture never comes here.
    from sqlalchemy.dialects import postgresql, sqlite  # noqa: PLC0415

    statement = sqlite.insert(steps) if dialect == "sqlite" else postgresql.insert(steps)
    new = statement.excluded
    overwritten = (
        "status",
        "attempt",
        "tried",
        "ready_at",
        "fence",
        "ending",
        "taken",
        "loop",
        "failure",
        "ended_at",
    )
    values: dict[str, Any] = {name: new[name] for name in overwritten}
    # Every claim has a new fence. Whoever else changes a claimed step, to have it ended, does not become its owner.
    is_same_claim = (steps.c.fence == new.fence) & new.lease_owner.is_not(None)
    values |= {name: case((is_same_claim, steps.c[name]), else_=new[name]) for name in ("lease_owner", "lease_until")}
    values |= {name: func.coalesce(new[name], steps.c[name]) for name in UPDATED}
    # An attempt that is taken up again began when it was first taken.
    first = func.coalesce(steps.c.started_at, new.started_at)
    values["started_at"] = case((steps.c.attempt == new.attempt, first), else_=new.started_at)
    return statement.on_conflict_do_update(index_elements=[steps.c.flow_id, steps.c.step_id], set_=values)


def _values(change: StepChange) -> dict[str, Any]:
    state = change.state
    return {
        "flow_id": change.flow_id,
        "step_id": state.step_id,
        "run_id": change.run_id,
        "status": state.status.value,
        "attempt": state.attempt,
        "tried": [state.tried.user, state.tried.platform, state.tried.timeout],
        "ready_at": state.ready_at,
        "fence": state.fence,
        "ending": state.ending.value if state.ending else None,
        "taken": list(state.taken),
        "loop": asdict(state.loop) if state.loop else None,
        "failure": dict(state.failure) if state.failure else None,
        "lease_owner": change.lease_owner if state.is_claimed else None,
        "lease_until": NEVER if state.is_claimed else None,
        **{name: change.update.get(name) for name in UPDATED},
        "created_at": change.now,
        # Whoever looks for its signals does not begin it.
        "started_at": change.now if state.is_claimed and state.status is StepStatus.RUNNING else None,
        "ended_at": None if state.status.is_open else change.now,
    }


def state_of(row: Row) -> StepState:
    loop = row["loop"]
    return StepState(
        step_id=row["step_id"],
        status=StepStatus(row["status"]),
        attempt=row["attempt"],
        tried=Tries(*row["tried"]),
        ready_at=row["ready_at"],
        fence=row["fence"],
        is_claimed=row["lease_owner"] is not None,
        ending=Ending(row["ending"]) if row["ending"] else None,
        taken=tuple(row["taken"]),
        loop=_loop(loop) if loop else None,
        failure=row["failure"],
    )


def _loop(values: Mapping[str, Any]) -> Loop:
    worst = RunStatus(values["worst"]) if values["worst"] else None
    return Loop(**{**values, "worst": worst, "again": tuple(values["again"])})


_STATE = (
    "step_id",
    "status",
    "attempt",
    "tried",
    "ready_at",
    "fence",
    "lease_owner",
    "ending",
    "taken",
    "loop",
    "failure",
)


def load_flow(connection: Connection, row: Row, graph: Graph, *, is_paused: bool) -> Flow:
    """A flow with the states of its steps, from its row; steps of an earlier version of the workflow are left out."""
    found = row_queries.rows(
        connection, select(*(steps.c[name] for name in _STATE)).where(steps.c.flow_id == row["id"])
    )
    parent = (row["parent_flow"], row["parent_step"], row["iteration"]) if row["parent_flow"] else None
    flow = Flow(
        row["id"],
        row["run_id"],
        graph,
        RunStatus(row["status"]),
        Ending(row["ending"]) if row["ending"] else None,
        is_paused,
        parent=parent,
    )
    flow.apply(state_of(each) for each in found if each["step_id"] in graph.steps)
    return flow


def flow_row(connection: Connection, flow_id: str) -> Row | None:
    return row_queries.row(connection, select(flows).where(flows.c.id == flow_id))


def set_params(connection: Connection, flow_id: str, params: Mapping[str, Any]) -> None:
    """Of an iteration that is run again from its beginning."""
    connection.execute(update(flows).where(flows.c.id == flow_id).values(params=dict(params)))


def flow_rows(connection: Connection, *conditions: ColumnElement[bool]) -> list[Row]:
    return row_queries.rows(connection, select(flows).where(*conditions).order_by(flows.c.id))


def open_iterations(connection: Connection, flow_id: str, step_id: str) -> list[str]:
    """The flows of a loop's iterations that have not ended."""
    found = select(flows.c.id).where(
        flows.c.parent_flow == flow_id,
        flows.c.parent_step == step_id,
        flows.c.status.in_([status.value for status in RunStatus if not status.is_final]),
    )
    return list(connection.execute(found).scalars())


def iterations_not(connection: Connection, flow_id: str, step_id: str, status: RunStatus) -> list[int]:
    """The indexes of a loop's iterations that stand otherwise."""
    found = (
        select(flows.c.iteration)
        .where(flows.c.parent_flow == flow_id, flows.c.parent_step == step_id, flows.c.status != status.value)
        .order_by(flows.c.iteration)
    )
    return list(connection.execute(found).scalars())


def iteration_steps(connection: Connection, flow_id: str, loop_id: str, step_id: str) -> list[tuple[int, Any]]:
    """The index of each iteration of a loop that has reached a step, and the step's parameters there."""
    found = (
        select(flows.c.iteration, steps.c.params)
        .join(steps, steps.c.flow_id == flows.c.id)
        .where(flows.c.parent_flow == flow_id, flows.c.parent_step == loop_id, steps.c.step_id == step_id)
        .order_by(flows.c.iteration)
    )
    return [(index, params) for index, params in connection.execute(found)]


def steps_that(connection: Connection, run_id: str, step_ids: Collection[str], status: StepStatus) -> list[Row]:
    """Those of a run's steps that stand so, in whichever of its flows."""
    found = select(steps.c.flow_id, steps.c.step_id, steps.c.params).where(
        steps.c.run_id == run_id, steps.c.status == status.value, steps.c.step_id.in_(step_ids)
    )
    return row_queries.rows(connection, found)
