"""What is submitted: the command, configuration and files with which a driver of its own starts, wherever that is.

A driver in a cluster has none of our files and none of our environment. So SQL travels inside the driver's own file,
and the files and variables of a script travel with it.
"""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import dalsegno
from dalsegno.spark.cache import cache_folder
from dalsegno.spark.properties import as_properties
from dalsegno.spark.server import catalog_packages, taken_packages
from dalsegno.spark.session import defaults, iceberg_conf, runtime, spark_environment
from dalsegno.spark.submit import spark_home, sql_driver, submit_command
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.capture_file import CAPTURES_FILE, captures_conf
from dalsegno.steps.contract import Work
from dalsegno.steps.environment import PARAMS_FILE, job_files
from dalsegno.steps.fields import SourceFile
from dalsegno.steps.processes import command_job
from dalsegno.steps.spark import applications, sessions
from dalsegno.steps.spark.applications import ClusterApplication
from dalsegno.steps.spark.params import BLOCK, Jar, Script, SparkStep, Sql, Submission
from dalsegno.steps.spark.work import SqlWork
from dalsegno.steps.stamps import stamp, statement_stamp
from dalsegno.steps.supervision import Job

#: Left in the attempt's folder by what is submitted to a cluster.
SUBMITTED_TO = "submitted-to"
_PROPERTIES, _DRIVER = "spark.properties", "submitted_sql.py"
_TAGS = "spark.yarn.tags"
#: Kubernetes refuses a second pod of the same name, so an attempt has one driver there.
_POD = "spark.kubernetes.driver.pod.name"
#: Whoever manages the cluster must not execute statements a second time, and must say how they ended.
_ONCE = {
    "spark.yarn.maxAppAttempts": "1",
    "spark.driver.supervise": "false",
    "spark.yarn.submit.waitAppCompletion": "true",
    "spark.kubernetes.submission.waitAppCompletion": "true",
    "spark.standalone.submit.waitAppCompletion": "true",
}
#: How variables for a driver in a cluster are written, by the beginning of the master.
_DRIVER_VARIABLES = {"yarn": "spark.yarn.appMasterEnv.", "k8s:": "spark.kubernetes.driverEnv."}
#: Variables of a cloud that a driver may print.
_SECRET_VARIABLE = re.compile(r"(?:SECRET|SECRET_ACCESS_KEY|TOKEN|PASSWORD)$")
#: Variables that name something on this machine, by how they end.
_NAMES_OF_FILES = ("_FILE", "_PROFILE", "_CONFIG", "_CREDENTIALS", "_DIR", "_BUNDLE")


