"""Runs and steps as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dalsegno.model.refreshes import Refresh
from dalsegno.model.runs import NOTHING_NEW, RunStatus, StepStatus
from dalsegno.operations.json_values import LEFT_OUT_IF_NONE
from dalsegno.operations.stored_steps import StoredStep, after
from dalsegno.store import refresh_queries, run_queries


@dataclass(frozen=True)
class RunView:
    """A run; ``attempt`` counts its restarts."""

    id: str
    workflow_id: str
    number: int
    attempt: int
    version: int
    status: RunStatus
    reason: str | None
    is_paused: bool
    #: None, and not shown, in lists that leave them out.
    params: Mapping[str, Any] | None = field(metadata=LEFT_OUT_IF_NONE)
    initiator: Mapping[str, Any]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    #: Who stopped or killed it, if somebody did.
    ended_by: str | None = None
    #: Whether it had been asked for before, with the same idempotency key.
    is_repeated: bool = False

    @property
    def name(self) -> str:
        return f"{self.workflow_id}/{self.number}"


@dataclass(frozen=True)
class RunEvent:
    """Something that happened to a run, or to one of its steps."""

    id: int
    run_id: str
    flow_id: str | None
    step_id: str | None
    attempt: int | None
    kind: str
    data: Mapping[str, Any]
    happened_at: datetime


@dataclass(frozen=True)
class WaitView:
    """A signal that a step waits for."""

    name: str
    #: By parameter: what it must be, as an operator and a value.
    match: Mapping[str, tuple[str, str | int]]
    #: The number of the signal that came; None: it has not come.
    signal_id: int | None


@dataclass(frozen=True)
class StepView:
    """A step of a run."""

    id: str
    type: str
    status: StepStatus
    attempt: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    failure: Mapping[str, Any] | None = None
    #: Why a step was not run, where that is known.
    reason: str | None = None
    #: When a step that failed is tried again.
    again_at: datetime | None = None
    progress: Mapping[str, Any] | None = None
    #: Of a loop: how many iterations there are, and how they stand.
    iterations: Mapping[str, int] = field(default_factory=dict)
    #: Of a subworkflow: its run, as WORKFLOW/NUMBER.
    run: str | None = None
    #: Which signals it waits for or has waited for, one for each of its dependencies.
    signals: Sequence[WaitView] = ()
    #: The steps of a loop's iterations that are open or failed, by iteration.
    inside: Mapping[str, list[StepView]] = field(default_factory=dict)
    #: Of a declared table: what was read and written.
    refresh: Refresh | None = field(default=None, metadata=LEFT_OUT_IF_NONE)


def run_view(row: Mapping[str, Any], *, is_repeated: bool = False) -> RunView:
    return RunView(
        id=row["id"],
        workflow_id=row["workflow_id"],
        number=row["number"],
        attempt=row["attempt"],
        version=row["version"],
        status=RunStatus(row["status"]),
        reason=row["reason"],
        is_paused=row["is_paused"],
        params=row.get("params"),
        initiator={key: value for key, value in row["initiator"].items() if key != "timeout_seconds"},
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        ended_by=row["ended_by"],
        is_repeated=is_repeated,
    )


#: How a step stands that has failed and waits for its next attempt.
_TRIED_AGAIN = (*(status for status in StepStatus if status.is_to_be_retried), StepStatus.WAITING_FOR_SIGNALS)
#: Iterations that are shown with their steps.
_MOST_INSIDE = 5


def step_views(connection: Any, flow_id: str, steps: Sequence[StoredStep]) -> list[StepView]:
    """The steps of a run or of an iteration, with iterations and subworkflows below them."""
    rows = {row["step_id"]: row for row in run_queries.steps_of_flow(connection, flow_id)}
    waits = _waits(connection, flow_id) if any(step.has_signals for step in steps) else {}
    found = []
    quiet = _with_nothing_new(steps, rows)
    refreshes = _refreshes(connection, steps, rows)
    for step in steps:
        row = rows.get(step.id)
        if row is None:
            found.append(StepView(step.id, step.type, StepStatus.NOT_CREATED))
            continue
        iterations, inside = _loop(connection, flow_id, step, row)
        handle = row["handle"] or {}
        found.append(
            StepView(
                id=step.id,
                type=step.type,
                status=StepStatus(row["status"]),
                attempt=row["attempt"],
                started_at=row["started_at"],
                ended_at=row["ended_at"],
                params=row["params"] or {},
                outputs=row["outputs"] or {},
                failure=row["failure"],
                reason=NOTHING_NEW if step.id in quiet else None,
                again_at=row["ready_at"] if row["failure"] and StepStatus(row["status"]) in _TRIED_AGAIN else None,
                progress=row["progress"],
                iterations=iterations,
                run=f"{handle['workflow']}/{handle['number']}" if "child" in handle else None,
                signals=waits.get(step.id, ()),
                inside=inside,
                refresh=refreshes.get(step.id),
            )
        )
    return found


def _with_nothing_new(steps: Sequence[StoredStep], rows: Mapping[str, Any]) -> set[str]:
    """The steps that were not run because a capture before them found nothing new."""
    captures = {
        step.id
        for step in steps
        if step.is_capture
        and step.id in rows
        and rows[step.id]["status"] == StepStatus.SUCCEEDED.value
        and ((rows[step.id]["params"] or {}).get("has_changes") or {}).get("value") is False
    }
    left_out = {step_id for step_id, row in rows.items() if row["status"] == StepStatus.UNSATISFIED.value}
    return after(steps, captures) & left_out if captures else set()


def _refreshes(connection: Any, steps: Sequence[StoredStep], rows: Mapping[str, Any]) -> dict[str, Refresh]:
    """By step, what was done for the tables that steps declare."""
    captures = {
        capture_id: step.id
        for step in steps
        if step.is_declared and (capture_id := ((rows.get(step.id) or {}).get("outputs") or {}).get("capture_id"))
    }
    if not captures:
        return {}
    return {captures[each.capture_id]: each for each in refresh_queries.of_captures(connection, captures)}


def _waits(connection: Any, flow_id: str) -> dict[str, list[WaitView]]:
    found: dict[str, list[WaitView]] = {}
    for row in run_queries.waits_of_flow(connection, flow_id):
        match = {name: (operator, value) for name, (operator, value) in row["wanted"].items()}
        found.setdefault(row["step_id"], []).append(WaitView(row["signal_name"], match, row["signal_id"]))
    return found


def _loop(
    connection: Any, flow_id: str, step: StoredStep, row: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, list[StepView]]]:
    loop = row["loop"]
    if not loop or not step.inside:
        return {}, {}
    counts = {"total": loop["total"] or loop["next"]} | run_queries.iteration_counts(connection, flow_id, step.id)
    shown = run_queries.iterations_to_show(connection, flow_id, step.id, _MOST_INSIDE)
    return counts, {str(index): step_views(connection, inner, step.inside) for inner, index in shown}
