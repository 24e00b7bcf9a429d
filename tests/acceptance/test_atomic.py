"""Steps with ``atomic: true`` on a real Spark: all of it is in the target's main branch, once, or nothing is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from multiprocessing import get_context
from typing import Any

import pytest
import yaml

from dalsegno import Lake
from dalsegno.iceberg import publishing
from dalsegno.model.runs import RunStatus
from dalsegno.operations.run_views import StepView
from dalsegno.settings import Settings
from dalsegno.steps import stamps
from dalsegno.steps.spark import atomic
from dalsegno.steps.spark.atomic import AtomicScript
from dalsegno.steps.spark.atomic_records import AtomicRecord
from tests.acceptance.dying_atomic import MOMENTS, work_until
from tests.acceptance.test_incremental import Place

pytestmark = pytest.mark.spark

WORKFLOW = """
Workflow:
  id: {id}
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {{source_tables: [lake.db.plays]}}
    - job:
        id: write
        type: Spark
        retry_policy: {{error_retry_limit: 0, platform_retry_limit: 2}}
        spark:
          atomic: true
          script: |
            {script}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""
#: What the second statement writes depends on what the first wrote; a view over the target is made in between.
SCRIPT = """
            INSERT INTO lake.db.copies SELECT id, day FROM ${capture.change_table};
            USE lake.db;
            CREATE TEMPORARY VIEW doubled AS SELECT id + 100 AS id, day FROM copies WHERE id < 100;
            MERGE INTO copies USING doubled ON copies.id = doubled.id WHEN NOT MATCHED THEN INSERT *;
            DELETE FROM copies WHERE day IN (SELECT day FROM lake.db.days);
            SELECT count(*) AS n FROM lake.db.copies
"""


def workflow(name: str, script: str = SCRIPT) -> str:
    return WORKFLOW.format(id=name, script=script.strip())


def uncaptured(name: str) -> str:
    """The same without a capture, and with the platform's retries."""
    found = yaml.safe_load(workflow(name, SCRIPT.replace("${capture.change_table}", "lake.db.plays")))
    found["Workflow"]["jobs"] = [found["Workflow"]["jobs"][1]]
    return str(yaml.safe_dump(found))


@pytest.fixture
def place(settings: Settings) -> Iterator[Place]:
    made = Place(settings)
    made.sql(
        "CREATE NAMESPACE IF NOT EXISTS lake.db",
        "DROP TABLE IF EXISTS lake.db.copies",
        "CREATE OR REPLACE TABLE lake.db.plays (id BIGINT, day STRING) USING iceberg",
        "CREATE TABLE lake.db.copies (id BIGINT, day STRING) USING iceberg",
        "CREATE OR REPLACE TABLE lake.db.days (day STRING) USING iceberg",
        "INSERT INTO lake.db.plays VALUES (1, 'a'), (2, NULL)",
    )
    yield made
    made.operations.close()


def dies(*_: object) -> None:
    raise RuntimeError("died")


def branches(place: Place) -> list[object]:
    return [row["name"] for row in place.sql("SELECT name FROM lake.db.copies.refs ORDER BY name")]


def captured_by_reader(place: Place) -> list[object]:
    """What a consumer of the target gets next."""
    with Lake.open(place.settings) as lake:
        capture = lake.capture("lake.db.copies", consumer="reader").capture
        assert capture is not None
        rows = place.sql(f"SELECT id FROM {capture.tables[0].change_table} ORDER BY id")
        lake.commit(capture.id)
    return [row["id"] for row in rows]


def write_step(place: Place, name: str) -> StepView:
    [step] = [step for step in place.operations.runs.steps(name) if step.id == "write"]
    return step


def test_all_of_it_is_published_at_once(place: Place) -> None:
    """Into a table that has no snapshot, and into one that has; another consumer captures exactly what was written."""
    assert place.run(workflow("happy")) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 101, 102]
    assert write_step(place, "happy").outputs["n"] == 4
    assert len(captured_by_reader(place)) == 4
    place.sql("INSERT INTO lake.db.plays VALUES (3, 'c')", "INSERT INTO lake.db.copies VALUES (50, 'z')")
    assert place.run(workflow("happy")) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 3, 50, 101, 102, 103, 150]
    assert branches(place) == ["dalsegno_reader", "main"]
    assert captured_by_reader(place) == [3, 50, 103, 150]


