"""Whatever happens to a flow, in whatever order: it keeps its rules, and comes to an end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.model.runs import (
    Began,
    ChildEnded,
    Claimed,
    Ending,
    EndWanted,
    Flow,
    Graph,
    Happening,
    IterationEnded,
    LeaseLost,
    LoopBegan,
    Paused,
    Restarted,
    RestartFrom,
    Resumed,
    RunStatus,
    SignalsCame,
    SignalsWanted,
    StepEnded,
    StepStatus,
    TakenOver,
    Waits,
)
from dalsegno.model.workflow import FailureMode, ForeachStep, JobStep, SignalDependency, Step, SubworkflowStep
from dalsegno.plan.advance import StaleReport, advance
from dalsegno.plan.restarts import ancestors, descendants

START = datetime(2026, 11, 16, tzinfo=UTC)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to seven steps; each may lead to any later one."""
    count = draw(st.integers(1, 7))
    steps: list[Step] = []
    for number in range(count):
        later = [f"s{other}" for other in range(number + 1, count)]
        successors = {step_id: None for step_id in later if draw(st.booleans())}
        mode = draw(st.sampled_from(FailureMode))
        match draw(st.integers(0, 6)):
            case 0:
                steps.append(ForeachStep(id=f"s{number}", steps=(), successors=successors, failure_mode=mode))
            case 1:
                steps.append(SubworkflowStep(id=f"s{number}", successors=successors, failure_mode=mode))
            case 2:
                signals = (SignalDependency("x"),)
                steps.append(
                    JobStep(
                        id=f"s{number}",
                        type="NoOp",
                        successors=successors,
                        failure_mode=mode,
                        signal_dependencies=signals,
                    )
                )
            case _:
                steps.append(JobStep(id=f"s{number}", type="NoOp", successors=successors, failure_mode=mode))
    return Graph.of(steps)


