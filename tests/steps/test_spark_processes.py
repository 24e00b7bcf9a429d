"""PySpark scripts and what is submitted, on a real Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dalsegno import Lake
from dalsegno.model.captures import CaptureState
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.settings import Settings, load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import running_servers
from dalsegno.steps import stamps
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark.runner import SparkRunner
from dalsegno.steps.spark.sessions import local_server
from tests.steps import support
from tests.store.examples import PLAYBACK, capture

pytestmark = pytest.mark.spark

RUNNER = SparkRunner()

WRITING = """
import os, sys
from dalsegno import job
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("address", os.environ["SPARK_REMOTE"])
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.range(int(sys.argv[1])).writeTo("lake.db.scripted").createOrReplace()
stamp = spark.sql("SELECT summary['dalsegno.attempt'] AS attempt FROM lake.db.scripted.snapshots").first()
job.output(rows=spark.table("lake.db.scripted").count(), attempt=stamp.attempt, day=job.param("day"))
spark.stop()
"""

ENDLESS = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("begins", flush=True)
spark.sql("SELECT max(hash(id)) FROM range(0, 100000000000000, 1, 4)").collect()
"""


def attempt(settings: Settings, name: str, script: str, **spark: Any) -> Work:
    (settings.root / name).write_text(script)
    params = {"spark": {"script": name, **spark}, "day": "2026-01-02"}
    return support.attempt(settings.root, params, settings=settings)


def outcome_of(work: Work) -> Outcome:
    """Start the step and wait for its end: a fresh Spark on a busy machine takes its time."""
    started = RUNNER.start(work)
    finished = RUNNER.poll(work, 300) if isinstance(started, Started) else started
    assert isinstance(finished, Finished), support.log_text(work)
    return finished.outcome


def executing(settings: Settings) -> set[str]:
    server = local_server(settings).running()
    assert server is not None
    session = Session(server.address, session_id_for("looking"))
    # Each question is executed as well, but not twice.
    found = session.executing() & session.executing()
    session.disconnect()
    return found


def test_an_unchanged_script_runs_in_the_session_of_the_attempt(settings: Settings) -> None:
    work = attempt(settings, "write.py", WRITING, args=[7])
    assert outcome_of(work) == Succeeded({"rows": 7, "attempt": work.key, "day": "2026-01-02"})
    server = local_server(settings).running()
    assert server is not None
    assert "token=***" in support.log_text(work)
    assert server.token not in support.log_text(work)
    assert RUNNER.poll(work, 0) == Finished(Succeeded({"rows": 7, "attempt": work.key, "day": "2026-01-02"}))


@pytest.mark.parametrize("is_submitted", [False, True])
def test_what_was_pushed_of_a_script_counts(settings: Settings, is_submitted: bool) -> None:
    (settings.root / "beside.py").write_text("WORD = 'beside'")
    work = attempt(settings, "pushed.py", "raise SystemExit('edited')", submit=is_submitted)
    (settings.root / "pushed.py").unlink()
    pushed = "from dalsegno import job\nimport beside\njob.output(word=beside.WORD)\n"
    work = replace(work, pushed_file=lambda field, name: pushed if field == "spark.script" else None)
    assert outcome_of(work) == Succeeded({"word": "beside"})


def test_a_script_that_fails(settings: Settings) -> None:
    failed = outcome_of(attempt(settings, "fail.py", "raise SystemExit('no such day')"))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.USER
    assert "no such day" in failed.message


def test_configuration_that_is_too_late(settings: Settings) -> None:
    failed = outcome_of(attempt(settings, "late.py", "print('never')", conf={"spark.driver.memory": "9g"}))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.FATAL
    assert "spark.driver.memory" in failed.message


def test_ending_a_script_ends_its_work_in_spark(settings: Settings) -> None:
    work = attempt(settings, "endless.py", ENDLESS)
    started = RUNNER.start(work)
    assert isinstance(started, Started)
    support.until(lambda: executing(settings), 120)
    RUNNER.cancel(replace(work, handle=started.handle, params={}))
    assert not executing(settings)
    ended = RUNNER.poll(work, 0)
    assert isinstance(ended, Finished)
    assert isinstance(ended.outcome, Stopped)


