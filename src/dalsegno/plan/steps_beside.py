"""Steps that run beside a commit, and may still write behind the capture that it commits."""

from __future__ import annotations

from collections.abc import Collection

from dalsegno.model.runs import Flow, StepStatus
from dalsegno.plan.restarts import ancestors, descendants


def at_work_beside(flow: Flow, capture_step: str, commit_step: str, writers: Collection[str]) -> str | None:
    """A step that may still write behind a capture, and that the step that commits it does not wait for."""
    graph = flow.graph
    beside = descendants(graph, [capture_step]) - descendants(graph, [commit_step]) - ancestors(graph, commit_step)
    open_steps = {
        state.step_id for state in flow.steps.values() if state.status.is_open and state.step_id != commit_step
    }
    for step_id in sorted(beside & set(writers)):
        state = flow.steps.get(step_id)
        has_ended = state is not None and not state.status.is_open and state.status is not StepStatus.NOT_CREATED
        if not has_ended and ({step_id} | ancestors(graph, step_id)) & open_steps:
            return step_id
    return None
