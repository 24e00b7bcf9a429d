"""The execution of a step that is a job: start it or find it again, stay with it to its end, take its outputs."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from dalsegno.engine.captures import NOTHING, Consumed, consumed_by, hold, is_held
from dalsegno.engine.jobs import Left
from dalsegno.engine.pushed_files import pushed_files
from dalsegno.engine.records import Report
from dalsegno.engine.starting import full_refresh_of
from dalsegno.engine.step_execution import StepExecution
from dalsegno.engine.work_log import WorkLog
from dalsegno.errors import DalsegnoError, ParamError
from dalsegno.model.captures import Capture
from dalsegno.model.full_refresh import replaces
from dalsegno.model.outcomes import Outcome, Stopped, Succeeded
from dalsegno.model.retries import Retries
from dalsegno.model.runs import LeaseLost
from dalsegno.model.workflow import JobStep
from dalsegno.plan.full_refresh import refuse_untrusted
from dalsegno.spec.params.context import Evaluated
from dalsegno.spec.params.durations import retry_policy_of
from dalsegno.spec.params.outputs import apply_outputs
from dalsegno.spec.params.stored import to_stored
from dalsegno.spec.step_types import records_work
from dalsegno.steps.contract import Capturing, Runner, WithoutJob
from dalsegno.steps.outputs import SIGNALS, signals_in

log = logging.getLogger(__name__)


class JobExecution(StepExecution):
    step: JobStep

    def execute(self) -> Report:
        runner = self.context.jobs.runner(self.step.type)
        if isinstance(runner, WithoutJob):
            return self._execute_nothing(runner)
        if self.state.ending is not None:
            return self._end_job(runner)
        found = self.scope(raw=runner.raw).evaluate()
        self.retries = self._retries()
        captured = self._captured(runner, found) if isinstance(runner, Capturing) else None
        if captured is None or isinstance(captured, Capture):
            outcome = self._followed(runner, found, captured)
        else:
            outcome = captured
        if isinstance(outcome, Left):
            lost = self.report(LeaseLost(self.step.id, self.state.fence))
            return replace(lost, is_bound=outcome.is_bound)
        if isinstance(outcome, Stopped):
            return self.ended(outcome, params=to_stored(found.params))
        outputs = {name: value for name, value in outcome.outputs.items() if name != SIGNALS}
        self.emitted_signals = signals_in(outcome.outputs.get(SIGNALS))
        after = apply_outputs(
            found.params, outputs, self.scope().context, definitions=self.step.params, secrets=found.secrets
        )
        self.scope(raw=runner.raw, known=after)
        return self.ended(outcome, params=to_stored(after), outputs=outputs)

    def _followed(self, runner: Runner, found: Evaluated, own: Capture | None) -> Outcome | Left:
        """How the job ended, or that another process has it now."""
        known = self.memory
        consumed = self._consumed(own)
        log_of_work = self._log_of_work(consumed)
        if log_of_work is not None and known.handle is None and not records_work(self.step.type):
            if replaces(consumed.captures):
                refuse_untrusted(self.run.workflow_id, self.step.id, self.step.type, full_refresh_of(self.run.row))
            log_of_work.note_job(self.step.type)
        return self.context.jobs.follow(
            runner,
            self.claim,
            known.handle,
            known.deadline,
            found,
            self.scope(),
            pushed_files(self.context.scopes, self.run, self.flow, self.step, self.now),
            consumed,
            log_of_work,
            self.stop_flags,
            self.note,
        )

    def _captured(self, runner: Capturing, found: Evaluated) -> Capture | Outcome:
        """What a step captures itself."""
        files = pushed_files(self.context.scopes, self.run, self.flow, self.step, self.now)
        work = self.context.jobs.work(self.claim, None, found)
        return runner.capture(self.context.jobs.with_texts(work, self.scope(), files))

    def _consumed(self, own: Capture | None = None) -> Consumed:
        """The captures that the job consumes; from now on they are this run's."""
        if self.step.id in self.run.blueprint.captures_and_commits:
            return NOTHING
        store = self.context.store
        versions = self.context.host.versions
        found = consumed_by(store, versions, self.run.row, self.run.blueprint, self.flow.id, self.step.id, own)
        if found.captures and not is_held(found):
            with store.database.writing() as connection:
                hold(connection, found)
        return found

    def _log_of_work(self, consumed: Consumed) -> WorkLog | None:
        if not consumed.captures:
            return None
        return WorkLog(
            self.context.store,
            consumed,
            self.flow.id,
            self.scope().definitions,
            self.context.host.versions,
            self.context.scopes.expressions,
        )

    def _retries(self) -> Retries:
        """How often to try again; a policy that has no value must not keep a step from being run."""
        try:
            return retry_policy_of(self.step.retry_policy, self.scope().text)
        except ParamError as error:
            log.warning("step %s: retry_policy has no value, so the default counts: %s", self.step.id, error)
            return Retries()

    def _end_job(self, runner: Runner) -> Report:
        """The step is to be ended, and whoever had it is gone: end what it left behind."""
        # Without a handle, too: it may have died after it began the job, and before that was stored.
        if self.state.fence > 1:
            found: Evaluated | None = None
            # Where a job runs elsewhere they say how to end it; what has no value must not keep one from being ended.
            with suppress(DalsegnoError):
                found = self.scope(raw=runner.raw).evaluate()
            self.context.jobs.cancel(runner, self.claim, self.memory.handle, found)
        return self.ended(Stopped())

    def _execute_nothing(self, runner: WithoutJob) -> Report:
        """End the step at once, or let it wait without a worker."""
        if self.memory.handle is not None:
            return self.ended(Succeeded())
        found = self.scope(raw=runner.raw).evaluate()
        seconds = runner.seconds_to_wait({name: param.value for name, param in found.params.items()})
        stored = to_stored(found.params)
        if seconds is None:
            return self.ended(Succeeded(), params=stored)
        until = self.now + timedelta(seconds=seconds)
        return self.waits({"until": until.isoformat()}, until=until, params=stored, deadline=self.deadline())
