"""Spark steps that are processes: a PySpark script in the attempt's session, or a driver of its own.

A script needs no change: ``SPARK_REMOTE`` makes ``SparkSession.builder.getOrCreate()`` the session that dalsegno
opened, with its catalogs and its stamp. Ending a process does not end what it asked Spark to do: so however it ended,
the session is cleared as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.model.full_refresh import replaces
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.plan.full_refresh import refuse_untrusted
from dalsegno.spark.failures import explained
from dalsegno.spark.submission_failures import refusal
from dalsegno.spark.yarn import Application
from dalsegno.steps import supervision
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.python import import_path, script_words
from dalsegno.steps.spark import applications, sessions
from dalsegno.steps.spark.applications import ClusterApplication
from dalsegno.steps.spark.params import BLOCK, Script, SparkStep, Sql, spark_step
from dalsegno.steps.spark.submissions import SUBMITTED_TO, application_of, submitted_job, tracked_sql
from dalsegno.steps.spark.work import SqlWork
from dalsegno.steps.supervision import Ended, Job

#: What ``spark-submit`` says of an application that a cluster has seen to its end.
_ENDED = re.compile(r"finished with failed status|Application \S+ is killed|Container final statuses")

#: How much of the reason of an application's end is part of a message.
_REASON_CHARACTERS = 1000


class SparkProcessRunner(ProcessRunner):
    name: ClassVar[str] = "Spark"

    def start(self, work: Work) -> Started | Finished:
        """Nothing is submitted if all of it was done before, behind the same captures."""
        if not supervision.is_claimed(work):
            try:
                step = spark_step(work)
                tracked = tracked_sql(work, step)
                if work.log_of_work is not None and not isinstance(step.job, Sql):
                    if replaces(work.captures):
                        refuse_untrusted(work.workflow_id, work.step_id, self.name, work.full_refresh)
                    work.log_of_work.note_job(self.name)
                if tracked is not None and (outputs := tracked.outputs_if_done()) is not None:
                    return Finished(Succeeded(outputs))
                if (application := _submitted_elsewhere(work, step)) is not None:
                    return Started({applications.HANDLE: application.as_json})
            except DalsegnoError as error:
                kind = FailureKind.PLATFORM if isinstance(error, PlatformError) else FailureKind.FATAL
                return Finished(Failed(kind, error.message, error.hint))
        started = super().start(work)
        if isinstance(started, Started) and (noted := applications.noted(work)) is not None:
            return Started({**started.handle, applications.HANDLE: noted.as_json})
        return started

    def job(self, work: Work) -> Job:
        step = spark_step(work)
        if step.submission:
            return submitted_job(work, step, step.submission)
        assert isinstance(step.job, Script)  # noqa: S101 - SQL is executed by a thread
        return _connected(work, step, step.job)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        match supervision.poll(work, patience):
            case Running() as running:
                sessions.keep_warm(work)
                return running
            case Ended() as ended:
                application = applications.noted(work)
                if application is None or ended.reason == "not_started" or _has_succeeded(ended):
                    return Finished(self.outcome(work, ended))
                return self._followed(work, application, ended, patience)

    def _followed(
        self, work: Work, application: ClusterApplication, ended: Ended, patience: float
    ) -> Running | Finished:
        """The end of ``spark-submit`` is not that of its application, which the cluster goes on to run."""
        if ended.reason in ("cancelled", "timed_out"):
            try:
                applications.end(work, application)
            except PlatformError as error:
                # As long as it may be at work, the step has not ended.
                raise OSError(str(error)) from error
            return Finished(self.outcome(work, ended))
        match applications.look(work, application, patience):
            case Running() as running:
                return running
            case None:
                outcome = self.outcome(work, ended)
                return Finished(_refused(work) or outcome)
            case found if found.has_succeeded:
                return Finished(self.outcome(work, replace(ended, reason="exited", code=0, signal=None)))
            case found:
                self.outcome(work, ended)
                # YARN lists what it refused as failed.
                return Finished(_refused(work) or _application_failure(work, application, found))

    def cancel(self, work: Work) -> None:
        # The process first: it could ask Spark for more.
        super().cancel(work)
        if (application := applications.noted(work)) is not None:
            applications.end(work, application)
        sessions.cleared(work)

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        outcome = super().outcome(work, ended)
        if isinstance(outcome, Failed) and applications.noted(work) is None:
            outcome = _refused(work) or outcome
        _note_end(work, ended, outcome)
        try:
            sessions.cleared(work)
        except PlatformError:
            # A script that succeeded has nothing left to do in Spark.
            if not isinstance(outcome, Succeeded):
                raise
        return outcome


def _has_succeeded(ended: Ended) -> bool:
    return ended.reason == "exited" and ended.code == 0


def _submitted_elsewhere(work: Work, step: SparkStep) -> ClusterApplication | None:
    """The attempt's application, if another machine submitted it and died before that was stored."""
    if step.submission is None or work.settings.store.startswith("sqlite:"):
        return None
    application = application_of(work, step, step.submission)
    return application if application is not None and application.find() is not None else None