@dataclass(frozen=True)
class Place:
    """Where a driver runs."""

    master: str
    #: ``client`` or ``cluster``.
    deploy_mode: str

    @property
    def is_here(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_yarn(self) -> bool:
        return self.master == "yarn"

    @property
    def is_in_cluster(self) -> bool:
        return self.deploy_mode == "cluster"


def place_of(work: Work, step: SparkStep, submission: Submission) -> Place:
    conf = {**work.settings.spark_conf, **step.conf}
    mode = submission.deploy_mode or conf.get(sessions.DEPLOY_MODE, "client")
    return Place(submission.master or conf.get("spark.master", "local[*]"), mode.lower())


def application_of(work: Work, step: SparkStep, submission: Submission) -> ClusterApplication | None:
    """The application that a cluster runs without us, if the step makes one that can be found again."""
    place = place_of(work, step, submission)
    if not (place.is_yarn and place.is_in_cluster):
        return None
    conf = {**work.settings.spark_conf, **step.conf}
    return ClusterApplication(applications.tag_of(work), applications.yarn_client(step.variables, conf))


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


def submitted_job(work: Work, step: SparkStep, submission: Submission) -> Job:
    own_conf = sessions.catalog_conf(work.settings) | dict(work.settings.spark_conf) | dict(step.conf)
    place = place_of(work, step, submission)
    if place.is_yarn:
        applications.yarn_client(step.variables, own_conf).refuse_unusable()
    application = application_of(work, step, submission)
    tracked = tracked_sql(work, step)
    if tracked is not None:
        own_conf |= _ONCE
        tracked.resume(None)
        executor: dict[str, Any] = {"submitted": work.key, "deploy_mode": place.deploy_mode}
        tracked.begin_all(executor | ({applications.HANDLE: application.as_json} if application else {}))
    if application is not None:
        applications.note(work, application)
        own_conf[_TAGS] = ",".join(filter(None, [own_conf.get(_TAGS), application.tag]))
    java, jars = runtime([*catalog_packages(own_conf), *taken_packages(own_conf)])
    cloud = sessions.cloud_variables(work.settings)
    variables = {**cloud, **step.variables, **spark_environment(java), "SPARK_HOME": str(spark_home())}
    if place.is_here:
        conf = defaults(jars, os.cpu_count() or 2) | {"spark.driver.memory": work.settings.spark_memory}
    else:
        (work.folder / SUBMITTED_TO).write_text(place.master)
        conf = iceberg_conf(jars) | _cluster_conf(place, applications.tag_of(work).replace("_", "-"), cloud)
        variables |= _cluster_variables(place, step, variables)
        # Executors on other machines must be able to reach the driver.
        del variables["SPARK_LOCAL_IP"]
    mode = sessions.overwrite_mode(work.settings)
    conf |= {"spark.app.name": work.key, **stamp(work), **captures_conf(work), **mode}
    files: dict[str, str] = {}
    shipped: list[str] = []
    python_files: list[str] = []
    match step.job:
        case Sql(statements):
            files[_DRIVER] = _sql_driver(work, step, tracked, tracked.texts if tracked else statements)
            file, args = str(work.folder / _DRIVER), []
        case Script(source):
            file, args = str(source.runnable(work.folder)), list(step.args)
            files |= source.copies
            if source.content is not None:
                # What is beside the file is imported from there.
                variables["PYTHONPATH"] = _with_folder(source, variables.get("PYTHONPATH"))
            if place.is_in_cluster:
                conf |= _job_conf(work, place)
                shipped = [str(work.folder / name) for name in job_files(work, BLOCK)]
                python_files = [str(_job_package()), *_taken_python_files(own_conf)]
        case Jar(address):
            file, args = address, list(step.args)
    conf |= own_conf | {"spark.master": place.master}
    command = submit_command(
        work.folder / _PROPERTIES,
        file,
        args,
        main_class=submission.main_class,
        deploy_mode=submission.deploy_mode,
        packages=submission.packages,
        files=[*shipped, *_taken_files(conf)] if shipped else [],
        python_files=python_files,
    )
    files[_PROPERTIES] = as_properties(conf)
    secrets = (*step.secrets, *(value for name, value in cloud.items() if _SECRET_VARIABLE.search(name)))
    return command_job(work, BLOCK, command, files=files, variables=variables, secrets=secrets)


def _cluster_conf(place: Place, name: str, cloud: Mapping[str, str]) -> dict[str, str]:
    """Credentials of the environment reach the cluster, but not pods: whoever may look at a pod could read them."""
    if place.master.startswith("k8s:"):
        return {_POD: name} if place.is_in_cluster else {}
    prefixes = ["spark.executorEnv."]
    if place.is_in_cluster and place.is_yarn:
        prefixes.append(_DRIVER_VARIABLES["yarn"])
    values = {name: value for name, value in cloud.items() if not name.endswith(_NAMES_OF_FILES)}
    conf = {f"{prefix}{name}": value for prefix in prefixes for name, value in values.items()}
    if not place.is_in_cluster:
        conf["spark.pyspark.driver.python"] = sys.executable
    return conf


def _cluster_variables(place: Place, step: SparkStep, variables: Mapping[str, str]) -> dict[str, str]:
    client = applications.yarn_client(step.variables, {}).environment if place.is_yarn else {}
    if not (place.is_yarn or place.master.startswith("k8s:")):
        return {}
    # Our own Python is on this machine only.
    python = step.variables.get("PYSPARK_PYTHON", "python3")
    driver = python if place.is_in_cluster else variables["PYSPARK_DRIVER_PYTHON"]
    return {**client, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": driver}


def _job_conf(work: Work, place: Place) -> dict[str, str]:
    """What tells a driver in a cluster about itself: the files are in its working folder."""
    prefix = next((each for start, each in _DRIVER_VARIABLES.items() if place.master.startswith(start)), None)
    if prefix is None:
        return {}
    told = {
        "KEY": work.key,
        "WORKFLOW": work.workflow_id,
        "RUN": str(work.run_number),
        "STEP": work.step_id,
        "ATTEMPT": str(work.attempt),
        "PARAMS": PARAMS_FILE,
        **({"CAPTURES": CAPTURES_FILE} if work.captures else {}),
    }
    return {f"{prefix}DALSEGNO_{name}": value for name, value in told.items()}


def _taken_files(conf: dict[str, str]) -> list[str]:
    """An option of the command line would replace what the configuration says."""
    return [name.strip() for name in conf.pop("spark.files", "").split(",") if name.strip()]


def _taken_python_files(conf: dict[str, str]) -> list[str]:
    return [name.strip() for name in conf.pop("spark.submit.pyFiles", "").split(",") if name.strip()]


def _job_package() -> Path:
    """``dalsegno.job`` as an archive, for a driver on a machine where dalsegno is not installed."""
    root = Path(dalsegno.__file__).parent
    sources = [root / "__init__.py", *sorted((root / "job").glob("*.py"))]
    digest = sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    package = cache_folder() / f"dalsegno_job-{digest}.zip"
    if not package.exists():
        draft = package.with_name(f"{package.name}.{os.getpid()}")
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sources:
                archive.write(path, f"dalsegno/{path.relative_to(root)}")
        draft.replace(package)
    return package


def _with_folder(source: SourceFile, path: str | None) -> str:
    return os.pathsep.join(filter(None, [str(source.path.parent), path]))


def _sql_driver(work: Work, step: SparkStep, tracked: SqlWork | None, texts: Sequence[str]) -> str:
    # Nobody masks what a driver in a cluster prints.
    masked = AttemptLog(work.log, (*work.secrets, *step.secrets), limit=work.log_limit).masked
    given = [_statement(work, number, text, tracked) for number, text in enumerate(texts, 1)]
    return sql_driver([{**each, "shown": masked(each["sql"])} for each in given])


def _statement(work: Work, number: int, statement: str, tracked: SqlWork | None) -> dict[str, Any]:
    """A statement as its driver needs it: stamped, and not executed if it is done."""
    given: dict[str, Any] = {"sql": statement, "conf": statement_stamp(number, statement)}
    if tracked is not None:
        given["conf"] |= stamp(work, tracked.unit.id)
        given["is_done"] = tracked.is_done(number)
    return given
