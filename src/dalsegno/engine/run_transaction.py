"""One transaction: what happened goes in, ``plan`` decides what follows, and all of it is saved or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine import checkpoint_moves, iterations, notices
from dalsegno.engine.pending_writes import PendingWrites, StepKey
from dalsegno.engine.permits import may_hold_permits
from dalsegno.engine.ports import Versions
from dalsegno.engine.records import Claim, OpenRun, Recorded, Report, StepUpdate
from dalsegno.engine.starting import RESTARTED
from dalsegno.model.messages import Admit, ChildFinished, EndChildren, Message, RestartRun
from dalsegno.model.runs import (
    EndWanted,
    Flow,
    Happening,
    IterationEnded,
    RunStatus,
    SignalsWanted,
    StepState,
    StepStatus,
)
from dalsegno.plan.admission import ChildStart, child_start
from dalsegno.plan.advance import Decision, StaleReport, advance
from dalsegno.plan.reports import looks_for_signals
from dalsegno.plan.run_ends import RunEnd, end_of_run
from dalsegno.plan.step_effects import effects_of
from dalsegno.store import flows, run_queries, runs, signals, waking, workflows


@dataclass
class ClaimState:
    """What this process claims, and what there is to claim."""

    #: Run, flow and step of those that became ready.
    ready: list[tuple[str, str, str]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    #: Whether steps may be ready that were not claimed.
    has_backlog: bool = False
    #: When the next step is ready.
    next_due: datetime | None = None
    #: Whose permits nobody else takes now; None before the first were needed.
    permit_names: set[str] | None = None

    def look_again(self, at: datetime) -> None:
        """There is something to do then, if not earlier."""
        self.next_due = min(at, self.next_due or at)


class RunTransaction:
    """One transaction."""

    def __init__(
        self,
        connection: Connection,
        known: dict[str, OpenRun],
        versions: Versions,
        node_id: str,
        now: datetime,
        roots: Sequence[str] | None = None,
    ) -> None:
        self.connection = connection
        self.roots = roots
        self.versions = versions
        self.node_id = node_id
        self.now = now
        #: What the process remembers of runs, and what of it this transaction uses.
        self.known = known
        self.opened: dict[str, OpenRun] = {}
        #: What is still to happen in it.
        self.waiting: deque[tuple[OpenRun, Flow, Happening, StepUpdate]] = deque()
        self.writes = PendingWrites(now, node_id)
        self.claiming = ClaimState()
        self.committed: list[str] = []
        self._refused: list[Report] = []
        self._to_end: list[StepKey] = []
        self.has_sent = False
        #: Whether there is something to do for other processes.
        self.has_news = False

    # Opening what is there.

    def open(self, run_id: str) -> OpenRun:
        """The run, at its newest revision, which nobody else changes until we are done."""
        if run_id in self.opened:
            return self.opened[run_id]
        runs.hold(self.connection, run_id)
        return self._open(run_id)

    def open_unless_busy(self, run_id: str) -> OpenRun | None:
        """As ``open``, but None if somebody else is changing the run."""
        if run_id in self.opened:
            return self.opened[run_id]
        return self._open(run_id) if runs.try_hold(self.connection, run_id) else None

    def _open(self, run_id: str) -> OpenRun:
        # It comes last again: those that nobody asked for are forgotten first.
        known = self.known.pop(run_id, None)
        if known is None or known.revision != runs.revision_of(self.connection, run_id):
            known = self._load(run_id)
        self.opened[run_id] = self.known[run_id] = known
        return known

    def _load(self, run_id: str) -> OpenRun:
        row = run_queries.run_row(self.connection, run_id)
        if row is None:
            raise StaleReport(run_id)
        blueprint = self.versions.blueprint(row["workflow_id"], row["version"])
        breakpoints = workflows.breakpoints_of(self.connection, row["workflow_id"])
        return OpenRun(dict(row), blueprint, row["revision"], breakpoints)

    def flow(self, run: OpenRun, flow_id: str) -> Flow:
        if flow_id not in run.flows:
            row = flows.flow_row(self.connection, flow_id)
            if row is None:
                raise StaleReport(flow_id)
            graph = run.blueprint.graph(row["parent_step"])
            flow = flows.load_flow(self.connection, row, graph, is_paused=run.row["is_paused"])
            flow.breakpoints = run.breakpoints
            run.flows[flow_id] = flow
        return run.flows[flow_id]

    # What happens.

    def take(self, report: Report) -> None:
        """Take a report, and everything that follows from it."""
        try:
            run = self.open(report.run_id)
            self.apply(run, self.flow(run, report.flow_id), report.happening, report.update)
        except StaleReport:
            self._refused.append(report)
            return
        self.work_off()

    def work_off(self) -> None:
        while self.waiting:
            self.apply(*self.waiting.popleft())

    def apply(self, run: OpenRun, flow: Flow, happening: Happening, update: StepUpdate) -> None:
        happening = checkpoint_moves.commit_with_step(self, run, flow, happening)
        happening = self._look_for_signals(run, flow, happening, update)
        decision = advance(flow, happening, self.now)
        about = getattr(happening, "step_id", None)
        for state in decision.steps:
            self.change_step(run, flow, state, update if state.step_id == about else StepUpdate())
        was = flow.status
        if (flow.status, flow.ending) != (decision.status, decision.ending):
            self.writes.changed_flows[flow.id] = flow
        flow.apply(decision.steps)
        flow.status, flow.ending, flow.is_paused = decision.status, decision.ending, decision.is_paused
        if update.child is not None and about is not None:
            self._begin_child(update.child)
        if update.announced and about is not None and flow.steps[about].status is StepStatus.SUCCEEDED:
            self.writes.announced.extend(update.announced)
            # Steps of other runs may have waited for them.
            self.has_sent = True
        self._follow(run, flow, decision, update)
        if decision.has_ended:
            self._end(run, flow)
        elif was.is_final and not flow.status.is_final and flow.parent is None:
            self.writes.change_run(run, status=flow.status.value)

    def _look_for_signals(self, run: OpenRun, flow: Flow, happening: Happening, update: StepUpdate) -> Happening:
        """Let a step wait for what has not been announced yet."""
        if isinstance(happening, SignalsWanted) and looks_for_signals(flow, happening):
            are_there = signals.wait(self.connection, run.id, flow.id, happening.step_id, update.wanted_signals)
            return replace(happening, are_there=are_there)
        return happening

    def change_step(self, run: OpenRun, flow: Flow, state: StepState, update: StepUpdate) -> None:
        """Save a step as it is now, and see to what that means for others."""
        key = (flow.id, state.step_id)
        effects = effects_of(flow.steps.get(state.step_id), state, self.now)
        self.writes.change_step(run, flow, state, update)
        if effects.ready_later is not None:
            self.claiming.look_again(effects.ready_later)
        if effects.is_ready:
            self.claiming.ready.append((run.id, *key))
        if effects.is_to_end:
            self._to_end.append(key)
        if effects.has_stopped_waiting:
            self.writes.ended_waits.append(key)
        if effects.is_let_go and may_hold_permits(flow.graph.steps[state.step_id]):
            self.writes.released_permits.append(key)
            # Somebody may have waited for its permits.
            self.claiming.has_backlog = True
        if effects.is_event:
            data = {"status": state.status.value} | ({"failure": dict(state.failure)} if state.failure else {})
            self.writes.add_event(run.id, "step", data, flow.id, state)

    # What follows elsewhere.

    def _follow(self, run: OpenRun, flow: Flow, decision: Decision, update: StepUpdate) -> None:
        for step_id, index, is_again in decision.launched:
            iterations.launch(self, run, flow, (step_id, index), update, is_again=is_again)
        for step_id, ending in decision.ended_below:
            if step_id in run.blueprint.bodies:
                for below in iterations.still_open(self, run, flow.id, step_id):
                    self.waiting.append((run, below, EndWanted(ending), StepUpdate()))
            else:
                self.send(run.id, EndChildren(flow.id, step_id, ending))

    def _end(self, run: OpenRun, flow: Flow) -> None:
        """A flow has ended: of an iteration, which counts for its loop, or of the run."""
        self.writes.changed_flows[flow.id] = flow
        if flow.parent is not None:
            above, step_id, index = flow.parent
            iterations.forget(run, flow)
            self.waiting.append((run, self.flow(run, above), IterationEnded(step_id, index, flow.status), StepUpdate()))
            return
        if flow.status is RunStatus.SUCCEEDED and run.blueprint.committed_with_run:
            checkpoint_moves.commit_with_run(self, run, flow)
        has_succeeded = flow.status is RunStatus.SUCCEEDED
        left = checkpoint_moves.uncommitted(self, run) if has_succeeded else None
        ended = run.row["reason"] if run.row["ended_by"] else None
        end = end_of_run(
            flow,
            left,
            checkpoint_moves.has_changes(self, run) if has_succeeded else (),
            only_declares=run.blueprint.declared >= flow.graph.steps.keys(),
            ended=ended,
        )
        flow.status = end.status
        self.end_run(run, end)

    # Runs.

    def send(self, run_id: str, message: Message) -> None:
        runs.send(self.connection, run_id, message, self.now)
        self.has_sent = True

    def end_run(self, run: OpenRun, end: RunEnd) -> None:
        self.writes.change_run(run, status=end.status.value, ended_at=self.now, reason=end.reason)
        self.writes.add_event(run.id, "run", {"status": end.status.value, "reason": end.reason})
        notices.tell_of_end(self.connection, run.row, self.now)
        self.send(run.id, Admit(run.workflow_id))
        if run.row["parent_run"]:
            self.send(run.row["parent_run"], ChildFinished(run.row["parent_flow"], run.row["parent_step"]))

    def _begin_child(self, values: Mapping[str, Any]) -> None:
        run_id = values["id"]
        known = run_queries.run_row(self.connection, run_id)
        match child_start(known["attempt"] if known else None, values["attempt"]):
            case ChildStart.NEW:
                runs.add_run(self.connection, {**values, "created_at": self.now})
                self.writes.add_event(run_id, "run", {"status": RunStatus.CREATED.value})
            case ChildStart.RESTART:
                self.send(run_id, RestartRun(values["attempt"], {name: values[name] for name in RESTARTED}))
                return
            case ChildStart.ADMIT:
                pass
        self.send(run_id, Admit(values["workflow_id"]))

    # Saving.

    def save(self) -> Recorded:
        self.writes.save(self.connection, self.opened)
        # What is to be ended may be another process's.
        if self.has_news or self._to_end:
            waking.announce(self.connection)
        ended = [run_id for run_id, run in self.opened.items() if RunStatus(run.row["status"]).is_final]
        for run_id in ended:
            self.known.pop(run_id, None)
        return Recorded(
            tuple(self.claiming.claims),
            tuple(self._refused),
            tuple(self._to_end),
            self.claiming.has_backlog,
            self.claiming.next_due,
            self.has_sent,
            tuple(ended),
            tuple(self.committed),
        )
