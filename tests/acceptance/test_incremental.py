"""Incremental workflows on a real Spark: what was written for a capture is not written again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.model.captures import CaptureState
from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.store import Store
from tests.acceptance.conftest import Commands
from tests.acceptance.test_workflows import DEMO_PIPELINE, REMEDIATION
from tests.callers import admin

pytestmark = pytest.mark.spark

DAILY = """
Workflow:
  id: daily
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {source_tables: [lake.db.plays], range_columns: [day]}
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark:
          script: |
            INSERT INTO lake.db.copies SELECT id, day FROM ${capture.change_table};
            INSERT INTO lake.db.days SELECT DISTINCT day FROM ${capture.change_table};
            SELECT count(*) AS copies FROM lake.db.copies
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""


class Place:
    """A project with three tables, emptied for each test."""

    def __init__(self, settings: Settings) -> None:
        from dalsegno.steps.spark.sessions import local_server

        self.settings = settings
        self.address = local_server(settings).ensure().address
        self.operations = Operations(Store.open(settings.store), settings, admin())

    def sql(self, *statements: str) -> list[dict[str, object]]:
        # A session each: it remembers tables for a while, whatever others do to them.
        session = Session(self.address, session_id_for(uuid4().hex))
        rows: list[dict[str, object]] = []
        for statement in statements:
            rows = session.execute(statement, 100).to_pylist()
        session.release()
        return rows

    def run(self, text: str) -> RunStatus:
        pushed = self.operations.workflows.push(text)
        return self.operations.runs.finish(self.operations.runs.start(pushed.workflow_id, {}).id).status

    def copies(self) -> list[object]:
        return [row["id"] for row in self.sql("SELECT id FROM lake.db.copies ORDER BY id")]


@pytest.fixture
def place(settings: Settings) -> Iterator[Place]:
    made = Place(settings)
    made.sql(
        "CREATE NAMESPACE IF NOT EXISTS lake.db",
        "CREATE OR REPLACE TABLE lake.db.plays (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)",
        "CREATE OR REPLACE TABLE lake.db.copies (id BIGINT, day STRING) USING iceberg",
        "CREATE OR REPLACE TABLE lake.db.days (day STRING) USING iceberg",
    )
    yield made
    made.operations.close()


def test_an_insert_is_not_repeated(place: Place) -> None:
    place.sql("INSERT INTO lake.db.plays VALUES (1, '2026-01-01'), (2, '2026-01-02')")
    place.sql("DROP TABLE lake.db.days")
    assert place.run(DAILY) is RunStatus.FAILED
    assert place.copies() == [1, 2]

    # The same run, restarted: what it wrote is there, what it did not write is not.
    place.sql("CREATE TABLE lake.db.days (day STRING) USING iceberg")
    run = place.operations.runs.restart("daily")
    assert place.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2]
    assert len(place.sql("SELECT * FROM lake.db.days")) == 2

    # The next run, which goes on with what a failed one left; a late row has come since, and waits for its turn.
    place.sql("INSERT INTO lake.db.plays VALUES (3, '2020-01-01')", "DROP TABLE lake.db.days")
    assert place.run(DAILY) is RunStatus.FAILED
    place.sql(
        "INSERT INTO lake.db.plays VALUES (4, '2026-01-03')", "CREATE TABLE lake.db.days (day STRING) USING iceberg"
    )
    for expected in ([1, 2, 3], [1, 2, 3, 4]):
        assert place.run(DAILY) is RunStatus.SUCCEEDED
        assert place.copies() == expected
    with Lake.open(place.settings) as lake:
        assert not lake.store.captures("daily", pending_only=True)


ICDC = """\
workflow:
  name: "playback_daily_workflow"
  steps:
    - name: "capture_icdc"
      type: "ICDC"
      sourceTable: "db.playback_table"
      targetTable: "db.playback_icdc_table"
    - name: "transform_new_data"
      type: "spark"
      script: "merge_incremental_spark_job.py"
      dependsOn:
        - "capture_icdc"
"""

