"""What is known of a run while it goes on.

A run executes its workflow's steps as a *flow*: one way through one graph of steps. Each iteration of a loop is a flow
of its own below the loop's step; a subworkflow is a run of its own. All that decides what happens next is in here, and
it is small: results, parameters and logs are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dalsegno.model.outcomes import Outcome
from dalsegno.model.retries import Retries
from dalsegno.model.workflow import FailureMode, Step

#: Why a run that succeeded has not run all of its steps, and why they were not run: a capture found nothing.
NOTHING_NEW = "nothing new"


class RunStatus(StrEnum):
    """How a run or a flow stands."""

    #: Waits for its turn.
    CREATED = "CREATED"
    IN_PROGRESS = "IN_PROGRESS"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_final(self) -> bool:
        return self not in (RunStatus.CREATED, RunStatus.IN_PROGRESS)


class StepStatus(StrEnum):
    """How a step stands; the names are Maestro's."""

    #: Ran in an earlier try of the run, and has not been reached in this one.
    NOT_CREATED = "NOT_CREATED"
    #: May begin.
    CREATED = "CREATED"
    #: Waits for somebody to let it go on: a breakpoint, or the whole run is paused.
    PAUSED = "PAUSED"
    WAITING_FOR_SIGNALS = "WAITING_FOR_SIGNALS"
    RUNNING = "RUNNING"
    #: Failed, and will be tried again.
    USER_FAILED = "USER_FAILED"
    PLATFORM_FAILED = "PLATFORM_FAILED"
    TIMEOUT_FAILED = "TIMEOUT_FAILED"
    #: No condition that leads to it was met.
    UNSATISFIED = "UNSATISFIED"
    SKIPPED = "SKIPPED"
    SUCCEEDED = "SUCCEEDED"
    #: Failed, and the failure is to be ignored.
    COMPLETED_WITH_ERROR = "COMPLETED_WITH_ERROR"
    FATALLY_FAILED = "FATALLY_FAILED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_open(self) -> bool:
        """Whether the flow must wait for it."""
        return self not in _CLOSED

    @property
    def is_complete(self) -> bool:
        """Whether what follows may begin."""
        return self in _COMPLETE

    @property
    def is_to_be_retried(self) -> bool:
        return self in _RETRIED


_COMPLETE = frozenset(
    {StepStatus.UNSATISFIED, StepStatus.SKIPPED, StepStatus.SUCCEEDED, StepStatus.COMPLETED_WITH_ERROR}
)
_CLOSED = _COMPLETE | {
    StepStatus.NOT_CREATED,
    StepStatus.FATALLY_FAILED,
    StepStatus.STOPPED,
    StepStatus.TIMED_OUT,
}
_RETRIED = frozenset({StepStatus.USER_FAILED, StepStatus.PLATFORM_FAILED, StepStatus.TIMEOUT_FAILED})


class Ending(StrEnum):
    """Why a step, a flow or a run is brought to an end before its own."""

    #: Somebody asked for it: what runs is ended, and the run is STOPPED.
    STOP = "STOP"
    #: The same, but it counts as a failure.
    KILL = "KILL"
    TIME_OUT = "TIME_OUT"
    #: Only for a step: it counts as done.
    SKIP = "SKIP"
    #: Only for a flow: a step failed, so nothing new begins; what runs may end by itself.
    DRAIN = "DRAIN"


@dataclass(frozen=True)
class Tries:
    """How often a step was tried again, by the class of the error."""

    user: int = 0
    platform: int = 0
    timeout: int = 0


@dataclass(frozen=True)
class Loop:
    """How far a loop is. It does not grow with the number of its iterations."""

    #: None: nobody knows, as in ``while``.
    total: int | None
    concurrency: int
    #: The first index that was not launched yet.
    next: int = 0
    open: int = 0
    succeeded: int = 0
    #: The worst way in which an iteration ended; None as long as all went well.
    worst: RunStatus | None = None
    #: Iterations to run again when a run is restarted, before those that never ran.
    again: tuple[int, ...] = ()


