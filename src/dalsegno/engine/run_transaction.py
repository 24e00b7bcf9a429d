"""One transaction: what happened goes in, what follows is decided by ``plan.advance`` and saved, all or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine import iterations, notices
from dalsegno.engine.blueprints import Blueprints
from dalsegno.engine.permits import may_hold_permits
from dalsegno.engine.records import Claim, OpenRun, Recorded, Report, StepUpdate
from dalsegno.engine.starting import RESTARTED
from dalsegno.errors import DataError, UserError
from dalsegno.model.captures import actor_of_run
from dalsegno.model.messages import Admit, ChildFinished, EndChildren, Message, RestartRun
from dalsegno.model.outcomes import Failed, FailureKind, Succeeded
from dalsegno.model.runs import (
    NOTHING_NEW,
    EndWanted,
    Flow,
    Happening,
    IterationEnded,
    RunStatus,
    SignalsWanted,
    StepEnded,
    StepState,
    StepStatus,
)
from dalsegno.model.signals import Announcement
from dalsegno.model.workflow import JobStep
from dalsegno.plan import unfinished_work
from dalsegno.plan.advance import Decision, StaleReport, advance
from dalsegno.spec.captures import committed_by
from dalsegno.store import captures, flows, queue, run_queries, runs, settling, signals, waking, work_units, workflows
from dalsegno.store.flows import UPDATED, StepChange
from dalsegno.store.store import commit

#: In lower case, the type of steps whose SQL is written once behind a capture.
_SPARK = "spark"


class RunTransaction:
    """One transaction."""

    def __init__(
        self,
        connection: Connection,
        known: dict[str, OpenRun],
        blueprints: Blueprints,
        node_id: str,
        now: datetime,
        roots: Sequence[str] | None = None,
    ) -> None:
        self.connection = connection
        self.roots = roots
        self.blueprints = blueprints
        self.node_id = node_id
        self.now = now
        #: What the process remembers of runs.
        self.known = known
        self.opened: dict[str, OpenRun] = {}
        self.ready: list[tuple[str, str, str]] = []
        self.claims: list[Claim] = []
        self.waiting: deque[tuple[OpenRun, Flow, Happening, StepUpdate]] = deque()
        self._steps: dict[tuple[str, str], StepChange] = {}
        self.new_flows: list[dict[str, Any]] = []
        self._changed_flows: dict[str, Flow] = {}
        self.run_changes: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.released: list[tuple[str, str]] = []
        self.permits: list[dict[str, str]] = []
        self._refused: list[Report] = []
        self._to_end: list[tuple[str, str]] = []
        self._committed: list[str] = []
        self._announced: list[Announcement] = []
        #: Flow and step of those that wait for signals no longer.
        self._waited: list[tuple[str, str]] = []
        self.has_sent = False
        self.has_backlog = False
        self.next_due: datetime | None = None
        #: Whose permits nobody else takes now; None before the first were needed.
        self.permit_names: set[str] | None = None
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
        blueprint = self.blueprints(row["workflow_id"], row["version"])
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
        happening = self._look_for_signals(run, flow, self._commit(run, flow, happening), update)
        decision = advance(flow, happening, self.now)
        about = getattr(happening, "step_id", None)
        for state in decision.steps:
            self.keep(run, flow, state, update if state.step_id == about else StepUpdate())
        was, ended_before = flow.status, flow.status.is_final
        if (flow.status, flow.ending) != (decision.status, decision.ending):
            self._changed_flows[flow.id] = flow
        flow.apply(decision.steps)
        flow.status, flow.ending, flow.is_paused = decision.status, decision.ending, decision.is_paused
        if update.child is not None and about is not None:
            self._begin_child(run, flow, about, update.child)
        if update.announced and about is not None and flow.steps[about].status is StepStatus.SUCCEEDED:
            self._announced.extend(update.announced)
        self._follow(run, flow, decision, update)
        if flow.status.is_final and not ended_before:
            self._ended(run, flow)
        elif was.is_final and not flow.status.is_final and flow.parent is None:
            self.run_changes.setdefault(run.id, {})["status"] = flow.status.value

    def _commit(self, run: OpenRun, flow: Flow, happening: Happening) -> Happening:
        """Move the checkpoint of the capture that a step has processed; if that is refused, the step has failed."""
        match happening:
            case StepEnded(step_id, fence, Succeeded(commits=str(capture_id))):
                state = flow.steps.get(step_id)
                if state is None or not state.is_claimed or state.fence != fence:
                    # The report comes too late, which is found out next.
                    return happening
                if (failed := _too_early(run, flow, step_id)) is None and (
                    refusal := self._move_checkpoints(run, [capture_id])
                ) is not None:
                    failed = Failed(FailureKind.FATAL, refusal.message, refusal.hint)
                if failed is not None:
                    return replace(happening, outcome=failed, taken=())
        return happening

    def _look_for_signals(self, run: OpenRun, flow: Flow, happening: Happening, update: StepUpdate) -> Happening:
        """Let a step wait for what has not been announced yet."""
        match happening:
            case SignalsWanted(step_id, fence):
                state = flow.steps.get(step_id)
                if state is None or not state.is_claimed or state.fence != fence:
                    # The report comes too late, which is found out next.
                    return happening
                if state.status is StepStatus.WAITING_FOR_SIGNALS and state.ending is None:
                    are_there = signals.wait(self.connection, run.id, flow.id, step_id, update.wanted_signals)
                    return replace(happening, are_there=are_there)
        return happening

    def _move_checkpoints(self, run: OpenRun, capture_ids: Sequence[str]) -> UserError | DataError | None:
        """Commit captures, and those that were consumed together with them, all or none: then, why not."""
        by = actor_of_run(run.workflow_id, run.row["number"])
        try:
            with self.connection.begin_nested():
                ready = settling.committable(self.connection, capture_ids, run.row["root_run"], by)
                for capture_id in ready:
                    commit(self.connection, capture_id, by=by, now=self.now)
        except (UserError, DataError) as refusal:
            return refusal
        self._committed.extend(ready)
        return None

    def _commit_with_run(self, run: OpenRun, flow: Flow) -> None:
        """Move the checkpoints that no step moves; if that is refused, the captures have failed, and so has the run."""
        found = self._params_of(run, run.blueprint.committed_with_run)
        ids = {key: (params or {}).get("capture_id", {}).get("value") for key, params in found.items()}
        captured = {key: capture_id for key, capture_id in ids.items() if capture_id}
        refusal = self._move_checkpoints(run, [*captured.values()])
        if refusal is None:
            return
        failure = {"kind": FailureKind.FATAL.value, "message": refusal.message, "hint": refusal.hint}
        for step_id in {run.blueprint.outermost(step_id) for _, step_id in captured}:
            state = replace(flow.steps[step_id], status=StepStatus.FATALLY_FAILED, failure=failure, taken=())
            self.keep(run, flow, state, StepUpdate())
            flow.apply([state])
        flow.status = RunStatus.FAILED

    def _params_of(self, run: OpenRun, step_ids: Set[str]) -> dict[tuple[str, str], Any]:
        """The parameters of those of these steps that have succeeded, by flow and step."""
        found: dict[tuple[str, str], Any] = {}
        for row in flows.steps_that(self.connection, run.id, step_ids, StepStatus.SUCCEEDED):
            found[row["flow_id"], row["step_id"]] = row["params"]
        for key, change in self._steps.items():
            # What is not stored yet.
            if change.run_id == run.id and key[1] in step_ids:
                is_done = change.state.status is StepStatus.SUCCEEDED
                found[key] = change.update.get("params", found.get(key)) if is_done else None
        return found

    def _has_found_nothing(self, run: OpenRun) -> bool:
        """Whether no capture of a run found anything new, and so what follows them was not run."""
        if not run.blueprint.captures:
            return False
        captured = [params for params in self._params_of(run, run.blueprint.captures).values() if params]
        is_left_out = any(state.status is StepStatus.UNSATISFIED for state in run.flows[run.id].steps.values())
        return bool(captured) and is_left_out and all(_found_nothing(params) for params in captured)

    def keep(self, run: OpenRun, flow: Flow, state: StepState, update: StepUpdate) -> None:
        """Save a step as it is now."""
        old, key = flow.steps.get(state.step_id), (flow.id, state.step_id)
        known = self._steps[key].update if key in self._steps else {}
        told = {name: value for name in UPDATED if (value := getattr(update, name)) is not None}
        self._steps[key] = StepChange(flow.id, run.id, state, self.now, self.node_id, {**known, **told})
        if state.ready_at is not None and state.ready_at > self.now:
            self.look_again(state.ready_at)
        elif state.ready_at is not None:
            self.ready.append((run.id, flow.id, state.step_id))
        if state.is_claimed and state.ending is not None:
            self._to_end.append(key)
        is_waiting = state.status is StepStatus.WAITING_FOR_SIGNALS
        if old is not None and old.status is StepStatus.WAITING_FOR_SIGNALS and not is_waiting:
            self._waited.append(key)
        is_let_go = old is not None and old.is_claimed and not state.is_claimed
        if is_let_go and may_hold_permits(flow.graph.steps[state.step_id]):
            self.released.append(key)
            # Somebody may have waited for its permits.
            self.has_backlog = True
        is_news = state.status not in (StepStatus.CREATED, StepStatus.NOT_CREATED)
        # If not even its signals could be looked for, a step fails and stands as before.
        has_failed = old is not None and state.failure is not None and state.failure != old.failure
        if is_news and (old is None or has_failed or (old.status, old.attempt) != (state.status, state.attempt)):
            data = {"status": state.status.value} | ({"failure": dict(state.failure)} if state.failure else {})
            self.tell(run.id, "step", data, flow.id, state)

    def look_again(self, at: datetime) -> None:
        """There is something to do then, if not earlier."""
        self.next_due = min(at, self.next_due or at)

    def tell(
        self,
        run_id: str,
        kind: str,
        data: Mapping[str, Any],
        flow_id: str | None = None,
        state: StepState | None = None,
    ) -> None:
        self.events.append(
            {
                "run_id": run_id,
                "flow_id": flow_id,
                "step_id": state.step_id if state else None,
                "attempt": state.attempt if state else None,
                "kind": kind,
                "data": dict(data),
                "happened_at": self.now,
            }
        )

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

    def _ended(self, run: OpenRun, flow: Flow) -> None:
        self._changed_flows[flow.id] = flow
        if flow.parent is not None:
            above, step_id, index = flow.parent
            del run.flows[flow.id]
            run.iterations.pop(flow.id, None)
            for inner in flow.steps:
                run.loops.pop((flow.id, inner), None)
            self.waiting.append((run, self.flow(run, above), IterationEnded(step_id, index, flow.status), StepUpdate()))
            return
        if flow.status is RunStatus.SUCCEEDED and run.blueprint.committed_with_run:
            self._commit_with_run(run, flow)
        reason = self._reason(flow)
        if flow.status is RunStatus.SUCCEEDED and (left := self._left_uncommitted(run)):
            flow.status, reason = RunStatus.FAILED, left
        elif flow.status is RunStatus.SUCCEEDED and self._has_found_nothing(run):
            reason = NOTHING_NEW
        self.end_run(run, flow.status, reason)

    def _left_uncommitted(self, run: OpenRun) -> str | None:
        """Why captures stay pending that the run has processed; None if none does."""
        if run.id != run.row["root_run"] or not run.blueprint.captures:
            return None
        waiting = captures.wanted_by(self.connection, run.id)
        if not waiting:
            return None
        others = sorted(work_units.together(self.connection, waiting) - set(waiting))
        return (
            f"Capture {', '.join(waiting)} is not committed: a step consumed it together with {', '.join(others)}, "
            "which no step has committed."
        )

    @staticmethod
    def _reason(flow: Flow) -> str | None:
        # A step that was stopped while it waited for its next try is not why the run ended.
        ends = (StepStatus.FATALLY_FAILED, StepStatus.TIMED_OUT)
        failed = [state for state in flow.steps.values() if state.failure and state.status in ends]
        if not failed:
            return None
        return "; ".join(f"{state.step_id}: {(state.failure or {}).get('message', '')}" for state in failed[:3])

    # Runs.

    def send(self, run_id: str, message: Message) -> None:
        runs.send(self.connection, run_id, message, self.now)
        self.has_sent = True

    def end_run(self, run: OpenRun, status: RunStatus, reason: str | None) -> None:
        changes = {"status": status.value, "ended_at": self.now, "reason": reason}
        self.run_changes.setdefault(run.id, {}).update(changes)
        run.row = {**run.row, **changes}
        self.tell(run.id, "run", {"status": status.value, "reason": reason})
        notices.tell_of_end(self.connection, run.row, self.now)
        self.send(run.id, Admit(run.workflow_id))
        if run.row["parent_run"]:
            self.send(run.row["parent_run"], ChildFinished(run.row["parent_flow"], run.row["parent_step"]))

    def _begin_child(self, run: OpenRun, flow: Flow, step_id: str, values: Mapping[str, Any]) -> None:
        known = run_queries.run_row(self.connection, values["id"])
        if known is None:
            runs.add_run(self.connection, {**values, "created_at": self.now})
            self.tell(values["id"], "run", {"status": RunStatus.CREATED.value})
        elif known["attempt"] < values["attempt"]:
            changes = {name: values[name] for name in RESTARTED}
            self.send(values["id"], RestartRun(values["attempt"], changes))
            return
        self.send(values["id"], Admit(values["workflow_id"]))

    # Saving.

    def save(self) -> Recorded:
        if self._changed():
            flows.add_flows(self.connection, self.new_flows)
            flows.save_steps(self.connection, list(self._steps.values()))
            flows.change_flows(self.connection, [_flow_values(flow, self.now) for flow in self._changed_flows.values()])
            queue.release_permits(self.connection, self.released)
            queue.add_permits(self.connection, self.permits)
            runs.add_events(self.connection, self.events)
            self._save_runs()
            self._save_signals()
        # What is to be ended may be another process's.
        if self.has_news or self._to_end:
            waking.announce(self.connection)
        ended = [run_id for run_id, run in self.opened.items() if RunStatus(run.row["status"]).is_final]
        for run_id in ended:
            self.known.pop(run_id, None)
        return Recorded(
            tuple(self.claims),
            tuple(self._refused),
            tuple(self._to_end),
            self.has_backlog,
            self.next_due,
            self.has_sent,
            tuple(ended),
            tuple(self._committed),
        )

    def _save_signals(self) -> None:
        signals.forget_waits(self.connection, self._waited, only_open=True)
        if self._announced:
            signals.announce(self.connection, self._announced, self.now)
            # Steps of other runs may have waited for them.
            self.has_sent = True

    def _save_runs(self) -> None:
        for run_id, values in sorted(self.run_changes.items()):
            runs.change_run(self.connection, run_id, **values)
        names = self._changed_runs()
        changed = [run for run_id, run in self.opened.items() if run_id in names]
        for run in changed:
            run.revision += 1
        runs.set_revisions(self.connection, {run.id: run.revision for run in changed})

    def _changed_runs(self) -> set[str]:
        """Those that were only looked at stay as they are known to others."""
        of_steps = {change.run_id for change in self._steps.values()}
        of_flows = {flow.run_id for flow in self._changed_flows.values()} | {new["run_id"] for new in self.new_flows}
        return of_steps | of_flows | self.run_changes.keys()

    def _changed(self) -> bool:
        return bool(self._steps or self.new_flows or self._changed_flows or self.run_changes or self.events)


def _found_nothing(params: Mapping[str, Any]) -> bool:
    return (params.get("has_changes") or {}).get("value") is False


def _flow_values(flow: Flow, now: datetime) -> dict[str, Any]:
    return {
        "key": flow.id,
        "status": flow.status.value,
        "ending": flow.ending.value if flow.ending else None,
        "ended_at": now if flow.status.is_final else None,
    }


def _too_early(run: OpenRun, flow: Flow, commit_step: str) -> Failed | None:
    """Why a capture cannot be committed yet: a step beside the commit may still write for it."""
    steps = run.blueprint.steps
    capture_step = committed_by(steps[commit_step])
    if capture_step is None or capture_step not in flow.graph.steps:
        return None
    # What other jobs do, nobody knows; but a loop or a called workflow may have SQL in it.
    writers = [each.id for each in steps.values() if not isinstance(each, JobStep) or each.type.lower() == _SPARK]
    beside = unfinished_work.at_work_beside(flow, capture_step, commit_step, writers)
    if beside is None:
        return None
    return Failed(
        FailureKind.PLATFORM,
        f"Step {beside!r} may still write what {capture_step!r} captured, and {commit_step!r} does not wait for it.",
        f"Let {commit_step!r} come after {beside!r}.",
    )