MERGE_JOB = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql(
    "MERGE INTO lake.db.copies t USING lake.db.playback_icdc_table s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET day = concat(t.day, '+', s.day) WHEN NOT MATCHED THEN INSERT *"
)
"""


def test_the_same_table_name_in_every_run(place: Place) -> None:
    """On a Spark server that has read other rows under that name a moment ago."""
    (place.settings.root / "merge_incremental_spark_job.py").write_text(MERGE_JOB, encoding="utf-8")
    place.sql("CREATE OR REPLACE TABLE lake.db.playback_table (id BIGINT, day STRING) USING iceberg")
    place.sql("INSERT INTO lake.db.playback_table VALUES (1, 'a'), (2, 'a')")
    assert place.run(ICDC) is RunStatus.SUCCEEDED
    place.sql("INSERT INTO lake.db.playback_table VALUES (2, 'b'), (3, 'b')")
    assert place.run(ICDC) is RunStatus.SUCCEEDED
    # Nothing new, so the job is not run.
    assert place.run(ICDC) is RunStatus.SUCCEEDED
    assert [tuple(row.values()) for row in place.sql("SELECT * FROM lake.db.copies ORDER BY id")] == [
        (1, "a"),
        (2, "a+b"),
        (3, "b"),
    ]
    with Lake.open(place.settings) as lake:
        assert [each.state for each in lake.store.captures("playback_daily_workflow")] == [CaptureState.COMMITTED] * 2
        lake.clean()
        assert "playback_icdc_table" not in {table.name for table in lake.tables()}


INCREMENTAL = """\
Description:
  This is a sample description to [a Maestro workflow](https://github.com/Netflix/maestro)
Trigger:
  cron: '@daily'
Workflow:
  id: incremental.processing.pipeline
  jobs:
    - job:
        id: capture_change
        type: IpCapture
        ip_capture:
          source_tables:
            - membership_table
          capture_mode: ICDC
          data_operations:
            - append
    - subworkflow:
        id: auto.remediation.pipeline
        workflow_id: auto.remediation.pipeline
        SOURCE_TABLE: icdc.membership_table.01
        my_query: $S3{my_script.sql}
    - job:
        id: commit_checkpoint
        type: IpCommit
        ip_commit:
          capture_step: capture_change
  dag: sequential
"""

MY_SCRIPT = """\
MERGE INTO ${TARGET_TABLE} t USING (
  SELECT user_id, date_int, sum(watch_time) AS watch_time
  FROM ${SOURCE_TABLE} WHERE is_active = true GROUP BY user_id, date_int
) s
ON t.user_id = s.user_id AND t.date_int = s.date_int
WHEN MATCHED THEN UPDATE SET watch_time = t.watch_time + s.watch_time
WHEN NOT MATCHED THEN INSERT *
"""


RECOVERY = "Workflow: {id: example.recovery.wf, jobs: [{job: {id: nothing, type: NoOp}}]}"


def test_an_incremental_pipeline_around_an_ordinary_one(place: Place) -> None:
    """Neither of the workflows inside knows of captures: the query reads what it is told to."""
    folder = place.settings.root
    (folder / "my_script.sql").write_text(MY_SCRIPT, encoding="utf-8")
    (folder / "incremental.yaml").write_text(INCREMENTAL, encoding="utf-8")
    place.sql(
        "CREATE OR REPLACE TABLE lake.db.membership_table "
        "(user_id BIGINT, date_int INT, watch_time BIGINT, is_active BOOLEAN) USING iceberg",
        "CREATE OR REPLACE TABLE lake.db.watch_time (user_id BIGINT, date_int INT, watch_time BIGINT) USING iceberg",
    )
    with closing(
        Operations(Store.open(place.settings.store), replace(place.settings, default_namespace="db"), admin())
    ) as operations:
        for text in (DEMO_PIPELINE, REMEDIATION, RECOVERY):
            operations.workflows.push(text)
        operations.workflows.push_file(folder / "incremental.yaml")
        for rows in (
            "(1, 20260101, 5, true), (1, 20260101, 7, true), (2, 20260101, 9, false)",
            "(1, 20260101, 1, true)",
        ):
            place.sql(f"INSERT INTO lake.db.membership_table VALUES {rows}")
            run = operations.runs.start("incremental.processing.pipeline", {"TARGET_TABLE": "lake.db.watch_time"})
            assert operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
            assert operations.runs.get("demo.pipeline").status is RunStatus.SUCCEEDED
    assert [tuple(row.values()) for row in place.sql("SELECT * FROM lake.db.watch_time")] == [(1, 20260101, 13)]


def test_a_lost_store_is_rebuilt(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With blind inserts: what is processed twice, or not at all, shows."""
    text = DAILY.replace("daily", "lost")
    for number in (1, 2):
        place.sql(f"INSERT INTO lake.db.plays VALUES ({number}, '2026-03-0{number}')")
        assert place.run(text) is RunStatus.SUCCEEDED
    place.operations.close()
    for file in (place.settings.root / ".dalsegno").glob("dalsegno.db*"):
        file.unlink()

    monkeypatch.chdir(place.settings.root)
    run = Commands(place.settings.root, capsys)
    source = "lost on lake.db.plays"
    assert f"{source}: would be set to snapshot" in run("checkpoints", "rebuild", "db.copies", "--dry-run").out
    assert run.json("checkpoints", "list") == []
    done = run("checkpoints", "rebuild", "lake.db.copies", "lake.db.days", "--consumer", "lost")
    assert f"{source}: is set to snapshot" in done.out
    assert "lake.db.days: 2 snapshots written for captures" in done.out
    [kept] = run.json("checkpoints", "rebuild", "db.copies")["checkpoints"]
    assert (kept["action"], kept["captures"], kept["refusal"]) == ("kept", 2, None)

    place = Place(place.settings)
    place.sql("INSERT INTO lake.db.plays VALUES (3, '2020-01-01')")
    assert place.run(text) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 3]
    # A run that died between its two targets.
    place.sql("INSERT INTO lake.db.plays VALUES (4, '2020-01-01')")
    assert place.run(text.replace("SELECT DISTINCT day", "SELECT DISTINCT no_such_column")) is RunStatus.FAILED
    refused = run("checkpoints", "rebuild", "lake.db.copies", "lake.db.days")
    assert refused.code == 3
    assert "but not what the captures before it wrote to lake.db.days (lost write statement 2)" in refused.out
    place.operations.close()


