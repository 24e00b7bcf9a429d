"""Spark steps that are processes: a PySpark script in the attempt's session, or a driver of its own.

A script needs no change: ``SPARK_REMOTE`` makes ``SparkSession.builder.getOrCreate()`` the session that dalsegno
opened, with its catalogs and its stamp. Ending a process does not end what it asked Spark to do: so however it ended,
the session is cleared as well.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.model.full_refresh import replaces
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.plan.full_refresh import refuse_untrusted
from dalsegno.spark.failures import explained
from dalsegno.spark.properties import as_properties
from dalsegno.spark.server import jdbc_drivers, taken_packages
from dalsegno.spark.session import defaults, iceberg_conf, runtime, spark_environment
from dalsegno.spark.submit import SQL_DRIVER, spark_home, submit_command
from dalsegno.steps import supervision
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.capture_file import captures_conf
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.fields import SourceFile
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.python import import_path, script_words
from dalsegno.steps.spark import sessions
from dalsegno.steps.spark.params import BLOCK, Jar, Script, SparkStep, Sql, Submission, spark_step
from dalsegno.steps.spark.work import SqlWork
from dalsegno.steps.stamps import stamp, statement_stamp
from dalsegno.steps.supervision import Ended, Job

_PROPERTIES, _STATEMENTS = "spark.properties", "statements.json"
_DEPLOY_MODE = "spark.submit.deployMode"
#: What ``spark-submit`` says of an application that YARN or Kubernetes has seen to its end.
_ENDED = re.compile(r"finished with failed status|Application \S+ is killed|Container final statuses")
#: Whoever manages the cluster must not execute statements a second time, and must say how they ended.
_ONCE = {
    "spark.yarn.maxAppAttempts": "1",
    "spark.driver.supervise": "false",
    "spark.yarn.submit.waitAppCompletion": "true",
    "spark.kubernetes.submission.waitAppCompletion": "true",
    "spark.standalone.submit.waitAppCompletion": "true",
}


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
            except DalsegnoError as error:
                kind = FailureKind.PLATFORM if isinstance(error, PlatformError) else FailureKind.FATAL
                return Finished(Failed(kind, error.message, error.hint))
        return super().start(work)

    def job(self, work: Work) -> Job:
        step = spark_step(work)
        if step.submission:
            return _submitted(work, step, step.submission)
        assert isinstance(step.job, Script)  # noqa: S101 - SQL is executed by a thread
        return _connected(work, step, step.job)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        state = super().poll(work, patience)
        if isinstance(state, Running):
            sessions.keep_warm(work)
        return state

    def cancel(self, work: Work) -> None:
        # The process first: it could ask Spark for more.
        super().cancel(work)
        sessions.cleared(work)

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        outcome = super().outcome(work, ended)
        _note_end(work, ended, outcome)
        try:
            sessions.cleared(work)
        except PlatformError:
            # A script that succeeded has nothing left to do in Spark.
            if not isinstance(outcome, Succeeded):
                raise
        return outcome


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


def tracked_sql(work: Work, step: SparkStep) -> SqlWork | None:
    """The record of the work of submitted SQL, if there are captures behind which it is done."""
    log = work.log_of_work
    if log is None or step.submission is None or not isinstance(step.job, Sql):
        return None
    written = [log.block(BLOCK), *([step.job.file_text] if step.job.file_text is not None else [])]
    conf = {**sessions.overwrite_mode(work.settings), **work.settings.spark_conf, **step.conf}
    names = (conf.get("spark.sql.defaultCatalog", "spark_catalog"), ("default",))
    say = AttemptLog(work.log, (*work.secrets, *step.secrets), limit=work.log_limit).note
    return SqlWork(
        work,
        log,
        log.template(*written),
        step.job.statements,
        is_idempotent=step.is_idempotent,
        say=say,
        names=names,
        is_static=conf[sessions.OVERWRITE_MODE].lower() != "dynamic",
        conf=step.conf,
    )


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
    elif ended.reason == "exited" and _has_driver_ended(work, tracked):
        tracked.note_driver_ended()


def _is_tracked(work: Work) -> bool:
    """Whether it may be submitted SQL behind captures. No other job's end may depend on a file, or on the store."""
    block = work.params.get(BLOCK)
    # As ``Fields.flag`` reads it.
    if work.log_of_work is None or not isinstance(block, Mapping) or str(block.get("submit")).lower() != "true":
        return False
    names = [str(block.get(name) or "").strip().lower() for name in ("file", "script")]
    return not block.get("jar") and not any(name.endswith(".py") for name in names)


