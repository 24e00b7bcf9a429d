"""What follows from what happened: every change of a flow's state is decided here, but for one.

The success of a run may be refused because of its captures: ``run_ends`` decides that. Which runs begin is decided by
``admission``, and which steps a restart repeats by ``restarts``.

``advance`` looks at a flow and one happening, and returns a ``Decision``: data, which the engine stores in one
transaction and then applies. It looks only at steps that the happening concerns and at those that follow, so that a
flow of a thousand steps costs no more per step than one of ten.

Where a step may go from where:

    CREATED ──claimed──▶ RUNNING ──succeeded──▶ SUCCEEDED ──▶ what follows is CREATED, or UNSATISFIED
       ▲                    │
       │ resumed            ├─failed, retries left──▶ USER_/PLATFORM_/TIMEOUT_FAILED ──claimed──▶ RUNNING
    PAUSED                  ├─failed for good──▶ FATALLY_FAILED or TIMED_OUT, or COMPLETED_WITH_ERROR if it may fail
                            └─ended by somebody──▶ STOPPED, FATALLY_FAILED (kill), SKIPPED

A step with signals to wait for is WAITING_FOR_SIGNALS first. A worker takes it to find out which they are, and lets go
of it; when they are there, it is CREATED.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.model.runs import (
    Began,
    ChildEnded,
    Claimed,
    Ending,
    EndWanted,
    Flow,
    Happening,
    IterationEnded,
    LeaseLost,
    Loop,
    LoopBegan,
    LoopGoesOn,
    OpenHappening,
    Paused,
    Restarted,
    Resumed,
    RunStatus,
    SignalsCame,
    SignalsWanted,
    StepEnded,
    StepState,
    StepStatus,
    TakenOver,
    Waits,
)
from dalsegno.model.workflow import FailureMode
from dalsegno.plan.restarts import repeated
from dalsegno.plan.retries import WAITING, next_try


class StaleReport(Exception):
    """A report of a worker that has lost the step: somebody else has it, or it has ended."""


@dataclass(frozen=True)
class Decision:
    """What becomes of a flow."""

    #: The steps that changed, each as it is now.
    steps: tuple[StepState, ...] = ()
    status: RunStatus = RunStatus.CREATED
    ending: Ending | None = None
    is_paused: bool = False
    #: Whether it comes to its end now. A restarted one may do so at once, if nothing is left to run.
    has_ended: bool = False
    #: Iterations to begin: step, index, and whether it goes on with what an earlier try of the run left.
    launched: tuple[tuple[str, int, bool], ...] = ()
    #: Steps whose iterations or subworkflow are to be ended.
    ended_below: tuple[tuple[str, Ending], ...] = ()


def advance(flow: Flow, happening: Happening, now: datetime) -> Decision:
    """Decide what follows; the flow itself stays as it is."""
    return _Advance(flow, now).after(happening)


#: How a step ends if somebody ends it.
_ENDED = {
    Ending.STOP: StepStatus.STOPPED,
    Ending.KILL: StepStatus.FATALLY_FAILED,
    Ending.TIME_OUT: StepStatus.TIMED_OUT,
    Ending.SKIP: StepStatus.SKIPPED,
}
#: What a later wish may not weaken.
_STRENGTH = (None, Ending.SKIP, Ending.DRAIN, Ending.STOP, Ending.TIME_OUT, Ending.KILL)
#: From the worst on.
_WORST = (
    (StepStatus.FATALLY_FAILED, RunStatus.FAILED),
    (StepStatus.TIMED_OUT, RunStatus.TIMED_OUT),
    (StepStatus.STOPPED, RunStatus.STOPPED),
)
_FORCED = {Ending.STOP: RunStatus.STOPPED, Ending.KILL: RunStatus.FAILED, Ending.TIME_OUT: RunStatus.TIMED_OUT}


def worse(one: RunStatus | None, other: RunStatus | None) -> RunStatus | None:
    """The worse of two ends; None is the best."""
    for _, status in _WORST:
        if status in (one, other):
            return status
    return None


def _stopped(state: StepState) -> StepState:
    return replace(state, status=StepStatus.STOPPED, ready_at=None)


@dataclass
class _Advance:
    """The flow as it was, with what has been decided so far laid over it."""

    flow: Flow
    now: datetime
    changed: dict[str, StepState] = field(default_factory=dict)
    launched: list[tuple[str, int, bool]] = field(default_factory=list)
    ended_below: list[tuple[str, Ending]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ending = self.flow.ending
        self.is_paused = self.flow.is_paused
        self.open = self.flow.open

    def after(self, happening: Happening) -> Decision:
        if isinstance(happening, Restarted):
            self._restart(happening)
        elif not self.flow.status.is_final:
            self._take(happening)
        elif isinstance(happening, StepEnded | Waits | LoopBegan | LoopGoesOn | SignalsWanted | TakenOver):
            raise StaleReport(happening.step_id)
        goes_on = isinstance(happening, Restarted) or not self.flow.status.is_final
        status = self._status() if goes_on else self.flow.status
        return Decision(
            tuple(self.changed.values()),
            status,
            self.ending,
            self.is_paused,
            goes_on and status.is_final,
            tuple(self.launched),
            tuple(self.ended_below),
        )

    def _take(self, happening: OpenHappening) -> None:  # noqa: PLR0912 - one branch per happening
        match happening:
            case Began():
                for step_id in self.flow.graph.first:
                    self._create(step_id)
            case Claimed(step_id):
                self._claim(self._state(step_id))
            case Waits(step_id, fence, until):
                self._wait(self._claimed(step_id, fence), until)
            case LoopBegan(step_id, fence, total, concurrency):
                state = self._claimed(step_id, fence)
                # A restarted loop goes on where it was.
                loop = replace(state.loop or Loop(total, concurrency), concurrency=concurrency)
                self._go_on(replace(state, is_claimed=False), loop)
            case LoopGoesOn(step_id, fence):
                state = self._claimed(step_id, fence)
                self._go_on(replace(state, is_claimed=False), state.loop or Loop(None, 1))
            case IterationEnded(step_id, _, status):
                self._count(self._state(step_id), status)
            case ChildEnded(step_id):
                state = self._state(step_id)
                if state.is_waiting:
                    self._wake(state)
            case SignalsWanted(step_id, fence, are_there):
                self._wait_for_signals(self._claimed(step_id, fence), are_there=are_there)
            case SignalsCame(step_id):
                state = self._state(step_id)
                # One that is yet to be looked at finds them by itself.
                if state.status is StepStatus.WAITING_FOR_SIGNALS and not state.is_claimed and state.ready_at is None:
                    self._let_go(state)
            case StepEnded(step_id, fence, outcome, taken, _):
                self._end(self._claimed(step_id, fence), happening, outcome, taken)
            case LeaseLost(step_id, fence):
                state = self._state(step_id)
                if state.is_claimed and state.fence == fence:
                    self._put(replace(state, is_claimed=False, ready_at=self.now))
            case TakenOver(step_id, fence):
                state = self._claimed(step_id, fence)
                self._put(replace(state, fence=state.fence + 1))
            case EndWanted(ending, None, _):
                self._end_all(ending)
            case EndWanted(ending, step_id, taken):
                self._end_step(replace(self._state(step_id), taken=taken), ending)
            case Paused():
                self._pause()
            case Resumed(step_id):
                self._resume(step_id)
            case _:
                assert_never(happening)

    # Looking and noting.

    def _find(self, step_id: str) -> StepState | None:
        return self.changed.get(step_id) or self.flow.steps.get(step_id)

    def _state(self, step_id: str) -> StepState:
        state = self._find(step_id)
        if state is None:
            raise StaleReport(step_id)
        return state

    def _claimed(self, step_id: str, fence: int) -> StepState:
        state = self._state(step_id)
        if not state.is_claimed or state.fence != fence:
            raise StaleReport(step_id)
        return state

    def _put(self, state: StepState) -> None:
        known = self._find(state.step_id)
        self.open += state.status.is_open - (known is not None and known.status.is_open)
        self.changed[state.step_id] = state

    def _states(self) -> list[StepState]:
        return list((self.flow.steps | self.changed).values())

    def _status(self) -> RunStatus:
        if self.open:
            return RunStatus.IN_PROGRESS
        found = {state.status for state in self._states()}
        forced = _FORCED.get(self.ending) if self.ending else None
        worst = next((run for step, run in _WORST if step in found), None)
        return worse(worst, forced) or RunStatus.SUCCEEDED

    # What begins.

    def _create(self, step_id: str) -> None:
        known = self._find(step_id) or StepState(step_id)
        if known.ending is Ending.SKIP:
            self._put(replace(known, status=StepStatus.SKIPPED, ending=None))
        elif self.is_paused or step_id in self.flow.breakpoints:
            self._put(replace(known, status=StepStatus.PAUSED))
        else:
            self._make_ready(known)

    def _make_ready(self, state: StepState) -> None:
        """A worker takes it, to run it or to find out what signals it waits for."""
        has_signals = bool(self.flow.graph.steps[state.step_id].signal_dependencies)
        status = StepStatus.WAITING_FOR_SIGNALS if has_signals else StepStatus.CREATED
        self._put(replace(state, status=status, ready_at=self.now))

    def _follow(self, step_id: str) -> None:
        """Create what a completed step leads to; what nothing leads to any more is unsatisfied, and so on."""
        completed = [step_id]
        while completed and self.ending is None:
            for successor in self.flow.graph.steps[completed.pop()].successors:
                known = self._find(successor)
                before = [self._find(each) for each in self.flow.graph.before[successor]]
                if known is not None and known.status is not StepStatus.NOT_CREATED:
                    continue
                if not all(each and each.status.is_complete for each in before):
                    continue
                if any(each and successor in each.taken for each in before):
                    self._create(successor)
                else:
                    unsatisfied = replace(known or StepState(successor), status=StepStatus.UNSATISFIED)
                    self._put(replace(unsatisfied, ending=None, taken=()))
                if self._state(successor).status.is_complete:
                    completed.append(successor)

    def _restart(self, wish: Restarted) -> None:
        self.ending = None
        for state in repeated(self.flow, wish):
            self._put(state)
        for step_id in self.flow.graph.first:
            known = self._find(step_id)
            if known is None or known.status is StepStatus.NOT_CREATED:
                self._create(step_id)
        for state in self._states():
            if state.status.is_complete:
                self._follow(state.step_id)

    def _claim(self, state: StepState) -> None:
        if state.is_claimed or state.ready_at is None:
            raise StaleReport(state.step_id)
        attempt = state.attempt + state.status.is_to_be_retried
        is_to_wait = state.status is StepStatus.WAITING_FOR_SIGNALS
        self._put(
            replace(
                state,
                status=state.status if is_to_wait else StepStatus.RUNNING,
                attempt=attempt,
                ready_at=None,
                fence=state.fence + 1,
                is_claimed=True,
            )
        )

    # What goes on without a worker.

    def _wait(self, state: StepState, until: datetime | None) -> None:
        waiting = replace(state, is_claimed=False, ready_at=until)
        self._put(waiting)
        if state.ending is not None:
            self._end_step(waiting, state.ending)

    def _wait_for_signals(self, state: StepState, *, are_there: bool) -> None:
        waiting = replace(state, is_claimed=False, failure=None)
        if state.ending is not None:
            self._finish(waiting, _ENDED[state.ending], state.taken)
        elif are_there or state.status is not StepStatus.WAITING_FOR_SIGNALS:
            self._let_go(waiting)
        else:
            self._put(waiting)

    def _let_go(self, state: StepState) -> None:
        """It waits for no more signals."""
        if self.is_paused:
            # Whoever resumes the run lets it look once more, and it finds them.
            self._put(replace(state, status=StepStatus.PAUSED))
        else:
            self._put(replace(state, status=StepStatus.CREATED, ready_at=self.now))

    def _go_on(self, state: StepState, loop: Loop) -> None:
        """Launch the iterations of a loop that may run now; if there is none left, a worker finishes the loop."""
        if state.ending is None and loop.worst is None:
            while loop.open < loop.concurrency and (loop.again or loop.total is None or loop.next < loop.total):
                if loop.again:
                    self.launched.append((state.step_id, loop.again[0], True))
                    loop = replace(loop, again=loop.again[1:], open=loop.open + 1)
                else:
                    self.launched.append((state.step_id, loop.next, False))
                    loop = replace(loop, next=loop.next + 1, open=loop.open + 1)
        state = replace(state, loop=loop)
        if loop.open:
            self._put(state)
        else:
            self._wake(state)

    def _count(self, state: StepState, status: RunStatus) -> None:
        if state.loop is None:
            raise StaleReport(state.step_id)
        loop = replace(state.loop, open=state.loop.open - 1)
        if status is RunStatus.SUCCEEDED:
            loop = replace(loop, succeeded=loop.succeeded + 1)
        else:
            loop = replace(loop, worst=worse(loop.worst, status))
        if loop.total is None:
            # Whether there is another iteration is for a worker to find out.
            self._wake(replace(state, loop=loop))
            return
        hurried = self.flow.graph.failure_mode(state.step_id) is FailureMode.FAIL_IMMEDIATELY
        if status is not RunStatus.SUCCEEDED and state.ending is None and hurried and loop.open:
            self.ended_below.append((state.step_id, Ending.STOP))
        self._go_on(state, loop)

    def _wake(self, state: StepState) -> None:
        """What a step waited for is over: it ends if that was wanted, else a worker looks after it."""
        if state.ending is not None:
            self._finish(state, _ENDED[state.ending], state.taken)
        else:
            self._put(replace(state, ready_at=self.now))

    # What ends.

    def _end(self, state: StepState, report: StepEnded, outcome: Outcome, taken: tuple[str, ...]) -> None:
        state = replace(state, failure=None)
        match outcome:
            case Succeeded() if state.ending is not Ending.SKIP:
                self._finish(state, StepStatus.SUCCEEDED, taken)
            case _ if state.ending is not None:
                self._finish(state, _ENDED[state.ending], state.taken)
            case Failed(kind, message, hint):
                state = replace(state, failure={"kind": kind.value, "message": message, "hint": hint})
                self._fail(state, outcome, report)
            case Stopped() | Succeeded():
                self._finish(state, StepStatus.STOPPED, ())
            case _:
                assert_never(outcome)

    def _fail(self, state: StepState, failed: Failed, report: StepEnded) -> None:
        kind = failed.kind
        again = next_try(kind, state.tried, report.retries)
        if again is not None and self.ending in (None, Ending.DRAIN):
            tried, wait, last = again
            ready_at = self.now if failed.at_once else self.now + wait
            retry = {"attempt": state.attempt + 1, "of": state.attempt + last, "at": ready_at.isoformat()}
            state = replace(state, failure={**(state.failure or {}), "retry": retry})
            # If not even its signals could be looked for, that is what is tried again.
            is_to_wait = state.status is StepStatus.WAITING_FOR_SIGNALS
            status = state.status if is_to_wait else WAITING[kind]
            self._put(replace(state, status=status, tried=tried, ready_at=ready_at, is_claimed=False, loop=None))
        elif self.flow.graph.failure_mode(state.step_id) is FailureMode.IGNORE_FAILURE:
            self._finish(state, StepStatus.COMPLETED_WITH_ERROR, report.taken)
        elif kind is FailureKind.TIMEOUT:
            self._finish(state, StepStatus.TIMED_OUT, ())
        else:
            self._finish(state, StepStatus.FATALLY_FAILED, ())

    def _finish(self, state: StepState, status: StepStatus, taken: tuple[str, ...]) -> None:
        ended = replace(
            state,
            status=status,
            ready_at=None,
            is_claimed=False,
            ending=None,
            taken=taken if status.is_complete else (),
        )
        self._put(ended)
        if status.is_complete:
            self._follow(ended.step_id)
            return
        if self.flow.graph.failure_mode(state.step_id) is FailureMode.FAIL_IMMEDIATELY and self.ending is None:
            self.ending = Ending.DRAIN
            for other in self._states():
                self._end_step(other, Ending.STOP)
        else:
            self._drain()

    def _drain(self) -> None:
        """Nothing new begins; what has begun, and what is to be tried again, may go on."""
        if self.ending is not None:
            return
        self.ending = Ending.DRAIN
        for state in self._states():
            if state.status in (StepStatus.CREATED, StepStatus.PAUSED, StepStatus.WAITING_FOR_SIGNALS):
                # A worker that looks for signals ends it.
                ended = replace(state, ending=Ending.STOP) if state.is_claimed else _stopped(state)
                self._put(ended)

    def _end_all(self, ending: Ending) -> None:
        if _STRENGTH.index(ending) <= _STRENGTH.index(self.ending):
            return
        self.ending = ending
        for state in self._states():
            self._end_step(state, ending)

    def _end_step(self, state: StepState, ending: Ending) -> None:
        if not state.status.is_open:
            return
        if state.ending is not None and _STRENGTH.index(ending) <= _STRENGTH.index(state.ending):
            return
        below = state.is_waiting and state.ready_at is None
        if state.is_claimed or below:
            self._put(replace(state, ending=ending))
            if below:
                self.ended_below.append((state.step_id, ending))
        else:
            self._finish(state, _ENDED[ending], state.taken)

    # What is held up.

    def _pause(self) -> None:
        self.is_paused = True
        for state in self._states():
            if state.status is StepStatus.CREATED and not state.is_claimed:
                self._put(replace(state, status=StepStatus.PAUSED, ready_at=None))
            elif state.status.is_to_be_retried:
                self._put(replace(state, status=StepStatus.PAUSED, attempt=state.attempt + 1, ready_at=None))

    def _resume(self, step_id: str | None) -> None:
        if step_id is None:
            self.is_paused = False
        for state in [self._state(step_id)] if step_id else self._states():
            if state.status is StepStatus.PAUSED:
                self._make_ready(state)
            elif state.status is StepStatus.WAITING_FOR_SIGNALS and step_id is not None:
                # One that is let go by name waits no longer; if a worker looks for its signals, once that is over.
                ready_at = None if state.is_claimed else self.now
                self._put(replace(state, status=StepStatus.CREATED, ready_at=ready_at))