SCRIPTED = """
Workflow:
  id: scripted
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {source_tables: [lake.db.plays]}
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0, platform_retry_limit: 0}
        spark: {script: append.py}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""

#: Dies after it has appended, as long as there is a file that says so.
APPENDING = """
import os, signal
from pathlib import Path
from dalsegno import job
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
with job.write((spark, "lake.db.copies")) as write:
    if write:
        spark.table(job.change_table()).writeTo("lake.db.copies").append()
if Path("die").exists():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_script_that_asks_does_not_append_again(place: Place) -> None:
    (place.settings.root / "append.py").write_text(APPENDING)
    (place.settings.root / "die").touch()
    place.sql("INSERT INTO lake.db.plays VALUES (7, '2026-01-01')")
    assert place.run(SCRIPTED) is RunStatus.FAILED
    assert place.copies() == [7]
    with Lake.open(place.settings) as lake:
        [pending] = lake.store.captures("scripted", pending_only=True)
        [found] = lake.rebuild_checkpoints("db.copies", consumer="scripted", is_dry_run=True).checkpoints
        # The session that the script was given is stamped, ranges included.
        assert (found.capture_id, found.position) == (pending.id, pending.tables[0].upto)
    (place.settings.root / "die").unlink()
    assert place.operations.runs.finish(place.operations.runs.restart("scripted").id).status is RunStatus.SUCCEEDED
    assert place.copies() == [7]
