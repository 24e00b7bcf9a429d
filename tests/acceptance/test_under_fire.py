"""Workers are killed at random while a writer appends, merges, deletes, compacts and expires; every target is exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.clock import utc_now
from dalsegno.iceberg.pins import branch_name
from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.store import Store
from tests.acceptance.burning import UNHARMED, Writer, start_and_work
from tests.callers import admin
from tests.conftest import warm_spark
from tests.processes import PROCESSES

pytestmark = pytest.mark.spark

#: Blind appends, and groups that are computed again.
PLAYS = """
Workflow:
  id: plays
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [lake.db.plays]}}
    - job:
        id: copy
        type: Spark
        spark: {script: "INSERT INTO lake.db.copies SELECT * FROM ${capture.change_table}"}
    - job:
        id: sum_up
        type: Spark
        spark:
          script: |
            MERGE INTO lake.db.titles t
            USING (
              SELECT title, sum(seconds) AS seconds FROM lake.db.plays
              WHERE title IN (SELECT title FROM ${capture.change_table}) GROUP BY title
            ) s
            ON t.title = s.title
            WHEN MATCHED THEN UPDATE SET seconds = s.seconds
            WHEN NOT MATCHED THEN INSERT *
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""

#: Every kind of change, as changed rows.
PROFILES = """
Workflow:
  id: profiles
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {source_tables: [lake.db.profiles], changes: before_after, keys: [id]}
    - job:
        id: mirror
        type: Spark
        spark:
          script: |
            MERGE INTO lake.db.mirror t
            USING (SELECT * FROM ${capture.changes_view} WHERE _change_type <> 'update_before') s
            ON t.id = s.id
            WHEN MATCHED AND s._change_type = 'delete' THEN DELETE
            WHEN MATCHED THEN UPDATE SET name = s.name
            WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT (id, name) VALUES (s.id, s.name)
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""

#: Blind appends, and no capture that would tell which of them were made.
APPENDS = """
Workflow:
  id: appends
  jobs:
    - job:
        id: append
        type: Spark
        retry_policy: {platform_retry_limit: 0}
        spark:
          script: |
            CREATE NAMESPACE IF NOT EXISTS lake.db;
            CREATE TABLE IF NOT EXISTS lake.db.numbers (number BIGINT) USING iceberg;
            DECLARE VARIABLE five BIGINT DEFAULT 5;
            INSERT INTO lake.db.numbers SELECT 1 FROM range(1) WHERE reflect('java.lang.Thread', 'sleep', 900L) <> '';
            INSERT INTO lake.db.numbers VALUES (2);
            INSERT INTO lake.db.numbers SELECT 3 FROM range(1) WHERE reflect('java.lang.Thread', 'sleep', 900L) <> '';
            INSERT INTO lake.db.numbers VALUES (4);
            INSERT INTO lake.db.numbers SELECT five;
            SELECT collect_list(number) AS numbers FROM (SELECT number FROM lake.db.numbers ORDER BY number)
  dag: sequential
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
        yield loaded


class Place:
    def __init__(self, settings: Settings) -> None:
        from dalsegno.steps.spark.sessions import local_server

        self.settings = settings
        self.address = local_server(settings).ensure().address
        with Operations(Store.open(settings.store), settings, admin()) as operations:
            operations.workflows.push(PLAYS)
            operations.workflows.push(PROFILES)
            operations.workflows.push(APPENDS)

    def sql(self, *statements: str) -> list[dict[str, object]]:
        session = Session(self.address, session_id_for(uuid4().hex))
        rows: list[dict[str, object]] = []
        for statement in statements:
            rows = session.execute(statement, 100).to_pylist()
        session.release()
        return rows

    def work(self, workflow_id: str, key: str, seconds: float) -> bool:
        """Whether a worker that is killed after so many seconds was done by then."""
        worker = PROCESSES.Process(target=start_and_work, args=(str(self.settings.root), workflow_id, key, seconds))
        worker.start()
        worker.join()
        assert worker.exitcode in (0, -9)
        return worker.exitcode == 0

    def run(self, workflow_id: str, key: str, deaths: list[float]) -> int:
        """Run a workflow whose workers live so long, one after the other; how many died."""
        for number, seconds in enumerate(deaths):
            if self.work(workflow_id, key, seconds):
                return number
        assert self.work(workflow_id, key, UNHARMED)
        return len(deaths)

    def differences(self, expected: str, found: str) -> list[dict[str, object]]:
        return self.sql(f"(({expected}) EXCEPT ALL ({found})) UNION ALL (({found}) EXCEPT ALL ({expected}))")


