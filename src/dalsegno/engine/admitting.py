"""Runs as a whole: when they begin, end before their own end, and begin again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, assert_never

from dalsegno.engine import iterations
from dalsegno.engine.records import OpenRun, Report, StepUpdate
from dalsegno.engine.version_changes import change_version
from dalsegno.model.messages import (
    Admit,
    ChildFinished,
    EndChildren,
    EndRun,
    Message,
    RestartRun,
    SignalsArrived,
)
from dalsegno.model.runs import (
    Began,
    ChildEnded,
    Ending,
    EndWanted,
    Flow,
    Restarted,
    RunStatus,
    SignalsCame,
)
from dalsegno.plan.admission import ChildStart, Waiting, admit, child_start
from dalsegno.plan.restarts import wish_of_json, wish_to_json
from dalsegno.plan.run_ends import end_before_begin
from dalsegno.store import flows, run_queries, runs

if TYPE_CHECKING:
    from dalsegno.engine.run_transaction import RunTransaction


def deliver(transaction: RunTransaction, run_id: str, message: Message) -> None:
    """Act on what a transaction left for a run or a workflow."""
    match message:
        case Admit(workflow_id):
            admit_runs(transaction, workflow_id)
        case ChildFinished(flow_id, step_id):
            transaction.take(Report(run_id, flow_id, ChildEnded(step_id)))
        case SignalsArrived(steps):
            for flow_id, step_id in steps:
                transaction.take(Report(run_id, flow_id, SignalsCame(step_id)))
        case EndChildren(flow_id, step_id, ending):
            for child in sorted(runs.open_children(transaction.connection, flow_id, step_id)):
                end(transaction, child, ending)
        case RestartRun(attempt, changes):
            hold_workflow_of(transaction, run_id)
            run = transaction.open(run_id)
            if child_start(run.row["attempt"], attempt) is ChildStart.RESTART:
                asked = changes.get("initiator", {}).get("restart", {})
                restart(transaction, run, Restarted(is_version_named="version" in asked), changes)
        case EndRun(ending, by, reason):
            end(transaction, run_id, ending, by, reason)
        case _:
            assert_never(message)


def hold_workflow_of(transaction: RunTransaction, run_id: str) -> None:
    """Nobody else starts or ends runs of the workflow; to be asked for before the run itself."""
    row = run_queries.run_row(transaction.connection, run_id)
    if row is not None:
        runs.hold_workflow(transaction.connection, row["workflow_id"])


_ENDED = {Ending.STOP: "stopped", Ending.KILL: "killed", Ending.SKIP: "skipped", Ending.TIME_OUT: "timed out"}


def end(
    transaction: RunTransaction, run_id: str, ending: Ending, by: str | None = None, reason: str | None = None
) -> None:
    """Bring a run to an end; one that waits for its turn ends at once. ``by``: who wants that, and why."""
    run = transaction.open(run_id)
    if by is not None and not RunStatus(run.row["status"]).is_final:
        said = f"{_ENDED[ending]} by {by}{f': {reason}' if reason else ''}"
        transaction.writes.change_run(run, ended_by=by, reason=said)
    if run.row["status"] == RunStatus.CREATED.value:
        transaction.end_run(run, end_before_begin(ending, run.row["reason"] if run.row["ended_by"] else None))
    elif not RunStatus(run.row["status"]).is_final:
        transaction.apply(run, transaction.flow(run, run_id), EndWanted(ending), StepUpdate())
        transaction.work_off()


def admit_runs(transaction: RunTransaction, workflow_id: str) -> None:
    """Let runs of a workflow begin, or stop them, as its run strategy says."""
    runs.hold_workflow(transaction.connection, workflow_id)
    waiting = runs.open_runs(transaction.connection, workflow_id)
    if not any(row["status"] == RunStatus.CREATED.value for row in waiting):
        return
    newest = transaction.versions.blueprint(workflow_id, waiting[-1]["version"])
    strategy = newest.definition.properties.run_strategy
    last = runs.last_ended(transaction.connection, workflow_id)
    decided = admit(strategy, [Waiting(row["id"], RunStatus(row["status"])) for row in waiting], last)
    for run_id in sorted({*decided.stop, *decided.begin}):
        transaction.open(run_id)
    for run_id in decided.stop:
        end(transaction, run_id, Ending.STOP)
    for run_id in decided.begin:
        _begin(transaction, transaction.open(run_id))


def _begin(transaction: RunTransaction, run: OpenRun) -> None:
    timeout = run.row["initiator"].get("timeout_seconds")
    deadline = transaction.now + timedelta(seconds=timeout) if timeout else None
    status = RunStatus.IN_PROGRESS.value
    transaction.writes.change_run(run, status=status, started_at=transaction.now, deadline=deadline)
    transaction.writes.add_event(run.id, "run", {"status": status})
    known = flows.flow_row(transaction.connection, run.id)
    if known is not None:
        flow = transaction.flow(run, run.id)
        wish = wish_of_json(run.row["initiator"].get("restart") or {}, iterations.failed(transaction, flow))
        transaction.waiting.append((run, flow, wish, StepUpdate()))
    else:
        flow = Flow(run.id, run.id, run.blueprint.root, is_paused=run.row["is_paused"], breakpoints=run.breakpoints)
        run.flows[run.id] = flow
        transaction.writes.new_flows.append(iterations.flow_row(flow, transaction.now, {}))
        transaction.waiting.append((run, flow, Began(), StepUpdate()))
    transaction.work_off()


def restart(transaction: RunTransaction, run: OpenRun, wish: Restarted, changes: Mapping[str, Any]) -> None:
    """Let an ended run wait for its turn once more; ``changes`` may name another version, with its parameters."""
    version = changes.get("version", run.row["version"])
    if version != run.row["version"]:
        change_version(transaction, run, wish, version)
    restart = wish_to_json(wish, version)
    transaction.writes.change_run(
        run,
        **{
            **changes,
            "status": RunStatus.CREATED.value,
            "attempt": run.row["attempt"] + 1,
            "initiator": {**changes.get("initiator", run.row["initiator"]), "restart": restart},
            "ended_at": None,
            "ended_by": None,
            "reason": None,
        },
    )
    transaction.writes.add_event(run.id, "run", {"status": RunStatus.CREATED.value, "restart": restart})
    transaction.send(run.id, Admit(run.workflow_id))
