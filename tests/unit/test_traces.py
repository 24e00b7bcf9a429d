"""A run as a trace."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dalsegno.plan.traces import Span, spans_of, step_span_id, trace_id, traceparent

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
RUN = {
    "id": "r",
    "workflow_id": "w",
    "number": 3,
    "version": 1,
    "status": "FAILED",
    "reason": "b: no luck",
    "created_at": NOON,
    "ended_at": NOON + timedelta(seconds=60),
}


def event(seconds: float, step: str, attempt: int, status: str, **data: Any) -> dict[str, Any]:
    return {
        "kind": "step",
        "flow_id": "r",
        "step_id": step,
        "attempt": attempt,
        "data": {"status": status, **data},
        "happened_at": NOON + timedelta(seconds=seconds),
    }


def times(span: Span) -> tuple[float, float]:
    return (span.began_at - NOON).total_seconds(), (span.ended_at - NOON).total_seconds()


def test_each_attempt_is_a_span() -> None:
    failure = {"message": "no luck"}
    spans = spans_of(
        RUN,
        [
            {**event(0, "a", 1, "RUNNING"), "kind": "run"},
            event(1, "a", 1, "RUNNING"),
            event(5, "a", 1, "SUCCEEDED"),
            event(6, "b", 1, "PAUSED"),
            event(7, "b", 1, "RUNNING"),
            event(9, "b", 1, "USER_FAILED", failure=failure),
            event(20, "b", 2, "RUNNING"),
            event(60, "b", 2, "FATALLY_FAILED", failure=failure),
            event(60, "c", 0, "UNSATISFIED"),
        ],
    )

    root, *steps = spans
    assert (root.name, root.parent_id, times(root), root.failure) == ("w", None, (0, 60), "b: no luck")
    assert [(span.name, times(span), span.failure) for span in steps] == [
        ("a", (1, 5), None),
        ("b", (7, 9), "no luck"),
        ("b", (20, 60), "no luck"),
    ]
    assert {span.parent_id for span in steps} == {root.id}
    assert {span.trace_id for span in spans} == {trace_id("r")}
    assert len({span.id for span in spans}) == 4


def test_an_attempt_without_an_end_ends_with_the_run() -> None:
    [_, step] = spans_of(RUN, [event(1, "a", 1, "RUNNING")])
    assert times(step) == (1, 60)


def test_a_job_knows_its_span() -> None:
    [_, step] = spans_of(RUN, [event(1, "a", 2, "RUNNING")])
    told = traceparent("r", "r", "a", 2)
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", told)
    assert told == f"00-{step.trace_id}-{step.id}-01"
    assert step.id == step_span_id("r", "a", 2)