@dataclass(frozen=True)
class StepState:
    """Where a step of a flow stands."""

    step_id: str
    status: StepStatus = StepStatus.CREATED
    attempt: int = 1
    tried: Tries = Tries()
    #: When a worker may take it; None: not before something else happens.
    ready_at: datetime | None = None
    #: Grows with every claim; a report with an older one is refused.
    fence: int = 0
    #: Whether a worker has it.
    is_claimed: bool = False
    #: It is to be ended, and has not ended yet.
    ending: Ending | None = None
    #: Of its successors, those whose condition was met; known when it is complete.
    taken: tuple[str, ...] = ()
    loop: Loop | None = None
    #: Why the last attempt failed.
    failure: Mapping[str, Any] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it runs without a worker: its iterations or its subworkflow do."""
        return self.status is StepStatus.RUNNING and not self.is_claimed


@dataclass(frozen=True)
class Graph:
    """Steps by id, each with those before and those after it."""

    steps: Mapping[str, Step]
    before: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Graph:
        known = {step.id: step for step in steps}
        before: dict[str, list[str]] = {step_id: [] for step_id in known}
        for step in known.values():
            for successor in step.successors:
                before[successor].append(step.id)
        return cls(known, {step_id: tuple(found) for step_id, found in before.items()})

    @property
    def first(self) -> list[str]:
        return [step_id for step_id, found in self.before.items() if not found]

    def failure_mode(self, step_id: str) -> FailureMode:
        return self.steps[step_id].failure_mode


@dataclass
class Flow:
    """One way through one graph of steps. ``plan.advance`` never changes it: ``apply`` does, once that is stored."""

    id: str
    run_id: str
    graph: Graph
    status: RunStatus = RunStatus.CREATED
    #: Nothing new begins any more, and why.
    ending: Ending | None = None
    is_paused: bool = False
    #: Steps that stop before they begin, until they are resumed.
    breakpoints: frozenset[str] = frozenset()
    #: Of an iteration: the flow and the step of its loop, and which iteration it is.
    parent: tuple[str, str, int] | None = None
    #: Only of steps that were reached.
    steps: dict[str, StepState] = field(default_factory=dict)
    #: How many steps have not come to an end; the rest is not looked at again.
    open: int = 0

    def apply(self, steps: Iterable[StepState]) -> None:
        for state in steps:
            known = self.steps.get(state.step_id)
            self.steps[state.step_id] = state
            self.open += state.status.is_open - (known is not None and known.status.is_open)


# What may happen to a flow.


@dataclass(frozen=True)
class Began:
    """The flow may begin."""


@dataclass(frozen=True)
class Claimed:
    """A worker takes a step that is ready."""

    step_id: str


@dataclass(frozen=True)
class Waits:
    """A claimed step has started something that goes on without a worker: a subworkflow, or nothing until a time."""

    step_id: str
    fence: int
    until: datetime | None = None


@dataclass(frozen=True)
class LoopBegan:
    """A claimed loop knows its iterations."""

    step_id: str
    fence: int
    #: None: nobody knows, as in ``while``.
    total: int | None
    concurrency: int


@dataclass(frozen=True)
class LoopGoesOn:
    """The condition of a ``while`` held once more."""

    step_id: str
    fence: int


@dataclass(frozen=True)
class IterationEnded:
    step_id: str
    index: int
    status: RunStatus


@dataclass(frozen=True)
class ChildEnded:
    """The subworkflow that a step waits for has ended."""

    step_id: str


@dataclass(frozen=True)
class SignalsWanted:
    """It is known what signals a claimed step waits for."""

    step_id: str
    fence: int
    #: Whether all of them have been announced already.
    are_there: bool = False


@dataclass(frozen=True)
class SignalsCame:
    """The last of the signals that a step waits for was announced."""

    step_id: str


@dataclass(frozen=True)
class StepEnded:
    """An attempt of a claimed step has ended."""

    step_id: str
    fence: int
    outcome: Outcome
    #: Of its successors, those whose condition is met.
    taken: tuple[str, ...] = ()
    retries: Retries = field(default_factory=Retries)


@dataclass(frozen=True)
class LeaseLost:
    """The worker that had a step is gone; the attempt may still be going on, and is taken up again."""

    step_id: str
    fence: int


@dataclass(frozen=True)
class TakenOver:
    """The worker that had a step is gone, and another takes up the attempt where it is: nobody else could."""

    step_id: str
    fence: int


@dataclass(frozen=True)
class EndWanted:
    """A step, or all of the flow, is to be brought to an end."""

    ending: Ending
    #: None: all of the flow.
    step_id: str | None = None
    #: Of a skipped step: which successors follow.
    taken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paused:
    """Nothing new may begin for now."""


@dataclass(frozen=True)
class Resumed:
    """What was paused may go on: one step, or all of the flow."""

    step_id: str | None = None


class RestartFrom(StrEnum):
    #: What did not complete, and what follows it.
    INCOMPLETE = "incomplete"
    BEGINNING = "beginning"
    #: A step, and what follows it.
    STEP = "step"


@dataclass(frozen=True)
class Restarted:
    """A flow that has ended is run again, or a part of it; the rest keeps its results."""

    restart: RestartFrom = RestartFrom.INCOMPLETE
    step_id: str | None = None
    #: Steps that are not run again but count as done, each with the successors that follow.
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: By loop that did not complete: the iterations that did not.
    failed_iterations: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether somebody chose the version. Subworkflows then resume with the version that a new call would take.
    is_version_named: bool = False


#: What may happen while a flow goes on.
OpenHappening = (
    Began
    | Claimed
    | Waits
    | LoopBegan
    | LoopGoesOn
    | IterationEnded
    | ChildEnded
    | SignalsWanted
    | SignalsCame
    | StepEnded
    | LeaseLost
    | TakenOver
    | EndWanted
    | Paused
    | Resumed
)
Happening = OpenHappening | Restarted