def test_nothing_is_lost_or_doubled(settings: Settings, pytestconfig: pytest.Config) -> None:
    runs = pytestconfig.getoption("--fires")
    chance = random.Random(20261116)
    place = Place(settings)
    place.sql(
        "CREATE NAMESPACE IF NOT EXISTS lake.db",
        "CREATE TABLE lake.db.plays (id BIGINT, day STRING, title STRING, seconds BIGINT) "
        "USING iceberg PARTITIONED BY (day)",
        "CREATE TABLE lake.db.profiles (id BIGINT, name STRING) USING iceberg "
        "TBLPROPERTIES ('write.merge.mode' = 'copy-on-write', 'write.delete.mode' = 'merge-on-read')",
        "CREATE TABLE lake.db.copies (id BIGINT, day STRING, title STRING, seconds BIGINT) USING iceberg",
        "CREATE TABLE lake.db.titles (title STRING, seconds BIGINT) USING iceberg",
        "CREATE TABLE lake.db.mirror (id BIGINT, name STRING) USING iceberg",
    )
    writer = Writer(place.address, seed=runs)
    writer.append()
    writer.change()
    # A consumer begins with a history that is whole; from then on, what it saw is held.
    for workflow_id in ("plays", "profiles"):
        place.run(workflow_id, "first", [])
    died = 0
    with writer.writing():
        for number in range(runs):
            deaths = [chance.uniform(0.2, 3) for _ in range(chance.choice([0, 1, 1, 2]))]
            workflow_id, began = chance.choice(["plays", "profiles"]), utc_now()
            died += place.run(workflow_id, str(number), deaths)
            writer.looked_at[workflow_id] = began
    # What came in while the last ones ran.
    for workflow_id in ("plays", "profiles"):
        assert place.run(workflow_id, "last", []) == 0
    print(f"{runs} runs, {died} workers killed, the writer did {writer.done}")  # noqa: T201 - for -s

    with Operations(Store.open(settings.store), settings, admin()) as operations:
        ended = operations.runs.list(limit=10_000)
        assert not [(run.id, run.reason) for run in ended if run.status is not RunStatus.SUCCEEDED]
    assert not place.differences("SELECT * FROM lake.db.plays", "SELECT * FROM lake.db.copies")
    assert not place.differences(
        "SELECT title, sum(seconds) AS seconds FROM lake.db.plays GROUP BY title", "SELECT * FROM lake.db.titles"
    )
    assert not place.differences("SELECT * FROM lake.db.profiles", "SELECT * FROM lake.db.mirror")
    with Lake.open(settings) as lake:
        assert not lake.store.captures(pending_only=True)
        lake.clean()
        assert not lake.catalog("lake").tables(("icdc",))
        for table in ("plays", "profiles"):
            refs = lake.load(lake.name(f"lake.db.{table}")).metadata["refs"]
            # The branch that holds what this consumer has not processed: nothing but the checkpoint by now.
            assert set(refs) == {"main", branch_name(table)}
            assert refs[branch_name(table)]["min-snapshots-to-keep"] == 1


def test_a_killed_worker_is_a_killed_worker(settings: Settings) -> None:
    """The test above would pass if nobody died."""
    assert not Place(settings).work("plays", "never", 0.01)


def test_sql_is_gone_on_with_by_whoever_comes_next(settings: Settings) -> None:
    """In the same attempt: there is no other one."""
    place = Place(settings)
    chance = random.Random(7)
    assert place.run("appends", "once", [chance.uniform(1, 3) for _ in range(3)]) > 0
    assert [row["number"] for row in place.sql("SELECT number FROM lake.db.numbers ORDER BY number")] == [1, 2, 3, 4, 5]
    with Operations(Store.open(settings.store), settings, admin()) as operations:
        run = operations.runs.get("appends")
        assert run.status is RunStatus.SUCCEEDED
        assert [step.attempt for step in operations.runs.steps(run.id)] == [1]