def test_sql_that_is_submitted(tmp_path: Path) -> None:
    """In a project where no server runs, and none is started."""
    script = (
        "CREATE NAMESPACE IF NOT EXISTS lake.db; CREATE TABLE IF NOT EXISTS lake.db.new (id INT) USING iceberg; "
        "INSERT INTO lake.db.new VALUES (41); SELECT max(id) + count(*) AS answer, '${' AS odd FROM lake.db.new"
    )
    settings = load(working_folder=tmp_path, environment={})
    captured = replace(capture("ab", consumer="c", tables=(PLAYBACK,)), state=CaptureState.READY)
    work = support.attempt(
        tmp_path,
        {"spark": {"script": script, "submit": True}},
        settings=settings,
        captures=(captured,),
        place="write",
    )
    with Lake.open(settings) as lake:
        catalog = lake.catalog("lake").pyiceberg
        # Waited for in two parts, as an engine does.
        assert isinstance(RUNNER.start(work), Started)
        assert isinstance(RUNNER.poll(work, 0), Running)
        finished = RUNNER.poll(work, 300)
        assert finished == Finished(Succeeded({})), support.log_text(work)
        assert "|42    |${ |" in support.log_text(work)
        [written] = catalog.load_table("db.new").snapshots()
    assert written.summary is not None
    expected = {**stamps.properties(work), "dalsegno.statement": "3"}
    assert {name: written.summary.get(name) for name in expected} == expected
    # What may hold passwords is gone.
    assert not (work.folder / "spark.properties").exists()
    assert not list(running_servers(tmp_path))


COUNTING = """
import org.apache.spark.sql.SparkSession;
public class Counting {
    public static void main(String[] args) {
        SparkSession spark = SparkSession.builder().getOrCreate();
        long rows = spark.range(Long.parseLong(args[0])).count();
        System.out.println("counted " + rows + " with " + spark.conf().get("spark.x"));
    }
}
"""


def test_a_jar_with_a_class(tmp_path: Path) -> None:
    if not shutil.which("javac") or not shutil.which("jar"):
        pytest.skip("there is no Java compiler")
    import pyspark

    libraries = Path(str(pyspark.__file__)).parent / "jars" / "*"
    (tmp_path / "Counting.java").write_text(COUNTING)
    subprocess.run(["javac", "-classpath", str(libraries), "Counting.java"], cwd=tmp_path, check=True)
    subprocess.run(["jar", "--create", "--file=counting.jar", "Counting.class"], cwd=tmp_path, check=True)
    spark = {"jar": (tmp_path / "counting.jar").as_uri(), "args": ["7"], "master": "local[1]", "conf": {"spark.x": "z"}}
    work = support.attempt(tmp_path, {"spark": {**spark, "class": "Counting", "deploy_mode": "client"}})
    assert outcome_of(work) == Succeeded({}), support.log_text(work)
    assert "counted 7 with z" in support.log_text(work)

    other = support.attempt(tmp_path, {"spark": {**spark, "class": "NoSuchClass"}})
    failed = outcome_of(other)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.USER
    assert "NoSuchClass" in failed.message


@pytest.mark.parametrize(
    ("spark", "message"),
    [
        ({}, "spark needs one of script, file, jar; found none of them."),
        ({"script": "SELECT 1", "jar": "a.jar"}, "found script and jar"),
        ({"script": " -- nothing"}, "spark.script holds no SQL statement."),
        ({"script": "missing.sql"}, "there is no file"),
        ({"file": "data.csv"}, "expected the name of a .sql or .py file"),
        ({"script": "SELECT 1", "packages": ["a:b:1"]}, "spark.packages is for what is submitted."),
        ({"script": "SELECT 1", "scrpt": "x"}, "There is no field spark.scrpt."),
        ({"script": "../outside.py"}, "is outside of"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, spark: dict[str, Any], message: str) -> None:
    outcome = outcome_of(support.attempt(tmp_path, {"spark": spark}))
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.FATAL
    assert message in outcome.message


def test_scripts_run_with_our_own_python(settings: Settings) -> None:
    work = attempt(settings, "python.py", "import sys; from dalsegno import job; job.output(python=sys.executable)")
    assert outcome_of(work) == Succeeded({"python": sys.executable})
