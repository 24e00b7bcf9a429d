"""What a claimed step does next, by its kind. A worker keeps nothing: it looks, acts, and reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from dalsegno.engine.about import working_on
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.captures import processed_by
from dalsegno.engine.jobs import Jobs, Left, Signals
from dalsegno.engine.records import Claim, Facts, Report
from dalsegno.engine.scopes import Scopes, given_param
from dalsegno.engine.starting import child_run_id, evaluated, new_run, restarted_with
from dalsegno.engine.step_signals import announced, sought
from dalsegno.errors import DalsegnoError, ParamError, PlatformError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.model.params import Param, ParamSource
from dalsegno.model.retries import Retries
from dalsegno.model.runs import (
    LeaseLost,
    LoopBegan,
    LoopGoesOn,
    RestartFrom,
    RunStatus,
    SignalsSought,
    StepEnded,
    StepStatus,
    Waits,
)
from dalsegno.model.signals import Announcement
from dalsegno.model.workflow import FailureMode, ForeachStep, JobStep, SubworkflowStep, WhileStep
from dalsegno.spec.params.context import Evaluated
from dalsegno.spec.params.durations import retry_policy_of, timeout_of
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.layers import handed_down
from dalsegno.spec.params.loops import (
    LOOP_PARAMS,
    MOST_ITERATIONS,
    first_loop_params,
    iteration_count,
    next_loop_params,
)
from dalsegno.spec.params.outputs import apply_outputs
from dalsegno.spec.params.stored import from_stored, to_stored
from dalsegno.steps.outputs import SIGNALS, signals_in
from dalsegno.store import Store, flows, runs, workflows

log = logging.getLogger(__name__)

#: Of a foreach that names none.
DEFAULT_CONCURRENCY = 100


@dataclass(frozen=True)
class Memory:
    """What is stored of a step that a worker has had before."""

    params: Mapping[str, Any] | None = None
    handle: Mapping[str, Any] | None = None
    deadline: datetime | None = None


#: Stores what a worker knows of its step while it runs, and says whether the step is still its own.
Note = Callable[[Claim, Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Worker:
    """Runs claimed steps; any number of threads may share it."""

    store: Store
    scopes: Scopes
    jobs: Jobs
    clock: Callable[[], datetime]
    blueprint: Callable[[str, str], Blueprint]
    #: Removes what a committed capture leaves behind.
    tidy_up: Callable[[str], None]

    def work(self, claim: Claim, signals: Signals, note: Note) -> Report:
        """Do what there is to do, and say what happened."""
        with working_on(claim):
            return self._work(claim, signals, note)

    def _work(self, claim: Claim, signals: Signals, note: Note) -> Report:
        turn = _Turn(self, claim, signals, note)
        try:
            return turn.take()
        except PlatformError as error:
            return turn.ended(Failed(FailureKind.PLATFORM, error.message, error.hint))
        except DalsegnoError as error:
            return turn.ended(Failed(FailureKind.FATAL, error.message, error.hint))
        except Exception as error:
            log.exception("step failed inside of dalsegno")
            return turn.ended(Failed(FailureKind.FATAL, f"dalsegno itself failed: {type(error).__name__}: {error}"))


class _Turn:
    """One claim of one step."""

    def __init__(self, worker: Worker, claim: Claim, signals: Signals, note: Note) -> None:
        self.worker = worker
        self.claim = claim
        self.run, self.flow, self.state, self.step = claim.run, claim.flow, claim.state, claim.step
        self.signals = signals
        self.note = note
        self.now = worker.clock()
        self.retries = Retries()
        #: The signals that its job announces.
        self.told: list[Any] = []
        self._scope: Scope | None = None
        self._memory: Memory | None = None

    def take(self) -> Report:
        if self.state.status is StepStatus.WAITING_FOR_SIGNALS:
            return self._look_for_signals()
        match self.step:
            case JobStep():
                return self._job(self.step)
            case ForeachStep():
                return self._foreach(self.step)
            case WhileStep():
                return self._while(self.step)
            case SubworkflowStep():
                return self._subworkflow(self.step)
            case _:
                assert_never(self.step)

    def _look_for_signals(self) -> Report:
        if self.state.ending is not None:
            return self.ended(Stopped())
        found = sought(self.worker.store, self.claim, self.scope())
        return self.report(SignalsSought(self.step.id, self.state.fence), sought=found)

    # What all kinds need.

    @property
    def memory(self) -> Memory:
        """What is known of this attempt from an earlier claim."""
        if self._memory is None:
            self._memory = Memory()
            # The first claim of all finds nothing.
            if self.state.fence > 1:
                with self.worker.store.database.reading() as connection:
                    row = flows.step_row(connection, self.flow.id, self.step.id)
                handle = row and row["handle"]
                if row and handle and handle.get("attempt") == self.state.attempt:
                    self._memory = Memory(row["params"], handle, row["deadline"])
        return self._memory

    def scope(self, *, raw: frozenset[str] = frozenset(), known: Mapping[str, Param] | None = None) -> Scope:
        if self._scope is None or known is not None:
            self._scope = self.worker.scopes.of_step(
                self.run, self.flow, self.step, self.state, self.now, raw=raw, known=known
            )
        return self._scope

    def report(self, happening: Any, **facts: Any) -> Report:
        return Report(self.run.id, self.flow.id, happening, Facts(**facts))

    def deadline(self) -> datetime | None:
        """When a step that goes on without a worker must have ended; None if it says nothing of a timeout."""
        if self.step.timeout is None:
            return None
        return self.now + timeout_of(self.step.timeout, self.scope().text)

    def waits(self, handle: Mapping[str, Any], *, until: datetime | None = None, **facts: Any) -> Report:
        held = {**handle, "attempt": self.state.attempt}
        return self.report(Waits(self.step.id, self.state.fence, until), handle=held, **facts)

    def ended(self, outcome: Outcome, *, params: Mapping[str, Any] | None = None, **facts: Any) -> Report:
        """The end of the attempt; the conditions of what follows are looked at here, and what it announces."""
        taken: tuple[str, ...] = ()
        signals: tuple[Announcement, ...] = ()
        complete = isinstance(outcome, Succeeded) or (
            isinstance(outcome, Failed) and self.step.failure_mode is FailureMode.IGNORE_FAILURE
        )
        try:
            if complete and not (isinstance(outcome, Succeeded) and not outcome.goes_on):
                taken = self._taken()
            if isinstance(outcome, Succeeded) and (self.step.signal_outputs or self.told):
                signals = announced(self.claim, self.scope(), self.told)
        except DalsegnoError as error:
            outcome, taken = Failed(FailureKind.FATAL, error.message, error.hint), ()
        happening = StepEnded(self.step.id, self.state.fence, outcome, taken, self.retries)
        return self.report(happening, params=params, announced=signals, **facts)

    def _taken(self) -> tuple[str, ...]:
        return tuple(
            step_id
            for step_id, condition in self.step.successors.items()
            if condition is None or self.scope().is_true(condition)
        )

    # Jobs.

    def _job(self, step: JobStep) -> Report:
        match step.type.lower():
            case "noop":
                found = self.scope().evaluate()
                return self.ended(Succeeded(), params=to_stored(found.params))
            case "sleep":
                return self._sleep()
        if self.state.ending is not None:
            return self._end_job(step)
        runner = self.worker.jobs.runner(step.type)
        found = self.scope(raw=runner.raw).evaluate()
        self.retries = self._retries(step)
        known = self.memory
        processed = processed_by(
            self.worker.store, self.worker.blueprint, self.run.row, self.run.blueprint, self.flow.id, step.id
        )
        outcome = self.worker.jobs.follow(
            runner, self.claim, known.handle, known.deadline, found, self.scope(), processed, self.signals, self.note
        )
        if isinstance(outcome, Left):
            lost = self.report(LeaseLost(step.id, self.state.fence))
            return replace(lost, is_bound=outcome.is_bound)
        if isinstance(outcome, Stopped):
            return self.ended(outcome, params=to_stored(found.params))
        outputs = {name: value for name, value in outcome.outputs.items() if name != SIGNALS}
        self.told = signals_in(outcome.outputs.get(SIGNALS))
        after = apply_outputs(
            found.params, outputs, self.scope().context, definitions=step.params, secrets=found.secrets
        )
        self.scope(raw=runner.raw, known=after)
        return self.ended(outcome, params=to_stored(after), outputs=outputs)

    def _retries(self, step: JobStep) -> Retries:
        """How often to try again; a policy that has no value must not keep a step from being run."""
        try:
            return retry_policy_of(step.retry_policy, self.scope().text)
        except ParamError as error:
            log.warning("step %s: retry_policy has no value, so the default counts: %s", step.id, error)
            return Retries()

    def _end_job(self, step: JobStep) -> Report:
        """The step is to be ended, and whoever had it is gone: end what it left behind."""
        runner = self.worker.jobs.runner(step.type)
        # Without a handle, too: it may have died after it began the job, and before that was stored.
        if self.state.fence > 1:
            found: Evaluated | None = None
            # Where a job runs elsewhere they say how to end it; what has no value must not keep one from being ended.
            with suppress(DalsegnoError):
                found = self.scope(raw=runner.raw).evaluate()
            self.worker.jobs.cancel(runner, self.claim, self.memory.handle, found)
        return self.ended(Stopped())

    def _sleep(self) -> Report:
        if self.memory.handle is not None:
            return self.ended(Succeeded())
        found = self.scope().evaluate()
        seconds = found.params["sleep_seconds"].value if "sleep_seconds" in found.params else 3
        until = self.now + timedelta(seconds=float(str(seconds)))
        stored = to_stored(found.params)
        return self.waits({"until": until.isoformat()}, until=until, params=stored, deadline=self.deadline())

    # Loops.

    def _foreach(self, step: ForeachStep) -> Report:
        loop = self.state.loop
        if loop is not None and loop.next >= (loop.total or 0) and not loop.again and not loop.open:
            return self._finish_loop(loop.worst)
        if loop is not None and loop.worst is not None:
            return self._finish_loop(loop.worst)
        found = self.scope().evaluate()
        total = iteration_count(found.params[LOOP_PARAMS])
        concurrency = step.concurrency or DEFAULT_CONCURRENCY
        stored = to_stored(found.params)
        if total == 0:
            return self.ended(Succeeded(), params=stored)
        began = LoopBegan(step.id, self.state.fence, total, concurrency)
        return self.report(began, params=stored, deadline=self.deadline())

    def _finish_loop(self, worst: RunStatus | None) -> Report:
        match worst:
            case None:
                return self.ended(Succeeded())
            case RunStatus.STOPPED:
                return self.ended(Stopped("an iteration was stopped"))
            case _:
                message = f"An iteration ended as {worst}."
                kind = FailureKind.TIMEOUT if worst is RunStatus.TIMED_OUT else FailureKind.FATAL
                return self.ended(Failed(kind, message))

    def _while(self, step: WhileStep) -> Report:
        loop = self.state.loop
        if loop is not None and loop.worst is not None:
            return self._finish_loop(loop.worst)
        if loop is not None and loop.again:
            return self.report(LoopGoesOn(step.id, self.state.fence))
        if loop is None:
            found = self.scope().evaluate()
            params, stored = first_loop_params(found.params[LOOP_PARAMS]), to_stored(found.params)
        else:
            params, stored = self._next_loop_params(f"{self.flow.id}/{step.id}/{loop.next - 1}"), None
        if not self.scope(known=params).is_true(step.condition):
            return self.ended(Succeeded(), params=stored)
        if loop is not None and loop.next >= MOST_ITERATIONS:
            return self.ended(
                Failed(FailureKind.FATAL, f"It has gone round {MOST_ITERATIONS:,} times, the most it may.")
            )
        facts = {"params": stored, "iteration_params": to_stored(params)}
        if loop is None:
            return self.report(LoopBegan(step.id, self.state.fence, None, 1), deadline=self.deadline(), **facts)
        return self.report(LoopGoesOn(step.id, self.state.fence), **facts)

    def _next_loop_params(self, iteration: str) -> dict[str, Param]:
        with self.worker.store.database.reading() as connection:
            row = flows.flow_row(connection, iteration)
            inner = [from_stored(each["params"] or {}) for each in flows.steps_of_flow(connection, iteration)]
        return next_loop_params(from_stored((row and row["params"]) or {}), inner)

    # Subworkflows.

    def _subworkflow(self, step: SubworkflowStep) -> Report:
        if self.memory.handle is not None:
            return self._finish_subworkflow(self.memory.handle["child"], self.memory.handle.get("run", 1))
        found = self.scope().evaluate()
        workflow_id = str(found.params["subworkflow_id"].value)
        version = str(found.params["subworkflow_version"].value) if "subworkflow_version" in found.params else "active"
        blueprint = self.worker.blueprint(workflow_id, version)
        given = found.params if step.has_explicit_params else {**self._all_params(), **found.params}
        known = {**(self.run.definitions or {}), **self.scope().definitions}
        handed = {
            name: given_param(definition, given[name], ParamSource.SUBWORKFLOW)
            for name, definition in handed_down(given, known).items()
            if name not in ("subworkflow_id", "subworkflow_version")
        }
        child = self._child_again(blueprint, handed) or self._new_child(step, blueprint, handed)
        stored = to_stored(found.params)
        handle = {"child": child["id"], "number": child["number"], "workflow": workflow_id, "run": child["attempt"]}
        if step.is_sync:
            return self.waits(handle, params=stored, child=child, deadline=self.deadline())
        held = {**handle, "attempt": self.state.attempt}
        return self.ended(Succeeded(), params=stored, handle=held, child=child)

    def _child_again(self, blueprint: Blueprint, handed: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The run that an earlier attempt began and that did not succeed, if what did not complete is run again."""
        restart = self.run.row["initiator"].get("restart") or {}
        if restart.get("from") != RestartFrom.INCOMPLETE.value:
            return None
        with self.worker.store.database.reading() as connection:
            row = runs.last_child(connection, self.flow.id, self.step.id)
        if row is None or row["workflow_id"] != blueprint.workflow.id or row["status"] == RunStatus.SUCCEEDED.value:
            return None
        if not RunStatus(row["status"]).is_final:
            # Somebody has restarted it already.
            return row
        other = {name: given for name, given in handed.items() if row["run_params"].get(name) != given}
        same_version = self.worker.blueprint(row["workflow_id"], str(row["version"]))
        changed = restarted_with(self.worker.scopes, same_version, row, other, self.now)
        return {**changed, "attempt": row["attempt"] + 1}

    def _new_child(self, step: SubworkflowStep, blueprint: Blueprint, handed: Mapping[str, Any]) -> Mapping[str, Any]:
        with self.worker.store.database.writing() as connection:
            number = workflows.next_run_number(connection, blueprint.workflow.id)
        row = new_run(
            blueprint,
            run_id=child_run_id(self.flow.id, step.id, self.state.attempt),
            number=number,
            run_params=handed,
            initiator={"type": "SUBWORKFLOW", "by": self.run.row["initiator"].get("by", ""), "of": self.run.id},
            now=self.now,
            parent={
                "parent_run": self.run.id if step.is_sync else None,
                "parent_flow": self.flow.id if step.is_sync else None,
                "parent_step": step.id if step.is_sync else None,
                "root_run": self.run.row["root_run"],
            },
        )
        return evaluated(self.worker.scopes, blueprint, row, self.now)

    def _all_params(self) -> dict[str, Param]:
        scope = self.worker.scopes.around(self.run, self.flow, self.now)
        found: dict[str, Param] = {}
        levels = [scope]
        while levels[-1].outer is not None:
            levels.append(levels[-1].outer)
        for level in reversed(levels):
            found |= level.known
            # The values of secrets are not kept: they are not yet known here.
            found |= {name: level.own(name) for name, each in level.definitions.items() if each.secret is not None}
        return found

    def _finish_subworkflow(self, child_id: str, attempt: int) -> Report:
        with self.worker.store.database.reading() as connection:
            row = runs.run_row(connection, child_id)
        if row is None:
            return self.ended(Failed(FailureKind.FATAL, f"The run {child_id} of the subworkflow is gone."))
        name = f"{row['workflow_id']}/{row['number']}"
        match RunStatus(row["status"]) if row["attempt"] >= attempt else None:
            case RunStatus.SUCCEEDED:
                return self.ended(Succeeded())
            case RunStatus.STOPPED:
                return self.ended(Stopped(f"The subworkflow {name} was stopped."))
            case RunStatus.TIMED_OUT:
                return self.ended(Failed(FailureKind.TIMEOUT, f"The subworkflow {name} took too long."))
            case RunStatus.FAILED:
                because = f": {row['reason']}" if row["reason"] else "."
                return self.ended(Failed(FailureKind.FATAL, f"The subworkflow {name} failed{because}"))
            case _:
                # Woken too early, or it has not begun again yet: wait on.
                return self.waits(self.memory.handle or {})
