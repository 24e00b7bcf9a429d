"""A run as a trace: what OpenTelemetry calls spans, made of what happened.

Ids follow from the run, so whoever makes them makes the same: a job knows its span before it is told to anybody, and a
run that is told twice is the same trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from dalsegno.model.runs import RunStatus, StepStatus

_FAILED = frozenset({StepStatus.FATALLY_FAILED, StepStatus.TIMED_OUT, *(s for s in StepStatus if s.is_to_be_retried)})


@dataclass(frozen=True)
class Span:
    trace_id: str
    id: str
    #: None: it is the run itself.
    parent_id: str | None
    name: str
    began_at: datetime
    ended_at: datetime
    #: None: it did not fail.
    failure: str | None = None
    attributes: Mapping[str, str | int] = field(default_factory=dict)


def trace_id(run_id: str) -> str:
    return _digest(f"trace {run_id}")[:32]


def step_span_id(flow_id: str, step_id: str, attempt: int) -> str:
    return _digest(f"step {flow_id}/{step_id}/{attempt}")[:16]


def traceparent(run_id: str, flow_id: str, step_id: str, attempt: int) -> str:
    """What a job must know to add spans of its own, as W3C's trace context writes it."""
    return f"00-{trace_id(run_id)}-{step_span_id(flow_id, step_id, attempt)}-01"


def spans_of(run: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> list[Span]:
    """A run that has ended, and the attempts of its steps, from their rows."""
    ended_at: datetime = run["ended_at"]
    root = Span(
        trace_id(run["id"]),
        _digest(f"run {run['id']}")[:16],
        None,
        run["workflow_id"],
        min(run["created_at"], ended_at),
        ended_at,
        None if run["status"] == RunStatus.SUCCEEDED else run["reason"] or run["status"],
        {
            "dalsegno.run": f"{run['workflow_id']}/{run['number']}",
            "dalsegno.run_id": run["id"],
            "dalsegno.version": run["version"],
            "dalsegno.status": run["status"],
        },
    )
    return [root, *(span for attempt in _attempts(events) if (span := _step(root, attempt)) is not None)]


def _attempts(events: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """What happened to each attempt of each step."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for event in events:
        if event["kind"] == "step":
            found.setdefault((event["flow_id"], event["step_id"], event["attempt"]), []).append(event)
    return list(found.values())


def _step(root: Span, events: list[Mapping[str, Any]]) -> Span | None:
    """None if it never began."""
    statuses = [StepStatus(event["data"]["status"]) for event in events]
    if StepStatus.RUNNING not in statuses:
        return None
    begin = statuses.index(StepStatus.RUNNING)
    first, last = events[begin], events[-1]
    began_at, has_ended = first["happened_at"], len(events) > begin + 1
    failure = (last["data"].get("failure") or {}).get("message") or statuses[-1].value
    return Span(
        root.trace_id,
        step_span_id(first["flow_id"], first["step_id"], first["attempt"]),
        root.id,
        first["step_id"],
        began_at,
        max(last["happened_at"] if has_ended else root.ended_at, began_at),
        failure if statuses[-1] in _FAILED else None,
        {
            "dalsegno.step": first["step_id"],
            "dalsegno.attempt": first["attempt"],
            "dalsegno.flow": first["flow_id"],
            "dalsegno.status": statuses[-1].value,
        },
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