@dataclass
class World:
    """Workers, iterations and people around a flow; every rule is checked after everything that happens."""

    draw: st.DataObject
    flow: Flow
    now: datetime = START
    #: Claimed steps → fence.
    working: dict[str, int] = field(default_factory=dict)
    iterations: set[tuple[str, int]] = field(default_factory=set)
    children: set[str] = field(default_factory=set)
    claims: Counter[str] = field(default_factory=Counter)
    succeeded: set[str] = field(default_factory=set)
    #: Those whose signals came, or that somebody let go without them.
    signalled: set[str] = field(default_factory=set)

    #: Whether it has begun, and its end was not told.
    goes_on: bool = False

    def happen(self, happening: Happening) -> None:
        before = dict(self.flow.steps)
        decision = advance(self.flow, happening, self.now)
        assert self.flow.steps == before, "advance changed the flow"
        self.goes_on = (self.goes_on or isinstance(happening, Began | Restarted)) and not decision.has_ended
        assert self.goes_on is not decision.status.is_final, "an end is told once"
        self.flow.apply(decision.steps)
        self.flow.status, self.flow.ending = decision.status, decision.ending
        self.flow.is_paused = decision.is_paused
        for step_id, index, _ in decision.launched:
            assert (step_id, index) not in self.iterations
            self.iterations.add((step_id, index))
        for state in decision.steps:
            if not state.is_claimed:
                self.working.pop(state.step_id, None)
            old = before.get(state.step_id)
            assert old is None or state.fence >= old.fence
            assert old is None or state.attempt >= old.attempt
        self.check()

    def check(self) -> None:
        graph = self.flow.graph
        assert self.flow.open == sum(state.status.is_open for state in self.flow.steps.values())
        assert self.flow.status.is_final == (self.flow.open == 0)
        for state in self.flow.steps.values():
            reached = state.status not in (StepStatus.NOT_CREATED, StepStatus.UNSATISFIED)
            before = [self.flow.steps.get(step_id) for step_id in graph.before[state.step_id]]
            if state.status is not StepStatus.NOT_CREATED:
                assert all(known and known.status.is_complete for known in before), "began too early"
            if reached and before:
                assert any(known and state.step_id in known.taken for known in before), "nothing led there"
            assert state.is_claimed == (state.step_id in self.working)
            assert not (state.is_claimed and state.ready_at)
            if graph.steps[state.step_id].signal_dependencies and state.status is StepStatus.RUNNING:
                assert state.step_id in self.signalled, "did not wait for its signals"
            assert not (state.ready_at and not state.status.is_open)
            if state.loop:
                assert state.loop.open == sum(step_id == state.step_id for step_id, _ in self.iterations)

    def outcome(self) -> Outcome:
        kind = self.draw.draw(st.sampled_from(["succeeded"] * 3 + ["failed", "stopped"]))
        if kind == "succeeded":
            return Succeeded()
        if kind == "stopped":
            return Stopped()
        return Failed(self.draw.draw(st.sampled_from(FailureKind)), "so it goes")

    def moves(self) -> list[str]:
        """What can happen now: work, in the order of the steps."""
        found = []
        for state in self.flow.steps.values():
            if state.ready_at is not None:
                found.append(f"claim {state.step_id}")
            elif state.step_id in self.working:
                found.append(f"work {state.step_id}")
            elif state.is_waiting and state.loop is None:
                found.append(f"child {state.step_id}")
            elif state.status is StepStatus.WAITING_FOR_SIGNALS:
                found.append(f"signal {state.step_id}")
            elif state.status is StepStatus.PAUSED:
                found.append("resume all")
        return found + [f"iterate {step_id} {index}" for step_id, index in sorted(self.iterations)]

    def move(self, move: str) -> None:
        match move.split():
            case ["claim", step_id]:
                self.now = max(self.now, self.flow.steps[step_id].ready_at or self.now)
                self.claims[step_id] += 1
                self.working[step_id] = self.flow.steps[step_id].fence + 1
                self.happen(Claimed(step_id))
                assert self.flow.steps[step_id].fence == self.working[step_id]
            case ["work", step_id]:
                self.work(step_id)
            case ["child", step_id]:
                self.happen(ChildEnded(step_id))
            case ["signal", step_id]:
                self.signalled.add(step_id)
                self.happen(SignalsCame(step_id))
            case ["iterate", step_id, index]:
                self.iterations.discard((step_id, int(index)))
                ended = self.draw.draw(st.sampled_from([RunStatus.SUCCEEDED] * 3 + [RunStatus.FAILED]))
                self.happen(IterationEnded(step_id, int(index), ended))
            case ["resume", _]:
                self.happen(Resumed())

    def work(self, step_id: str) -> None:
        step, state = self.flow.graph.steps[step_id], self.flow.steps[step_id]
        fence = self.working[step_id]
        if state.status is StepStatus.WAITING_FOR_SIGNALS and self.draw.draw(st.integers(0, 4)):
            are_there = self.draw.draw(st.booleans())
            self.signalled |= {step_id} if are_there else set()
            self.happen(SignalsWanted(step_id, fence, are_there))
            return
        if state.status is StepStatus.CREATED:
            # Somebody let it go while its signals were looked for.
            self.happen(SignalsWanted(step_id, fence))
            return
        if state.status is StepStatus.WAITING_FOR_SIGNALS:
            self.happen(StepEnded(step_id, fence, Failed(self.draw.draw(st.sampled_from(FailureKind)), "so it goes")))
            return
        if isinstance(step, ForeachStep) and state.loop is None and state.ending is None:
            self.happen(LoopBegan(step_id, fence, self.draw.draw(st.integers(0, 4)), 2))
            return
        if isinstance(step, SubworkflowStep) and self.draw.draw(st.booleans()):
            self.happen(Waits(step_id, fence))
            return
        taken = tuple(s for s in step.successors if self.draw.draw(st.booleans()))
        outcome = self.outcome()
        if isinstance(step, ForeachStep) and state.loop and state.loop.worst:
            outcome = Failed(FailureKind.FATAL, "an iteration failed")
        self.happen(StepEnded(step_id, fence, outcome, taken))
        if self.flow.steps[step_id].status is StepStatus.SUCCEEDED:
            self.succeeded.add(step_id)

    def interfere(self) -> None:
        known = sorted(self.flow.steps) or ["s0"]
        step_id = self.draw.draw(st.sampled_from(known))
        match self.draw.draw(
            st.sampled_from(["lost", "taken", "stale", "end", "end step", "pause", "resume", "resume step"])
        ):
            case "lost" if step_id in self.working:
                self.happen(LeaseLost(step_id, self.working.pop(step_id)))
            case "taken" if step_id in self.working:
                fence = self.working[step_id]
                self.working[step_id] = fence + 1
                self.happen(TakenOver(step_id, fence))
                assert self.flow.steps[step_id].fence == fence + 1
            case "stale":
                with pytest.raises(StaleReport):
                    advance(self.flow, StepEnded(step_id, self.working.get(step_id, 0) - 1, Succeeded()), self.now)
            case "end":
                self.happen(EndWanted(self.draw.draw(st.sampled_from([Ending.STOP, Ending.KILL, Ending.TIME_OUT]))))
            case "end step" if step_id in self.flow.steps:
                ending = self.draw.draw(st.sampled_from([Ending.STOP, Ending.KILL, Ending.SKIP]))
                taken = tuple(self.flow.graph.steps[step_id].successors)
                self.happen(EndWanted(ending, step_id, taken))
            case "pause":
                self.happen(Paused())
            case "resume":
                self.happen(Resumed())
            case "resume step" if step_id in self.flow.steps:
                self.signalled.add(step_id)
                self.happen(Resumed(step_id))

    def to_the_end(self) -> None:
        for _ in range(500):
            if self.flow.status.is_final:
                return
            moves = self.moves()
            assert moves, f"stuck: {self.flow.steps}"
            self.move(self.draw.draw(st.sampled_from(moves)))
        raise AssertionError("no end in sight")


