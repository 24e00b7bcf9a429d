"""How a run ends, by its flow and by its captures."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.model.runs import NOTHING_NEW, Ending, Flow, Graph, RunStatus, StepState, StepStatus
from dalsegno.plan.admission import ChildStart, child_start
from dalsegno.plan.run_ends import RunEnd, Uncommitted, commits_refused, end_before_begin, end_of_run

SUCCEEDED, UNSATISFIED, FATAL = StepStatus.SUCCEEDED, StepStatus.UNSATISFIED, StepStatus.FATALLY_FAILED


def flow_of(status: RunStatus, *steps: StepState) -> Flow:
    return Flow("r", "r", Graph.of([]), status=status, steps={each.step_id: each for each in steps})


def failed(step_id: str, status: StepStatus = FATAL) -> StepState:
    return StepState(step_id, status, failure={"kind": "FATAL", "message": f"{step_id} broke", "hint": None})


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending.KILL, RunStatus.FAILED),
        (Ending.TIME_OUT, RunStatus.TIMED_OUT),
        (Ending.STOP, RunStatus.STOPPED),
    ],
)
def test_before_it_began(ending: Ending, status: RunStatus) -> None:
    assert end_before_begin(ending) == RunEnd(status, "ended before it began")


def test_the_reason_names_the_first_steps_that_failed() -> None:
    waiting = failed("w", StepStatus.STOPPED)
    steps = [waiting, *(failed(name) for name in "abcd")]
    end = end_of_run(flow_of(RunStatus.FAILED, *steps))
    assert end == RunEnd(RunStatus.FAILED, "a: a broke; b: b broke; c: c broke")
    assert end_of_run(flow_of(RunStatus.STOPPED, waiting)) == RunEnd(RunStatus.STOPPED)


def test_success() -> None:
    assert end_of_run(flow_of(RunStatus.SUCCEEDED, StepState("a", SUCCEEDED))) == RunEnd(RunStatus.SUCCEEDED)


@pytest.mark.parametrize(
    ("has_changes", "rest", "is_nothing_new"),
    [
        ([False], UNSATISFIED, True),
        ([False, False], UNSATISFIED, True),
        ([False, True], UNSATISFIED, False),
        # A capture that says nothing, of an older store or a template, is no proof.
        ([False, None], UNSATISFIED, False),
        # With when_nothing_new: continue, what follows has run.
        ([False], SUCCEEDED, False),
        ([], UNSATISFIED, False),
    ],
)
def test_nothing_new(has_changes: list[Any], rest: StepStatus, is_nothing_new: bool) -> None:
    flow = flow_of(RunStatus.SUCCEEDED, StepState("capture", SUCCEEDED), StepState("load", rest))
    assert (end_of_run(flow, None, has_changes).reason == NOTHING_NEW) is is_nothing_new


def test_a_success_that_leaves_captures_pending_is_a_failure() -> None:
    flow = flow_of(RunStatus.SUCCEEDED, StepState("capture", SUCCEEDED), StepState("load", UNSATISFIED))
    end = end_of_run(flow, Uncommitted(["c1", "c2"], {"z", "y"}), [False])
    assert end.status is RunStatus.FAILED
    assert end.reason == (
        "Capture c1, c2 is not committed: a step consumed it together with y, z, which no step has committed."
    )
    assert end_of_run(flow, Uncommitted([], set()), [True]) == RunEnd(RunStatus.SUCCEEDED)


def test_a_flow_that_failed_keeps_its_own_reason() -> None:
    flow = flow_of(RunStatus.FAILED, failed("a"), StepState("b", UNSATISFIED))
    assert end_of_run(flow, Uncommitted(["c"], {"d"}), [False]) == RunEnd(RunStatus.FAILED, "a: a broke")


def test_refused_commits_fail_the_steps_that_captured_once_each() -> None:
    flow = flow_of(
        RunStatus.SUCCEEDED,
        StepState("x", SUCCEEDED, taken=("y",)),
        StepState("y", SUCCEEDED),
        StepState("z", SUCCEEDED),
    )
    states = commits_refused(flow, ["y", "x", "x"], "no", "try")
    assert [(each.step_id, each.status, each.taken) for each in states] == [("x", FATAL, ()), ("y", FATAL, ())]
    assert states[0].failure == {"kind": "FATAL", "message": "no", "hint": "try"}
    flow.apply(states)
    flow.status = RunStatus.FAILED
    assert end_of_run(flow).reason == "x: no; y: no"


def test_the_start_of_a_subworkflow_can_be_repeated() -> None:
    assert child_start(None, 1) is ChildStart.NEW
    assert child_start(1, 1) is ChildStart.ADMIT
    assert child_start(1, 2) is ChildStart.RESTART
    # A report of an older attempt that comes late.
    assert child_start(3, 2) is ChildStart.ADMIT
