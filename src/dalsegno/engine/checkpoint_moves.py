"""Checkpoints that move with the success of a step or of a run, in the same transaction or not at all."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from dalsegno.engine.records import OpenRun, StepUpdate
from dalsegno.errors import DataError, UserError
from dalsegno.model.captures import actor_of_run
from dalsegno.model.runs import Flow, Happening, RunStatus, StepEnded, StepStatus
from dalsegno.plan.reports import capture_to_commit, commit_refused, commit_too_early
from dalsegno.plan.run_ends import Uncommitted, commits_refused
from dalsegno.spec.captures import committed_by
from dalsegno.store import captures, flows, settling, work_units
from dalsegno.store.store import commit

if TYPE_CHECKING:
    from dalsegno.engine.run_transaction import RunTransaction


def commit_with_step(transaction: RunTransaction, run: OpenRun, flow: Flow, happening: Happening) -> Happening:
    """Move the checkpoint of the capture that a step has processed; if that is refused, the step has failed."""
    capture_id = capture_to_commit(flow, happening)
    if capture_id is None or not isinstance(happening, StepEnded):
        return happening
    blueprint = run.blueprint
    capture_step = committed_by(blueprint.steps[happening.step_id])
    too_early = commit_too_early(flow, happening, capture_step, blueprint.steps_at_work)
    if too_early is not None:
        return too_early
    refusal = _move(transaction, run, [capture_id])
    return happening if refusal is None else commit_refused(happening, refusal.message, refusal.hint)


def commit_with_run(transaction: RunTransaction, run: OpenRun, flow: Flow) -> None:
    """Move the checkpoints that no step moves; if that is refused, the captures have failed, and so has the run."""
    # A step in a loop has a capture of each iteration.
    captured = [
        (step_id, capture_id)
        for (_, step_id), params in _params_of(transaction, run, run.blueprint.committed_with_run).items()
        if (capture_id := _value(params, "capture_id"))
    ]
    refusal = _move(transaction, run, [capture_id for _, capture_id in captured])
    if refusal is None:
        return
    failed_steps = [run.blueprint.outermost(step_id) for step_id, _ in captured]
    for state in commits_refused(flow, failed_steps, refusal.message, refusal.hint):
        transaction.change_step(run, flow, state, StepUpdate())
        flow.apply([state])
    flow.status = RunStatus.FAILED


def _move(transaction: RunTransaction, run: OpenRun, capture_ids: Sequence[str]) -> UserError | DataError | None:
    """Commit captures, and those that were consumed together with them, all or none: then, why not."""
    by = actor_of_run(run.workflow_id, run.row["number"])
    try:
        with transaction.connection.begin_nested():
            ready = settling.committable(transaction.connection, capture_ids, run.row["root_run"], by)
            for capture_id in ready:
                commit(transaction.connection, capture_id, by=by, now=transaction.now)
    except (UserError, DataError) as refusal:
        return refusal
    transaction.committed.extend(ready)
    return None


def uncommitted(transaction: RunTransaction, run: OpenRun) -> Uncommitted | None:
    """The captures that stay pending though the run has processed them."""
    if run.id != run.row["root_run"] or not run.blueprint.captures:
        return None
    waiting = captures.wanted_by(transaction.connection, run.id)
    if not waiting:
        return None
    return Uncommitted(waiting, work_units.together(transaction.connection, waiting) - set(waiting))


def has_changes(transaction: RunTransaction, run: OpenRun) -> list[Any]:
    """What each capture of a run that succeeded says: whether there was anything new."""
    capturing = run.blueprint.captures | run.blueprint.declared
    if not capturing:
        return []
    found = _params_of(transaction, run, capturing)
    return [_value(params, "has_changes") for params in found.values() if params]


def _params_of(transaction: RunTransaction, run: OpenRun, step_ids: Set[str]) -> dict[tuple[str, str], Any]:
    """The parameters of those of these steps that have succeeded, by flow and step."""
    found: dict[tuple[str, str], Any] = {}
    for row in flows.steps_that(transaction.connection, run.id, step_ids, StepStatus.SUCCEEDED):
        found[row["flow_id"], row["step_id"]] = row["params"]
    for key, change in transaction.writes.steps.items():
        # What is not stored yet.
        if change.run_id == run.id and key[1] in step_ids:
            is_done = change.state.status is StepStatus.SUCCEEDED
            found[key] = change.update.get("params", found.get(key)) if is_done else None
    return found


def _value(params: Any, name: str) -> Any:
    return ((params or {}).get(name) or {}).get("value")