def _refused(work: Work) -> Failed | None:
    """Why a cluster did not take what was submitted, if that is known."""
    if not (work.folder / SUBMITTED_TO).exists():
        return None
    with suppress(OSError):
        if (found := refusal(work.log.read_text(encoding="utf-8", errors="replace"))) is not None:
            return Failed(FailureKind.FATAL, found.message, found.hint)
    return None


def _application_failure(work: Work, application: ClusterApplication, found: Application) -> Failed:
    """How an application ended in its cluster. What its driver printed stays there."""
    message = f"{found.id} ended on YARN as {found.final_state}"
    if found.state == "KILLED":
        return Failed(FailureKind.PLATFORM, f"{message}: somebody killed it there.")
    secrets = list(work.secrets)
    with suppress(UserError):
        secrets += spark_step(work).secrets
    log = AttemptLog(work.log, secrets, limit=work.log_limit)
    hint = f"See what the driver printed: yarn logs -applicationId {found.id}"
    with suppress(PlatformError):
        if reason := log.masked(application.client.diagnostics(found)):
            # Where its client died, nobody has printed this.
            log.note(f"{message}: {reason}")
            message = f"{message}: {reason.partition(chr(10))[0][:_REASON_CHARACTERS]}"
    return Failed(FailureKind.USER, message, hint=hint)


def _connected(work: Work, step: SparkStep, script: Script) -> Job:
    """A script in the attempt's session. If the server has to be started first, that is waited for."""
    try:
        session = sessions.opened(work, step.conf)
    except DalsegnoError:
        raise
    except Exception as error:
        failure = explained(error)
        kind = PlatformError if failure.kind is FailureKind.PLATFORM else UserError
        raise kind(failure.message, hint=failure.hint) from error
    session.disconnect()
    source = script.source
    variables = {**import_path(str(source.path.parent)), **step.variables, "SPARK_REMOTE": session.address}
    command = [sys.executable, *script_words(source, work), *step.args]
    return command_job(work, BLOCK, command, files=source.copies, variables=variables, secrets=session.secrets)


def _note_end(work: Work, ended: Ended, outcome: Outcome) -> None:
    """Record that the driver of submitted SQL has ended, and how; what was not heard stays in doubt."""
    if not _is_tracked(work):
        return
    try:
        tracked = tracked_sql(work, spark_step(work))
    except UserError:
        return
    if tracked is None:
        return
    if isinstance(outcome, Succeeded):
        tracked.end_all(outcome.outputs)
    elif _has_driver_ended(work, ended, tracked):
        tracked.note_driver_ended()


def _is_tracked(work: Work) -> bool:
    """Whether it may be submitted SQL behind captures. No other job's end may depend on a file, or on the store."""
    block = work.params.get(BLOCK)
    # As ``Fields.flag`` reads it.
    if work.log_of_work is None or not isinstance(block, Mapping) or str(block.get("submit")).lower() != "true":
        return False
    names = [str(block.get(name) or "").strip().lower() for name in ("file", "script")]
    return not block.get("jar") and not any(name.endswith(".py") for name in names)


def _has_driver_ended(work: Work, ended: Ended, tracked: SqlWork) -> bool:
    """Whether the end of ``spark-submit`` is that of the driver: of one in a cluster, somebody must have said so."""
    if applications.noted(work) is not None:
        # It was looked for, and is not at work.
        return ended.reason != "not_started"
    if ended.reason != "exited":
        return False
    if not tracked.is_in_cluster():
        return True
    with suppress(OSError):
        return _ENDED.search(work.log.read_text(encoding="utf-8", errors="replace")) is not None
    return False