def test_a_failure_leaves_main_as_it_was(place: Place) -> None:
    place.sql("INSERT INTO lake.db.copies VALUES (0, 'x')", "DROP TABLE lake.db.days")
    assert place.run(workflow("failing")) is RunStatus.FAILED
    assert place.copies() == [0]
    assert branches(place) == ["main"]
    place.sql("CREATE TABLE lake.db.days (day STRING) USING iceberg", "INSERT INTO lake.db.days VALUES ('x')")
    run = place.operations.runs.restart("failing")
    assert place.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 101, 102]


def test_who_dies_after_publishing_is_not_repeated(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(AtomicRecord, "end", dies)
        assert place.run(workflow("unheard")) is RunStatus.FAILED
    assert place.copies() == [1, 2, 101, 102]
    assert place.run(workflow("unheard").replace("USE lake.db;", "USE lake.db; SELECT 1;")) is RunStatus.FAILED
    assert place.run(workflow("unheard")) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 101, 102]
    assert branches(place) == ["main"]


def test_who_dies_before_publishing_starts_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the author has repaired the SQL by then: nothing of the old one is visible."""

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "publish", dies)
        assert place.run(workflow("early")) is RunStatus.FAILED
    assert place.copies() == []
    assert len(branches(place)) == 1
    place.sql("CREATE OR REPLACE TABLE lake.db.other AS SELECT 1")
    assert place.run(workflow("early").replace("id + 100", "id + 200")) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 201, 202]
    assert branches(place) == ["main"]


@pytest.mark.parametrize(("moment", "captures"), [("in the middle", True), ("after publishing", False)])
def test_who_is_killed_publishes_once(place: Place, moment: str, captures: bool) -> None:
    name = f"killed_{MOMENTS.index(moment)}_{captures}"
    text = workflow(name) if captures else uncaptured(name)
    place.sql("INSERT INTO lake.db.copies VALUES (0, 'x')")
    run = place.operations.runs.start(place.operations.workflows.push(text).workflow_id, {})
    dying = get_context("spawn").Process(target=work_until, args=(str(place.settings.root), run.id, moment))
    dying.start()
    dying.join()
    assert dying.exitcode == -signal.SIGKILL
    assert place.copies() == ([0, 1, 2, 100, 101, 102] if moment.startswith("after") else [0])
    assert place.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    assert place.copies() == [0, 1, 2, 100, 101, 102]
    assert write_step(place, name).outputs["n"] == 6
    assert branches(place) == ["main"]


def test_foreign_commits_lead_to_redos(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.sql("INSERT INTO lake.db.copies VALUES (0, 'x')")
    publish, execute = publishing.publish, AtomicScript._execute
    numbers = iter([40, 41])

    def foreign() -> None:
        if (number := next(numbers, None)) is not None:
            place.sql(f"INSERT INTO lake.db.copies VALUES ({number}, 'y')")

    def execute_late(self: AtomicScript, session: Any, number: int, branch: str) -> Any:
        found = execute(self, session, number, branch)
        if number == 1:
            foreign()
        return found

    def publish_late(*given: Any) -> None:
        foreign()
        publish(*given)

    monkeypatch.setattr(AtomicScript, "_execute", execute_late)
    monkeypatch.setattr(publishing, "publish", publish_late)
    assert place.run(workflow("redone")) is RunStatus.SUCCEEDED
    assert place.copies() == [0, 1, 2, 40, 41, 100, 101, 102, 140, 141]
    assert branches(place) == ["main"]
    place.sql("INSERT INTO lake.db.plays VALUES (3, 'c')")
    numbers = iter(range(50, 60))
    monkeypatch.setattr(atomic, "REDOS", 1)
    once = workflow("redone").replace("platform_retry_limit: 2", "platform_retry_limit: 0")
    assert place.run(once) is RunStatus.FAILED
    assert place.copies() == [0, 1, 2, 40, 41, 50, 51, 100, 101, 102, 140, 141]
    assert "others committed to lake.db.copies each of the 2 times" in str(write_step(place, "redone").failure)


def test_what_went_astray_is_not_taken_for_published(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement of the work in the main branch is neither all of it nor somebody else's."""
    place.sql("INSERT INTO lake.db.copies VALUES (0, 'x')")
    [before] = place.sql("SELECT snapshot_id FROM lake.db.copies.snapshots")
    execute = AtomicScript._execute

    def astray(self: AtomicScript, session: Any, number: int, branch: str) -> Any:
        if number == 4:
            other = self._new_session("astray")
            other.configure(stamps.stamp(self._work, self._record.id))
            other.execute("INSERT INTO lake.db.copies VALUES (66, 'x')", 1)
            other.release()
        return execute(self, session, number, branch)

    with monkeypatch.context() as patch:
        patch.setattr(AtomicScript, "_execute", astray)
        assert place.run(workflow("astray")) is RunStatus.FAILED
    assert place.run(workflow("astray")) is RunStatus.FAILED
    assert "nobody can say whether that is all of it" in str(write_step(place, "astray").failure)
    assert place.copies() == [0, 66]
    place.sql(f"CALL lake.system.rollback_to_snapshot('db.copies', {before['snapshot_id']})")
    assert place.run(workflow("astray")) is RunStatus.SUCCEEDED
    assert place.copies() == [0, 1, 2, 100, 101, 102]
    assert branches(place) == ["main"]


