"""Spark steps that are processes: a PySpark script in the attempt's session, or a driver of its own.

A script needs no change: ``SPARK_REMOTE`` makes ``SparkSession.builder.getOrCreate()`` the session that dalsegno
opened, with its catalogs and its stamp. Ending a process does not end what it asked Spark to do: so however it ended,
the session is cleared as well.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any, ClassVar

from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.model.outcomes import FailureKind, Outcome, Succeeded
from dalsegno.spark.failures import explained
from dalsegno.spark.properties import as_properties
from dalsegno.spark.server import jdbc_drivers
from dalsegno.spark.session import defaults, iceberg_conf, runtime, spark_environment
from dalsegno.spark.submit import SQL_DRIVER, spark_home, submit_command
from dalsegno.steps import spark_sessions
from dalsegno.steps.contract import Finished, Running, Work
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.python import import_path
from dalsegno.steps.spark_params import BLOCK, Jar, Script, SparkStep, Sql, Submission, spark_step
from dalsegno.steps.stamps import question, stamp, statement_stamp
from dalsegno.steps.supervision import Ended, Job

_PROPERTIES, _STATEMENTS = "spark.properties", "statements.json"


class SparkProcessRunner(ProcessRunner):
    name: ClassVar[str] = "Spark"

    def job(self, work: Work) -> Job:
        step = spark_step(work)
        if step.submission:
            return _submitted(work, step, step.submission)
        assert isinstance(step.job, Script)  # noqa: S101 - SQL is executed by a thread
        return _connected(work, step, step.job)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        state = super().poll(work, patience)
        if isinstance(state, Running):
            spark_sessions.keep_warm(work)
        return state

    def cancel(self, work: Work) -> None:
        # The process first: it could ask Spark for more.
        super().cancel(work)
        spark_sessions.cleared(work)

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        outcome = super().outcome(work, ended)
        try:
            spark_sessions.cleared(work)
        except PlatformError:
            # A script that succeeded has nothing left to do in Spark.
            if not isinstance(outcome, Succeeded):
                raise
        return outcome


def _connected(work: Work, step: SparkStep, script: Script) -> Job:
    """A script in the attempt's session. If the server has to be started first, that is waited for."""
    try:
        session = spark_sessions.opened(work, step.conf)
    except DalsegnoError:
        raise
    except Exception as error:
        failure = explained(error)
        kind = PlatformError if failure.kind is FailureKind.PLATFORM else UserError
        raise kind(failure.message, hint=failure.hint) from error
    session.disconnect()
    variables = {**import_path(str(script.path.parent)), **step.variables, "SPARK_REMOTE": session.address}
    command = [sys.executable, str(script.path), *step.args]
    return command_job(work, BLOCK, command, variables=variables, secrets=session.secrets)


def _submitted(work: Work, step: SparkStep, submission: Submission) -> Job:
    own_conf = spark_sessions.catalog_conf(work.settings) | dict(work.settings.spark_conf) | dict(step.conf)
    java, jars = runtime(jdbc_drivers(own_conf))
    master = submission.master or own_conf.get("spark.master", "local[*]")
    variables = {**step.variables, **spark_environment(java), "SPARK_HOME": str(spark_home())}
    if master.startswith("local"):
        conf = defaults(jars, os.cpu_count() or 2) | {"spark.driver.memory": work.settings.spark_memory}
    else:
        conf = iceberg_conf(jars)
        # Executors on other machines must be able to reach the driver.
        del variables["SPARK_LOCAL_IP"]
    conf |= {"spark.app.name": work.key, **stamp(work), **own_conf, "spark.master": master}
    files = {_PROPERTIES: as_properties(conf)}
    match step.job:
        case Sql(statements):
            files[_STATEMENTS] = json.dumps([_told(work, number, each) for number, each in enumerate(statements, 1)])
            file, args = str(SQL_DRIVER), [_STATEMENTS]
        case Script(path):
            file, args = str(path), list(step.args)
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


def _told(work: Work, number: int, statement: str) -> dict[str, Any]:
    """A statement as its driver needs it: stamped, and not executed again if it was for the same captures."""
    asked = question(work, number, statement)
    return {
        "sql": statement,
        "conf": statement_stamp(number, statement),
        "question": asdict(asked) if asked else None,
    }