def _has_driver_ended(work: Work, tracked: SqlWork) -> bool:
    """Whether the end of ``spark-submit`` is that of the driver: of one in a cluster, it must have said so."""
    if not tracked.is_in_cluster():
        return True
    with suppress(OSError):
        return _ENDED.search(work.log.read_text(encoding="utf-8", errors="replace")) is not None
    return False


def _submitted(work: Work, step: SparkStep, submission: Submission) -> Job:
    own_conf = sessions.catalog_conf(work.settings) | dict(work.settings.spark_conf) | dict(step.conf)
    tracked = tracked_sql(work, step)
    if tracked is not None:
        own_conf |= _ONCE
        deploy_mode = submission.deploy_mode or own_conf.get(_DEPLOY_MODE, "client")
        tracked.resume(None)
        tracked.begin_all({"submitted": work.key, "deploy_mode": deploy_mode.lower()})
    java, jars = runtime([*jdbc_drivers(own_conf), *taken_packages(own_conf)])
    master = submission.master or own_conf.get("spark.master", "local[*]")
    variables = {**step.variables, **spark_environment(java), "SPARK_HOME": str(spark_home())}
    if master.startswith("local"):
        conf = defaults(jars, os.cpu_count() or 2) | {"spark.driver.memory": work.settings.spark_memory}
    else:
        conf = iceberg_conf(jars)
        # Executors on other machines must be able to reach the driver.
        del variables["SPARK_LOCAL_IP"]
    mode = sessions.overwrite_mode(work.settings)
    ours = {"spark.app.name": work.key, **stamp(work), **captures_conf(work), **mode}
    conf |= ours | own_conf | {"spark.master": master}
    files = {_PROPERTIES: as_properties(conf)}
    match step.job:
        case Sql(statements):
            texts = tracked.texts if tracked else statements
            files[_STATEMENTS] = json.dumps([_told(work, n, each, tracked) for n, each in enumerate(texts, 1)])
            file, args = str(SQL_DRIVER), [_STATEMENTS]
        case Script(source):
            file, args = str(source.runnable(work.folder)), list(step.args)
            files |= source.copies
            if source.content is not None:
                # What is beside the file is imported from there.
                variables["PYTHONPATH"] = _with_folder(source, variables.get("PYTHONPATH"))
        case Jar(address):
            file, args = address, list(step.args)
    command = submit_command(
        work.folder / _PROPERTIES,
        file,
        args,
        main_class=submission.main_class,
        deploy_mode=submission.deploy_mode,
        packages=submission.packages,
        files=[str(work.folder / name) for name in files if name == _STATEMENTS],
    )
    return command_job(work, BLOCK, command, files=files, variables=variables, secrets=step.secrets)


def _with_folder(source: SourceFile, path: str | None) -> str:
    return os.pathsep.join(filter(None, [str(source.path.parent), path]))


def _told(work: Work, number: int, statement: str, tracked: SqlWork | None) -> dict[str, Any]:
    """A statement as its driver needs it: stamped, and not executed if it is done."""
    told: dict[str, Any] = {"sql": statement, "conf": statement_stamp(number, statement)}
    if tracked is not None:
        told["conf"] |= stamp(work, tracked.unit.id)
        told["is_done"] = tracked.is_done(number)
    return told