def test_what_leaves_no_stamp_is_published_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.sql("INSERT INTO lake.db.copies VALUES (0, 'x')")
    script = "TRUNCATE TABLE lake.db.copies"
    with monkeypatch.context() as patch:
        patch.setattr(AtomicRecord, "end", dies)
        assert place.run(workflow("truncating", script)) is RunStatus.FAILED
    place.sql("INSERT INTO lake.db.copies VALUES (5, 'y')")
    assert place.run(workflow("truncating", script)) is RunStatus.SUCCEEDED
    assert place.copies() == [5]


def test_a_step_that_is_no_longer_atomic(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not published counts as not written; what was published cannot be begun in another way."""
    plain = workflow("changed").replace("atomic: true", "atomic: false")
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "publish", dies)
        assert place.run(workflow("changed")) is RunStatus.FAILED
    assert place.run(plain) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 101, 102]
    place.sql("INSERT INTO lake.db.plays VALUES (3, 'c')")
    with monkeypatch.context() as patch:
        patch.setattr(AtomicRecord, "end", dies)
        assert place.run(workflow("changed")) is RunStatus.FAILED
    assert place.run(plain) is RunStatus.FAILED
    assert "has changed" in str(write_step(place, "changed").failure)
    assert place.run(workflow("changed")) is RunStatus.SUCCEEDED
    assert place.copies() == [1, 2, 3, 101, 102, 103]


REFUSED = [
    ("INSERT INTO lake.db.copies SELECT 1, 'a'; INSERT INTO lake.db.days SELECT 'a'", "expected one table"),
    ("INSERT INTO lake.db.copies SELECT 1, 'a'; ALTER TABLE lake.db.copies ADD COLUMN x INT", "something else"),
    ("INSERT INTO lake.db.copies SELECT 1, 'a'; EXECUTE IMMEDIATE 'SELECT 1'", "known only when it is executed"),
    ("INSERT INTO lake.db.copies SELECT 1, 'a'; SET spark.wap.branch = b", "spark.wap"),
    ("INSERT INTO lake.db.copies.branch_b SELECT 1, 'a'", "names the branch 'b'"),
    ("INSERT INTO lake.db.copies SELECT count(*), 'a' FROM lake.db.copies.files", "shows the main branch"),
    ("INSERT INTO nowhere SELECT 1, 'a'", "not an Iceberg table"),
    ("SELECT 1", "no table"),
]


def test_refusals(place: Place) -> None:
    for script, because in REFUSED:
        assert place.run(workflow("refused", script)) is RunStatus.FAILED
        assert because in str(write_step(place, "refused").failure)
        assert place.copies() == []
