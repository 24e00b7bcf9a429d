"""Jobs: what a runner is given, and how it is followed to its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

from dalsegno.engine.attempt_folders import attempt_folder, key_of, make_attempt_folder
from dalsegno.engine.captures import NOTHING, Consumed
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.machine import machine_name
from dalsegno.engine.records import Claim
from dalsegno.engine.starting import full_refresh_of
from dalsegno.engine.work_log import WorkLog
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped
from dalsegno.model.stored_text import readable
from dalsegno.plan.traces import traceparent
from dalsegno.settings import Settings
from dalsegno.spec.params.context import Evaluated
from dalsegno.spec.params.durations import timeout_of
from dalsegno.spec.params.evaluation import Scope
from dalsegno.steps import supervision
from dalsegno.steps.contract import AnyRunner, Executing, FilledText, Finished, Progress, Runner, Running, Started, Work

log = logging.getLogger(__name__)

#: How long one look at a job lasts, at first and at most: short jobs should not wait for the engine to notice.
_FIRST_LOOK, _LONGEST_LOOK = 0.01, 0.25
#: How often the progress of a job is stored at most.
_PROGRESS_SECONDS = 1.0
#: How long to wait where the machine itself fails.
_PAUSE_SECONDS = 0.5

#: As ``Work.pushed_file``.
PushedFile = Callable[[str, str], str | None]
Note = Callable[[Claim, Mapping[str, Any]], bool]


@dataclass(frozen=True)
class StopFlags:
    """What whoever follows a job must heed."""

    #: The step is to be ended.
    end: Event = field(default_factory=Event)
    #: Whether the process leaves, or was taken for dead: the step is the next one's.
    is_to_leave: Callable[[], bool] = field(default=lambda: False)
    #: Where the process shows that it is alive to those who look after jobs, if they need it.
    sign_file: Path | None = None


@dataclass(frozen=True)
class Left:
    """The job was left to the next process, before it began or in the middle."""

    #: Whether it goes on, and only this machine can find it again.
    is_bound: bool = False


@dataclass(frozen=True)
class Jobs:
    """The runners there are, and where their jobs keep their files."""

    settings: Settings
    runner: Callable[[str], AnyRunner]
    clock: Callable[[], datetime]
    folder: JobsFolder

    def work(
        self,
        claim: Claim,
        handle: Mapping[str, Any] | None,
        found: Evaluated | None = None,
        consumed: Consumed = NOTHING,
        log_of_work: WorkLog | None = None,
    ) -> Work:
        folder = attempt_folder(self.settings, claim.run.row, claim.flow.id, claim.step.id, claim.state.attempt)
        key = key_of(claim.flow.id, claim.step.id, claim.state.attempt)
        make_attempt_folder(folder, key)
        return Work(
            workflow_id=claim.run.workflow_id,
            run_number=claim.run.row["number"],
            step_id=claim.step.id,
            attempt=claim.state.attempt,
            key=key,
            params={name: param.value for name, param in found.params.items()} if found else {},
            folder=folder,
            settings=self.settings,
            machine=machine_name(self.settings.machine),
            references=found.references if found else {},
            secrets=found.secrets if found else (),
            handle=(handle or {}).get("handle"),
            place=consumed.place,
            captures=consumed.captures,
            unit=log_of_work.unit_id() if log_of_work else "",
            log_of_work=log_of_work,
            full_refresh=full_refresh_of(claim.run.row),
            traceparent=traceparent(claim.run.id, claim.flow.id, claim.step.id, claim.state.attempt),
        )

    @staticmethod
    def with_texts(work: Work, scope: Scope, pushed_file: PushedFile) -> Work:
        """The work with what fills in texts, and with its files."""
        return replace(
            work,
            filled=lambda text: FilledText(scope.text(text), tuple(scope.secrets())),
            pushed_file=pushed_file,
        )

    def follow(
        self,
        runner: Runner,
        claim: Claim,
        handle: Mapping[str, Any] | None,
        deadline: datetime | None,
        found: Evaluated,
        scope: Scope,
        pushed_file: PushedFile,
        consumed: Consumed,
        log_of_work: WorkLog | None,
        stop_flags: StopFlags,
        note: Note,
    ) -> Outcome | Left:
        """Start a job, or take up the one that an earlier claim of the attempt started, and stay with it to its end."""
        began = self.clock()
        deadline = deadline or began + timeout_of(claim.step.timeout, scope.text)
        # By a clock that nobody sets: a job is not to blame if the other one jumps.
        ends_at = time.monotonic() + (deadline - began).total_seconds()
        work = replace(self.work(claim, handle, found, consumed, log_of_work), deadline=deadline)
        work = self.with_texts(work, scope, pushed_file)
        if stop_flags.sign_file is not None:
            supervision.entrust(work.folder, claim.state.fence, stop_flags.sign_file)
        if work.handle is None:
            if stop_flags.is_to_leave():
                return Left(is_bound=supervision.is_claimed(work))
            started = self._started(runner, work, stop_flags)
            if isinstance(started, Left):
                return started
            if isinstance(started, Finished):
                return started.outcome
            work = replace(work, handle=started.handle)
            held = {"handle": dict(started.handle), "attempt": claim.state.attempt}
            if not note(claim, {"handle": held, "deadline": deadline}):
                # Another process has the step, or may have it soon.
                return self._left(runner, work)
        return self._watch(runner, work, claim, ends_at, stop_flags, note)

    @staticmethod
    def _started(runner: Runner, work: Work, stop_flags: StopFlags) -> Started | Finished | Left:
        """The job; one that runs is not given up because this machine cannot read its files just now."""
        while True:
            try:
                return runner.start(work)
            except OSError as error:
                if not supervision.is_claimed(work):
                    raise
                log.warning("the job was started, but cannot be found, trying again: %s", error)
            if stop_flags.is_to_leave():
                return Left(is_bound=True)
            time.sleep(_PAUSE_SECONDS)

    def _watch(
        self, runner: Runner, work: Work, claim: Claim, ends_at: float, stop_flags: StopFlags, note: Note
    ) -> Outcome | Left:
        look, told, told_at, failed = _FIRST_LOOK, None, time.monotonic(), ""
        while True:
            try:
                seen = runner.poll(work, look)
                failed = ""
            except OSError as error:
                # Nobody knows how far the job is; to fail would be to start it twice.
                if str(error) != failed:
                    failed = str(error)
                    log.warning("the state of the job is unknown, looking again: %s", error)
                time.sleep(_PAUSE_SECONDS)
                seen = Running()
            if isinstance(seen, Finished):
                return seen.outcome
            now = time.monotonic()
            if stop_flags.end.is_set():
                self._cancelled(runner, work, stop_flags)
                return Stopped("ended on request")
            if stop_flags.is_to_leave():
                return self._left(runner, work)
            if now >= ends_at:
                self._cancelled(runner, work, stop_flags)
                return Failed(FailureKind.TIMEOUT, "It took longer than its timeout allows.")
            if seen.progress not in (None, told) and now - told_at >= _PROGRESS_SECONDS:
                told, told_at = seen.progress, now
                note(claim, {"progress": _plain(seen.progress)})
            look = min(look * 2, _LONGEST_LOOK)

    @staticmethod
    def _cancelled(runner: Runner, work: Work, stop_flags: StopFlags) -> None:
        while True:
            try:
                return runner.cancel(work)
            except OSError as error:
                if stop_flags.is_to_leave():
                    raise
                log.warning("the job cannot be ended, trying again: %s", error)
                time.sleep(_PAUSE_SECONDS)

    @staticmethod
    def _left(runner: Runner, work: Work) -> Left:
        if isinstance(runner, Executing):
            runner.let_go(work)
        return Left(is_bound=supervision.is_claimed(work))

    def cancel(self, runner: Runner, claim: Claim, handle: Mapping[str, Any] | None, found: Evaluated | None) -> None:
        runner.cancel(self.work(claim, handle, found))


def _plain(progress: Progress | None) -> dict[str, Any] | None:
    # Jobs and servers say it in their own words.
    return {**asdict(progress), "message": readable(progress.message)} if progress else None
