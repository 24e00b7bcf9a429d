"""What is handed to a cluster. No application is started here: ``tests/lakes/test_yarn.py`` does that."""

from __future__ import annotations

import ast
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dalsegno.errors import PlatformError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.settings import load
from dalsegno.spark.yarn import YarnClient
from dalsegno.steps.contract import Finished, Running, Work
from dalsegno.steps.spark import applications
from dalsegno.steps.spark.applications import ClusterApplication
from dalsegno.steps.spark.executors import ensure_gone
from dalsegno.steps.spark.params import spark_step
from dalsegno.steps.spark.runner import SparkRunner
from dalsegno.steps.spark.submissions import submitted_job
from dalsegno.steps.supervision import Job
from tests.steps import support


@pytest.fixture
def conf_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The configuration of a cluster of which somebody answers, whoever it is."""
    folder = tmp_path / "hadoop conf"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        (folder / "yarn-site.xml").write_text(
            "<configuration><property><name>yarn.resourcemanager.address</name>"
            f"<value>{address}</value></property></configuration>"
        )
        monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))
        yield folder


def attempt(root: Path, **spark: Any) -> Work:
    (root / "job.py").write_text("print('never executed')")
    settings = load(working_folder=root, environment={})
    return support.attempt(root, {"spark": {"submit": True, **spark}, "word": "drowssap"}, settings=settings)


def job_of(work: Work) -> Job:
    step = spark_step(work)
    assert step.submission is not None
    return submitted_job(work, step, step.submission)


def properties(job: Job) -> dict[str, str]:
    lines = [line.encode().decode("unicode_escape") for line in job.files["spark.properties"].splitlines()]
    return dict(line.split("=", 1) for line in lines)


def test_a_driver_in_the_cluster_gets_nothing_of_this_machine(tmp_path: Path, conf_folder: Path) -> None:
    work = attempt(tmp_path, script="job.py", master="yarn", deploy_mode="cluster", conf={"spark.yarn.tags": "mine"})
    job = job_of(work)
    conf = properties(job)
    application = applications.noted(work)
    assert application is not None
    assert conf["spark.yarn.tags"] == f"mine,{application.tag}"
    assert job.environment["HADOOP_CONF_DIR"] == str(conf_folder)
    assert job.environment["PYSPARK_PYTHON"] == job.environment["PYSPARK_DRIVER_PYTHON"] == "python3"
    assert "SPARK_LOCAL_IP" not in job.environment
    told = {name: value for name, value in conf.items() if name.startswith("spark.yarn.appMasterEnv.")}
    assert told["spark.yarn.appMasterEnv.DALSEGNO_PARAMS"] == "params.json"
    assert not any(str(tmp_path) in value for value in told.values())
    # What is secret is in files of the attempt, and not among arguments.
    assert not any("drowssap" in word for word in job.command)
    assert "drowssap" in job.files["params.json"]
    assert str(work.folder / "params.json") in job.command


def test_another_machine_knows_the_application_by_the_handle(tmp_path: Path, conf_folder: Path) -> None:
    work = attempt(tmp_path, script="SELECT 1", master="yarn", deploy_mode="cluster")
    job_of(work)
    application = applications.noted(work)
    assert application is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = replace(work, folder=elsewhere)
    assert applications.noted(other) is None
    assert applications.noted(replace(other, handle={applications.HANDLE: application.as_json})) == application
    assert str(conf_folder) in str(application.as_json)


def test_a_driver_prints_no_secret(tmp_path: Path, conf_folder: Path) -> None:
    work = attempt(tmp_path, script="SELECT 'it''s drowssap'", master="yarn", deploy_mode="cluster")
    driver = job_of(replace(work, secrets=("drowssap",))).files["submitted_sql.py"]
    *_, call = driver.strip().splitlines()
    [statement] = json.loads(ast.literal_eval(call.removeprefix("main(json.loads(").removesuffix("))")))
    assert statement["shown"] == "SELECT 'it''s ***'"
    assert statement["sql"] == "SELECT 'it''s drowssap'"


def test_a_driver_here_has_our_python(tmp_path: Path, conf_folder: Path) -> None:
    work = attempt(tmp_path, script="job.py", master="yarn")
    job = job_of(work)
    assert applications.noted(work) is None
    assert job.environment["PYSPARK_DRIVER_PYTHON"] == properties(job)["spark.pyspark.driver.python"] == sys.executable
    assert job.environment["PYSPARK_PYTHON"] == "python3"


def test_the_code_of_a_step_needs_no_installation(tmp_path: Path, conf_folder: Path) -> None:
    """What travels with a script is enough to import ``dalsegno.job``, with the standard library alone."""
    job = job_of(attempt(tmp_path, script="job.py", master="yarn", deploy_mode="cluster"))
    package = job.command[job.command.index("--py-files") + 1]
    code = f"import sys; sys.path.insert(0, {package!r}); from dalsegno import job; print(job.__file__)"
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(package)


def test_an_attempt_has_one_pod(tmp_path: Path) -> None:
    spark = {"script": "SELECT 1", "master": "k8s://https://127.0.0.1:1", "deploy_mode": "cluster"}
    work = attempt(tmp_path, **spark)
    name = properties(job_of(work))["spark.kubernetes.driver.pod.name"]
    assert name == properties(job_of(work))["spark.kubernetes.driver.pod.name"]
    assert name.startswith("dalsegno-")
    assert name != properties(job_of(attempt(tmp_path, **spark)))["spark.kubernetes.driver.pod.name"]


def test_yarn_without_a_configuration_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    started = SparkRunner().start(attempt(tmp_path, script="SELECT 1", master="yarn"))
    assert isinstance(started, Finished)
    assert isinstance(started.outcome, Failed)
    assert started.outcome.kind is FailureKind.FATAL
    assert "HADOOP_CONF_DIR is not set" in started.outcome.message


def test_what_may_still_run_has_not_ended(tmp_path: Path) -> None:
    """Nobody can ask a cluster that is away: the step goes on, and nothing is taken for gone."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.resourcemanager.address</name>"
        f"<value>127.0.0.1:{port}</value></property></configuration>"
    )
    client = YarnClient({"HADOOP_CONF_DIR": str(tmp_path)}, {})
    application = ClusterApplication("dalsegno_x", client)
    executor = {"submitted": "k", "deploy_mode": "cluster", applications.HANDLE: application.as_json}
    work = attempt(tmp_path, script="SELECT 1", master="yarn", deploy_mode="cluster")
    with pytest.raises(PlatformError, match="No ResourceManager"):
        ensure_gone(work.settings, executor, "here")
    # As another machine sees it, which has the handle only.
    followed = replace(work, handle={applications.HANDLE: application.as_json})
    with pytest.raises(OSError, match="No ResourceManager"):
        SparkRunner().poll(followed, 0)
    assert SparkRunner().poll(followed, 0) == Running()
    with pytest.raises(PlatformError, match="No ResourceManager"):
        SparkRunner().cancel(followed)
