"""Steps that are submitted to a real YARN, with drivers on this machine and in the cluster."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings, load
from dalsegno.spark.submit import spark_home
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark import applications
from dalsegno.steps.spark.runner import SparkRunner
from dalsegno.store import Store
from tests.callers import admin
from tests.lakes.yarn import STOPPED_QUEUE, Yarn, running_yarn
from tests.steps import support

pytestmark = [pytest.mark.spark, pytest.mark.prove_lakes]

RUNNER = SparkRunner()
PATIENCE = 600.0
SLEEP = "SELECT java_method('java.lang.Thread', 'sleep', 20000L)"
ENDLESS = "SELECT java_method('java.lang.Thread', 'sleep', 900000L)"

PIPELINE = """
Workflow:
  id: %(name)s
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [lake.db.source]}}
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0, platform_retry_limit: 0}
        spark:
          submit: true
          master: yarn
          deploy_mode: %(mode)s
          script: |
            %(script)s
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with running_yarn(tmp_path_factory.mktemp("yarn")) as cluster:
        yield cluster


@pytest.fixture
def settings(yarn: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project in the folder that no container can read. What the cluster shares is elsewhere, as on a file server."""
    root = yarn.hidden / uuid4().hex
    root.mkdir()
    (root / "dalsegno.toml").write_text(
        f"""
[catalogs.lake]
type = "sql"
uri = "sqlite:///{tmp_path}/catalog.db"
warehouse = "{(tmp_path / "warehouse").as_uri()}"

[spark.conf]
"spark.yarn.jars" = "local:{spark_home()}/jars/*"
"spark.executor.instances" = "1"
"spark.executor.memory" = "512m"
"spark.driver.memory" = "512m"
"spark.sql.shuffle.partitions" = "1"
"""
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.conf_folder))
    settings = load(working_folder=root, environment={})
    with Lake.open(settings) as lake:
        catalog = lake.catalog("lake").pyiceberg
        catalog.create_namespace("db")
        for name in ("source", "target"):
            catalog.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
        catalog.load_table("db.source").append(pa.table({"id": [1, 2, 3]}))
    return settings


@pytest.fixture
def operations(settings: Settings) -> Iterator[Operations]:
    made = Operations(Store.open(settings.store), settings, admin())
    yield made
    made.close()


def ids(settings: Settings) -> list[int]:
    with Lake.open(settings) as lake:
        found: list[int] = lake.catalog("lake").pyiceberg.load_table("db.target").scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def attempt(settings: Settings, script: str, mode: str = "cluster", **spark: Any) -> Work:
    params = {"spark": {"script": script, "submit": True, "master": "yarn", "deploy_mode": mode, **spark}}
    return replace(support.attempt(settings.root, params, settings=settings), key=f"yarn.{uuid4().hex}")


def outcome_of(work: Work) -> Outcome:
    started = RUNNER.start(work)
    if isinstance(started, Finished):
        return started.outcome
    return followed(replace(work, handle=started.handle))


def followed(work: Work) -> Outcome:
    found: list[Outcome] = []

    def has_ended() -> bool:
        state = RUNNER.poll(work, 1.0)
        found.extend([state.outcome] if isinstance(state, Finished) else [])
        return bool(found)

    support.until(has_ended, PATIENCE)
    return found[0]


def state_of(work: Work) -> str | None:
    application = applications.noted(work)
    assert application is not None
    found = application.find()
    return None if found is None else found.state


def text_of(log: Path) -> str:
    return log.read_text() if log.exists() else ""


def kill_client(folder: Path) -> None:
    """Kill ``spark-submit`` and whoever looks after it, as when the machine dies."""
    victims = support.commands_with(str(folder))
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_what_was_captured_is_written_once(settings: Settings, operations: Operations, mode: str) -> None:
    script = "INSERT INTO lake.db.target SELECT id FROM ${capture.change_table}; SELECT count(*) FROM lake.db.target"
    operations.workflows.push(PIPELINE % {"name": "daily", "mode": mode, "script": script})
    run = operations.runs.finish(operations.runs.start("daily", {}).id)
    assert run.status is RunStatus.SUCCEEDED, operations.runs.log("daily", "write").text()
    assert ids(settings) == [1, 2, 3]
    with Lake.open(settings) as lake:
        assert not lake.store.captures("daily", pending_only=True)
        [written] = lake.catalog("lake").pyiceberg.load_table("db.target").snapshots()
    assert written.summary is not None
    assert written.summary["dalsegno.statement"] == "1"


def test_an_application_outlives_its_client(settings: Settings, operations: Operations) -> None:
    """``spark-submit`` and its supervisor are killed: the run finds the application again, and submits no other."""
    script = f"{SLEEP};\n            INSERT INTO lake.db.target SELECT id FROM ${{capture.change_table}}"
    operations.workflows.push(PIPELINE % {"name": "crash", "mode": "cluster", "script": script})
    run = operations.runs.start("crash", {})
    with ThreadPoolExecutor(1) as pool:
        finished = pool.submit(lambda: operations.runs.finish(run.id))
        folder = settings.jobs_path / "crash" / "1" / "write" / "1"
        support.until(lambda: "state: RUNNING" in text_of(folder / "log") or finished.done(), PATIENCE)
        [application] = re.findall(r"Submitted application (\S+)", text_of(folder / "log"))
        kill_client(folder)
        assert finished.result().status is RunStatus.SUCCEEDED, operations.runs.get("crash").reason
    assert ids(settings) == [1, 2, 3]
    assert json.loads((folder / "application.ended").read_text())["id"] == application


def test_another_machine_finds_an_application_and_ends_it(settings: Settings) -> None:
    """By the handle: it has neither the attempt's folder nor its processes."""
    work = attempt(settings, f"{ENDLESS}; INSERT INTO lake.db.target VALUES (7)")
    started = RUNNER.start(work)
    assert isinstance(started, Started)
    support.until(lambda: "state: RUNNING" in support.log_text(work), PATIENCE)
    kill_client(work.folder)
    elsewhere = replace(work, folder=settings.root / "elsewhere", handle=started.handle)
    elsewhere.folder.mkdir()
    assert isinstance(RUNNER.poll(elsewhere, 1.0), Running)
    RUNNER.cancel(replace(elsewhere, params={}))
    assert state_of(elsewhere) == "KILLED"
    assert isinstance(followed(elsewhere), Stopped)
    assert ids(settings) == []


SCRIPT = """
import os
from pyspark.sql import SparkSession
from dalsegno import job

spark = SparkSession.builder.getOrCreate()
assert not os.path.exists(job.param("hidden")), "the driver sees the files of its client"
with job.write((spark, "lake.db.target")) as write:
    assert write
    spark.sql(f"INSERT INTO lake.db.target VALUES ({job.param('number')})")
"""


def test_a_script_in_the_cluster_has_its_parameters(settings: Settings) -> None:
    (settings.root / "write.py").write_text(SCRIPT)
    work = attempt(settings, "write.py")
    hidden = str(settings.root / "write.py")
    assert outcome_of(replace(work, params={**work.params, "number": 41, "hidden": hidden})) == Succeeded({})
    assert ids(settings) == [41]


def test_why_a_driver_in_the_cluster_failed(settings: Settings) -> None:
    failed = outcome_of(attempt(settings, "SELECT * FROM lake.db.missing"))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.USER
    assert "ended on YARN as FAILED" in failed.message
    assert "exited with status 1" in failed.message
    assert "yarn logs -applicationId" in str(failed.hint)


@pytest.mark.parametrize(
    ("queue", "message"),
    [("no such", "YARN has no queue 'no such'"), (STOPPED_QUEUE, f"'root.{STOPPED_QUEUE}' is stopped")],
)
def test_a_queue_that_does_not_take_it(settings: Settings, queue: str, message: str) -> None:
    failed = outcome_of(attempt(settings, "SELECT 1", conf={"spark.yarn.queue": queue}))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.FATAL
    assert message in failed.message
    assert "spark.yarn.queue" in str(failed.hint)
