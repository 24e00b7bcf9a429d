"""Iterations of loops: each is a flow of its own, with parameters of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dalsegno.engine.records import OpenRun, StepUpdate
from dalsegno.model.params import Params
from dalsegno.model.runs import Began, Flow, Restarted, RestartFrom, RunStatus
from dalsegno.model.workflow import ForeachStep
from dalsegno.spec.params.loops import LOOP_PARAMS, iteration_params
from dalsegno.spec.params.stored import from_stored, to_stored
from dalsegno.store import flows, run_queries

if TYPE_CHECKING:
    from dalsegno.engine.run_transaction import RunTransaction


def still_open(transaction: RunTransaction, run: OpenRun, flow_id: str, step_id: str) -> list[Flow]:
    """The iterations of a loop that have not ended."""
    new = [known for known in run.flows.values() if known.parent and known.parent[:2] == (flow_id, step_id)]
    stored = flows.open_iterations(transaction.connection, flow_id, step_id)
    found = {known.id: known for known in new} | {each: transaction.flow(run, each) for each in stored}
    return [known for known in found.values() if not known.status.is_final]


def launch(
    transaction: RunTransaction, run: OpenRun, flow: Flow, which: tuple[str, int], update: StepUpdate, *, is_again: bool
) -> None:
    """Begin an iteration, or go on with one that an earlier try of the run left."""
    step_id, index = which
    flow_id = f"{flow.id}/{step_id}/{index}"
    # In its first attempt a loop has launched none before.
    if flow.steps[step_id].attempt > 1 and flows.flow_row(transaction.connection, flow_id) is not None:
        below = transaction.flow(run, flow_id)
        restart = RestartFrom.INCOMPLETE if is_again else RestartFrom.BEGINNING
        if not is_again:
            # What it is given may be something else this time.
            run.iterations[flow_id] = _params(transaction, run, flow, step_id, index, update)
            flows.set_params(transaction.connection, flow_id, to_stored(run.iterations[flow_id]))
        transaction.waiting.append(
            (run, below, Restarted(restart, failed_iterations=failed(transaction, below)), StepUpdate())
        )
        return
    below = Flow(
        flow_id,
        run.id,
        run.blueprint.bodies[step_id],
        is_paused=flow.is_paused,
        breakpoints=run.breakpoints,
        parent=(flow.id, step_id, index),
    )
    run.flows[flow_id] = below
    run.iterations[flow_id] = _params(transaction, run, flow, step_id, index, update)
    transaction.writes.new_flows.append(flow_row(below, transaction.now, to_stored(run.iterations[flow_id])))
    transaction.waiting.append((run, below, Began(), StepUpdate()))


def _params(
    transaction: RunTransaction, run: OpenRun, flow: Flow, step_id: str, index: int, update: StepUpdate
) -> Params:
    if not isinstance(run.blueprint.steps[step_id], ForeachStep):
        return from_stored(update.iteration_params or {})
    return iteration_params(_loop(transaction, run, flow.id, step_id, update)[LOOP_PARAMS], index)


def _loop(transaction: RunTransaction, run: OpenRun, flow_id: str, step_id: str, update: StepUpdate) -> Params:
    key = (flow_id, step_id)
    if update.params is not None or key not in run.loops:
        row = None if update.params is not None else run_queries.step_row(transaction.connection, flow_id, step_id)
        run.loops[key] = from_stored(update.params or (row and row["params"]) or {})
    return run.loops[key]


def forget(run: OpenRun, flow: Flow) -> None:
    """Nothing of an iteration that has ended is needed any longer."""
    del run.flows[flow.id]
    run.iterations.pop(flow.id, None)
    for inner in flow.steps:
        run.loops.pop((flow.id, inner), None)


def failed(transaction: RunTransaction, flow: Flow) -> dict[str, tuple[int, ...]]:
    """By loop that did not complete: the iterations that did not."""
    return {
        state.step_id: tuple(flows.iterations_not(transaction.connection, flow.id, state.step_id, RunStatus.SUCCEEDED))
        for state in flow.steps.values()
        if state.loop is not None and not state.status.is_complete
    }


def flow_row(flow: Flow, now: datetime, params: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a flow that begins now."""
    above, step_id, index = flow.parent or (None, None, None)
    return {
        "id": flow.id,
        "run_id": flow.run_id,
        "status": RunStatus.IN_PROGRESS.value,
        "ending": None,
        "parent_flow": above,
        "parent_step": step_id,
        "iteration": index,
        "params": params,
        "started_at": now,
        "ended_at": None,
    }
