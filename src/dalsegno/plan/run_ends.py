"""How a run ends: with which status, and why. Its flow says how its steps did; its captures may change that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dalsegno.model.outcomes import FailureKind
from dalsegno.model.runs import NOTHING_NEW, Ending, Flow, RunStatus, StepState, StepStatus

#: A step that was stopped while it waited for its next try is not why a run ended.
_REASONS = (StepStatus.FATALLY_FAILED, StepStatus.TIMED_OUT)
_REASONS_SHOWN = 3


@dataclass(frozen=True)
class RunEnd:
    status: RunStatus
    reason: str | None = None


@dataclass(frozen=True)
class Uncommitted:
    """Captures that a run has processed and not committed."""

    captures: Sequence[str]
    #: Those that a step consumed together with them.
    together_with: Collection[str]


def end_before_begin(ending: Ending, ended: str | None = None) -> RunEnd:
    """Of a run that waits for its turn; ``ended`` is who ended it, and why."""
    status = {Ending.KILL: RunStatus.FAILED, Ending.TIME_OUT: RunStatus.TIMED_OUT}.get(ending, RunStatus.STOPPED)
    before = "ended before it began"
    return RunEnd(status, f"{ended} ({before})" if ended else before)


def end_of_run(
    flow: Flow,
    uncommitted: Uncommitted | None = None,
    has_changes: Sequence[Any] = (),
    *,
    only_declares: bool = False,
    ended: str | None = None,
) -> RunEnd:
    """Of a run whose flow has ended; ``has_changes`` is what each capture that succeeded said of its range.

    ``only_declares``: each step declares a table, and there is none that nothing new would leave out. ``ended``: who
    ended it, and why; steps may have failed before.
    """
    if flow.status is not RunStatus.SUCCEEDED:
        return RunEnd(flow.status, "; ".join(filter(None, (ended, _reason(flow)))) or None)
    if uncommitted is not None and uncommitted.captures:
        return RunEnd(
            RunStatus.FAILED,
            f"Capture {', '.join(uncommitted.captures)} is not committed: a step consumed it together with "
            f"{', '.join(sorted(uncommitted.together_with))}, which no step has committed.",
        )
    is_left_out = any(state.status is StepStatus.UNSATISFIED for state in flow.steps.values())
    if has_changes and (is_left_out or only_declares) and all(each is False for each in has_changes):
        return RunEnd(RunStatus.SUCCEEDED, NOTHING_NEW)
    return RunEnd(RunStatus.SUCCEEDED, _reason(flow))


def _reason(flow: Flow) -> str | None:
    failed = [state for state in flow.steps.values() if state.failure and state.status in _REASONS]
    said = (f"{state.step_id}: {(state.failure or {}).get('message', '')}" for state in failed[:_REASONS_SHOWN])
    return "; ".join(said) or None


def commits_refused(flow: Flow, captured_by: Iterable[str], message: str, hint: str | None) -> tuple[StepState, ...]:
    """The steps that captured, failed for good: the success of the run was to commit what they captured."""
    failure = {"kind": FailureKind.FATAL.value, "message": message, "hint": hint}
    return tuple(
        replace(flow.steps[step_id], status=StepStatus.FATALLY_FAILED, failure=failure, taken=())
        for step_id in sorted(set(captured_by))
    )
