"""What a report asks for, if whoever holds the step says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dalsegno.model.outcomes import Failed, FailureKind, Succeeded
from dalsegno.model.runs import Ending, Flow, Graph, SignalsWanted, StepEnded, StepState, StepStatus
from dalsegno.model.workflow import JobStep
from dalsegno.plan.reports import capture_to_commit, commit_refused, commit_too_early, is_current, looks_for_signals

GRAPH = Graph.of(
    [
        JobStep(id="capture", type="IpCapture", successors={"commit": None, "beside": None}),
        JobStep(id="beside", type="Spark"),
        JobStep(id="commit", type="IpCommit"),
    ]
)
ENDED = StepEnded("commit", 2, Succeeded(commits="c1"), taken=("x",))
HELD = StepState("commit", StepStatus.RUNNING, fence=2, is_claimed=True)


def flow_of(*states: StepState) -> Flow:
    return Flow("r", "r", GRAPH, steps={each.step_id: each for each in states})


@pytest.mark.parametrize("state", [replace(HELD, fence=3), replace(HELD, is_claimed=False), None])
def test_a_stale_report_commits_nothing(state: StepState | None) -> None:
    flow = flow_of(*([state] if state else []))
    assert not is_current(flow, "commit", 2)
    assert capture_to_commit(flow, ENDED) is None


def test_the_capture_to_commit() -> None:
    assert capture_to_commit(flow_of(HELD), ENDED) == "c1"
    assert capture_to_commit(flow_of(HELD), replace(ENDED, outcome=Succeeded())) is None
    assert capture_to_commit(flow_of(HELD), replace(ENDED, outcome=Failed(FailureKind.USER, "no"))) is None


def test_a_refused_commit_is_a_failure_that_leads_nowhere() -> None:
    found = commit_refused(ENDED, "no", "try")
    assert (found.outcome, found.taken) == (Failed(FailureKind.FATAL, "no", "try"), ())


@pytest.mark.parametrize(
    ("beside", "is_early"),
    [
        (StepState("beside", StepStatus.RUNNING), True),
        (StepState("beside", StepStatus.USER_FAILED), True),
        (StepState("beside", StepStatus.SUCCEEDED), False),
        (StepState("beside", StepStatus.UNSATISFIED), False),
    ],
)
def test_a_commit_waits_for_what_may_still_write(beside: StepState, is_early: bool) -> None:
    flow = flow_of(StepState("capture", StepStatus.SUCCEEDED), HELD, beside)
    found = commit_too_early(flow, ENDED, "capture", {"beside"})
    assert (found is not None) is is_early
    if found is not None:
        assert isinstance(found.outcome, Failed)
        assert found.outcome.kind is FailureKind.PLATFORM
    # What nobody records, a capture elsewhere, and one that a run names are not waited for.
    assert commit_too_early(flow, ENDED, "capture", set()) is None
    assert commit_too_early(flow, ENDED, "elsewhere", {"beside"}) is None
    assert commit_too_early(flow, ENDED, None, {"beside"}) is None


def test_looking_for_signals() -> None:
    waiting = StepState("commit", StepStatus.WAITING_FOR_SIGNALS, fence=2, is_claimed=True)
    wanted = SignalsWanted("commit", 2)
    assert looks_for_signals(flow_of(waiting), wanted)
    assert not looks_for_signals(flow_of(waiting), replace(wanted, fence=1))
    assert not looks_for_signals(flow_of(replace(waiting, ending=Ending.STOP)), wanted)
    assert not looks_for_signals(flow_of(replace(waiting, status=StepStatus.CREATED)), wanted)
    assert not looks_for_signals(flow_of(waiting), ENDED)
