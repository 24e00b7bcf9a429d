"""What a worker's report asks for before ``advance`` looks at it: checkpoints to move, signals to look for.

Both happen in the transaction of the report, so they are asked for by whoever holds the step, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dalsegno.model.outcomes import Failed, FailureKind, Succeeded
from dalsegno.model.runs import Flow, Happening, SignalsWanted, StepEnded, StepStatus
from dalsegno.plan.steps_beside import at_work_beside


def is_current(flow: Flow, step_id: str, fence: int) -> bool:
    """Whether a report comes from the worker that holds the step; ``advance`` refuses any other."""
    state = flow.steps.get(step_id)
    return state is not None and state.is_claimed and state.fence == fence


def capture_to_commit(flow: Flow, happening: Happening) -> str | None:
    """The capture whose checkpoint moves with the step's success."""
    match happening:
        case StepEnded(step_id, fence, Succeeded(commits=str(capture_id))) if is_current(flow, step_id, fence):
            return capture_id
    return None


def commit_refused(happening: StepEnded, message: str, hint: str | None) -> StepEnded:
    """The step has failed instead, for good."""
    return _failed(happening, Failed(FailureKind.FATAL, message, hint))


def commit_too_early(
    flow: Flow, happening: StepEnded, capture_step: str | None, writers: Collection[str]
) -> StepEnded | None:
    """The step has failed instead, for now: a step beside it may still write what was captured. None: it may commit."""
    if capture_step is None or capture_step not in flow.graph.steps:
        return None
    commit_step = happening.step_id
    beside = at_work_beside(flow, capture_step, commit_step, writers)
    if beside is None:
        return None
    return _failed(
        happening,
        Failed(
            FailureKind.PLATFORM,
            f"Step {beside!r} may still write what {capture_step!r} captured, and {commit_step!r} does not wait "
            "for it.",
            f"Let {commit_step!r} come after {beside!r}.",
        ),
    )


def _failed(happening: StepEnded, failed: Failed) -> StepEnded:
    return replace(happening, outcome=failed, taken=())


def looks_for_signals(flow: Flow, happening: Happening) -> bool:
    """Whether the step is to be registered as waiting, unless its signals are there."""
    if not isinstance(happening, SignalsWanted) or not is_current(flow, happening.step_id, happening.fence):
        return False
    state = flow.steps[happening.step_id]
    return state.status is StepStatus.WAITING_FOR_SIGNALS and state.ending is None