@given(graphs(), st.data())
@settings(max_examples=400, deadline=None)
def test_any_order_of_things(graph: Graph, data: st.DataObject) -> None:
    world = World(data, Flow("f", "r", graph))
    world.happen(Began())
    for _ in range(data.draw(st.integers(0, 25))):
        if world.flow.status.is_final:
            break
        if data.draw(st.integers(0, 3)):
            world.move(data.draw(st.sampled_from(world.moves())))
        else:
            world.interfere()
    world.to_the_end()
    event(world.flow.status)
    assert not world.working
    assert not world.iterations


@given(graphs(), st.data(), st.sampled_from(RestartFrom))
@settings(max_examples=300, deadline=None)
def test_a_restart_repeats_what_it_should(graph: Graph, data: st.DataObject, restart: RestartFrom) -> None:
    world = World(data, Flow("f", "r", graph))
    world.happen(Began())
    world.to_the_end()
    complete = {s.step_id for s in world.flow.steps.values() if s.status.is_complete}
    incomplete = set(world.flow.steps) - complete
    step_id = data.draw(st.sampled_from(sorted(world.flow.steps)))
    fences = {state.step_id: state.fence for state in world.flow.steps.values()}
    world.claims.clear()
    skipped = {each: tuple(graph.steps[each].successors) for each in graph.steps if not data.draw(st.integers(0, 3))}
    world.happen(Restarted(restart, step_id if restart is RestartFrom.STEP else None, skipped))
    world.to_the_end()
    match restart:
        case RestartFrom.INCOMPLETE:
            kept = complete - descendants(graph, incomplete)
        case RestartFrom.STEP:
            kept = complete - {step_id} - descendants(graph, [step_id])
        case RestartFrom.BEGINNING:
            kept = set()
    assert not (kept | skipped.keys()) & set(world.claims)
    assert all(world.flow.steps[known].fence > fences.get(known, 0) for known in world.claims)


@given(graphs(), st.data())
@settings(max_examples=100, deadline=None)
def test_everything_runs_once_if_nothing_fails(graph: Graph, data: st.DataObject) -> None:
    flow, now = Flow("f", "r", graph), START
    ran: Counter[str] = Counter()

    def happen(happening: Happening) -> None:
        decision = advance(flow, happening, now)
        flow.apply(decision.steps)
        flow.status = decision.status

    happen(Began())
    while not flow.status.is_final:
        ready = sorted(state.step_id for state in flow.steps.values() if state.ready_at)
        step_id = data.draw(st.sampled_from(ready))
        happen(Claimed(step_id))
        if flow.steps[step_id].status is StepStatus.WAITING_FOR_SIGNALS:
            happen(SignalsWanted(step_id, flow.steps[step_id].fence, are_there=True))
            continue
        ran[step_id] += 1
        happen(StepEnded(step_id, flow.steps[step_id].fence, Succeeded(), tuple(graph.steps[step_id].successors)))
        now += timedelta(seconds=1)
    assert ran == Counter(list(graph.steps))
    assert flow.status is RunStatus.SUCCEEDED
    assert all(ancestors(graph, step_id) <= set(ran) for step_id in ran)
