"""SQL behind captures on a real Spark: whatever fails, is edited, restarted or renamed, each row is written once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.errors import DalsegnoError
from dalsegno.model.captures import CaptureState
from dalsegno.model.runs import RestartFrom, RunStatus
from dalsegno.operations import undoing
from dalsegno.operations.facade import Operations
from dalsegno.operations.resolving import resolve
from dalsegno.operations.undoing import undo
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.operations import LostOperation
from dalsegno.steps.spark.targets import Targets
from dalsegno.store import Store
from dalsegno.store.database import Database
from tests.acceptance.test_incremental import Place
from tests.callers import admin
from tests.exact.faults import Fault, Injection, injected

pytestmark = pytest.mark.spark

#: Fails as long as the gate is empty, when it is executed: not before.
GATE = "SELECT assert_true(count(*) > 0) FROM lake.once.gate"
WRITE = "INSERT INTO lake.once.target SELECT id, day FROM ${capture.change_table}"
COUNT = "INSERT INTO lake.once.counts SELECT count(*) FROM ${capture.change_table}"


def workflow(name: str, *statements: str, step: str = "write", more: str = "", consumer: str = "") -> str:
    script = ";\n            ".join(statements)
    named = f", consumer: {consumer}" if consumer else ""
    return f"""
Workflow:
  id: {name}
  jobs:
    - job:
        id: capture
        type: IpCapture
        ip_capture: {{source_tables: [lake.once.source]{named}}}
    - job:
        id: {step}
        type: Spark
        retry_policy: {{error_retry_limit: 0, platform_retry_limit: 0}}
        spark:
          {more}
          script: |
            {script}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""


class Once(Place):
    def open_gate(self) -> None:
        self.sql("INSERT INTO lake.once.gate VALUES (1)")

    def add(self, *ids: int) -> None:
        rows = ", ".join(f"({each}, '2026-01-0{1 + each % 9}')" for each in ids)
        self.sql(f"INSERT INTO lake.once.source VALUES {rows}")

    def ids(self, table: str = "lake.once.target") -> list[object]:
        return [row["id"] for row in self.sql(f"SELECT id FROM {table} ORDER BY id")]

    def counts(self) -> list[object]:
        return [row["n"] for row in self.sql("SELECT n FROM lake.once.counts ORDER BY n")]

    def restarted(self, name: str, **where: object) -> RunStatus:
        return self.operations.runs.finish(self.operations.runs.restart(name, **where).id).status  # type: ignore[arg-type]

    def reason(self, name: str) -> str:
        return self.operations.runs.get(name).reason or ""

    def pending(self) -> str:
        with Lake.open(self.settings) as lake:
            [capture] = lake.store.captures(pending_only=True)
        return capture.id


@pytest.fixture
def once(settings: Settings) -> Iterator[Once]:
    made = Once(settings)
    made.sql(
        "CREATE NAMESPACE IF NOT EXISTS lake.once",
        *(
            f"DROP TABLE IF EXISTS lake.once.{name}"
            for name in ("source", "target", "counts", "gate", "stage", "hours")
        ),
        "CREATE TABLE lake.once.source (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)",
        "CREATE TABLE lake.once.target (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)",
        "CREATE TABLE lake.once.stage (id BIGINT, day STRING) USING iceberg",
        "CREATE TABLE lake.once.counts (n BIGINT) USING iceberg",
        "CREATE TABLE lake.once.gate (n BIGINT) USING iceberg",
    )
    yield made
    with Lake.open(settings) as lake:
        for capture in lake.store.captures(pending_only=True):
            for work in [False, True]:
                try:
                    if work:
                        undo(lake, capture.id, leave_rows=True)
                    lake.abandon(capture.id)
                    break
                except DalsegnoError:
                    continue
    made.operations.close()


MERGE = ("MERGE INTO lake.once.target t USING lake.once.stage s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",)


@pytest.mark.parametrize(
    "statements",
    [
        ("TRUNCATE TABLE lake.once.stage", WRITE.replace("target", "stage"), GATE, *MERGE),
        ("DELETE FROM lake.once.stage", WRITE.replace("target", "stage"), GATE, *MERGE),
        ("DELETE FROM lake.once.target WHERE ${capture.partition_filter}", WRITE, GATE, COUNT),
        ("USE lake.once", "INSERT INTO target SELECT id, day FROM ${capture.change_table}", GATE, COUNT),
        ("FROM ${capture.change_table} INSERT INTO lake.once.target SELECT id, day", GATE, COUNT),
        (
            "FROM ${capture.change_table} INSERT INTO lake.once.target SELECT id, day INSERT INTO lake.once.stage "
            "SELECT id, day",
            GATE,
            COUNT,
        ),
        ("INSERT INTO IDENTIFIER('lake.once.' || 'target') SELECT id, day FROM ${capture.change_table}", GATE, COUNT),
        ("DECLARE VARIABLE top BIGINT", "SET VAR top = (SELECT max(id) FROM ${capture.change_table})", WRITE, GATE,
         "INSERT INTO lake.once.counts SELECT top - top + count(*) FROM ${capture.change_table}"),
    ],
)  # fmt: skip
def test_a_failure_in_the_middle_and_a_restart(once: Once, statements: tuple[str, ...]) -> None:
    """Whatever the statements before the failure are: they are not executed again, and nothing of them is lost."""
    name = f"middle_{uuid4().hex[:8]}"
    once.add(1, 2)
    assert once.run(workflow(name, *statements)) is RunStatus.FAILED
    assert "USER_RAISED_EXCEPTION" in once.reason(name)
    once.open_gate()
    assert once.restarted(name) is RunStatus.SUCCEEDED, once.reason(name)
    assert once.ids() == [1, 2]
    if statements[-1] != MERGE[0]:
        assert once.counts() == [2]


@pytest.mark.parametrize("form", ["t.branch", "wap"])
def test_a_branch_as_target(once: Once, form: str) -> None:
    once.sql(
        "ALTER TABLE lake.once.target SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
        "ALTER TABLE lake.once.target CREATE BRANCH side",
    )
    into = "lake.once.target.branch_side" if form == "t.branch" else "lake.once.target"
    write = f"INSERT INTO {into} SELECT id, day FROM ${{capture.change_table}}"
    more = "" if form == "t.branch" else "conf: {spark.wap.branch: side}"
    once.add(1)
    text = workflow(f"branch_{form[0]}", write, GATE, COUNT, more=more)
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED
    assert once.ids("lake.once.target.branch_side") == [1]
    assert once.ids() == []


def test_a_repaired_workflow_is_refused_until_the_work_is_undone(once: Once) -> None:
    """A line in front, statements swapped, the step or the workflow renamed: nobody can tell what is missing."""
    once.add(1, 2)
    consumer = "repaired"
    assert once.run(workflow("repaired", WRITE, GATE, COUNT, consumer=consumer)) is RunStatus.FAILED
    once.open_gate()
    front = "CREATE TABLE IF NOT EXISTS lake.once.target (id BIGINT, day STRING) USING iceberg"
    edits = {
        "line in front": workflow("repaired", front, WRITE, GATE, COUNT, consumer=consumer),
        "swapped": workflow("repaired", COUNT, WRITE, consumer=consumer),
        "other wording": workflow("repaired", WRITE.replace("id, day", "id + 1, day"), COUNT, consumer=consumer),
        "step renamed": workflow("repaired", WRITE, GATE, COUNT, step="renamed", consumer=consumer),
        "workflow renamed": workflow("another", WRITE, GATE, COUNT, consumer=consumer),
    }
    for edit, text in edits.items():
        assert once.run(text) is RunStatus.FAILED, edit
        name = "another" if edit == "workflow renamed" else "repaired"
        assert "dalsegno undo" in _hint(once, name), edit
        assert (once.ids(), once.counts()) == ([1, 2], []), edit
    with Lake.open(once.settings) as lake:
        done = undo(lake, once.pending())
    assert once.ids() == []
    assert [each.target for each in done.targets] == ["lake.once.target"]
    assert once.run(edits["line in front"]) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 2], [2])


def _hint(once: Once, name: str) -> str:
    return str(once.operations.runs.steps(name))


def test_what_began_with_the_old_version_is_finished_with_it(once: Once) -> None:
    once.add(1)
    assert once.run(workflow("finished", WRITE, GATE, COUNT)) is RunStatus.FAILED
    once.open_gate()
    assert once.run(workflow("finished", WRITE.replace("id,", "id + 1,"), COUNT)) is RunStatus.FAILED
    assert once.restarted("finished/1") is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


def test_an_old_run_does_not_write_behind_what_another_has_committed(once: Once) -> None:
    text = workflow("old", "DELETE FROM lake.once.target WHERE ${capture.partition_filter}", WRITE, GATE)
    once.add(1)
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED
    assert once.restarted("old/1") is RunStatus.FAILED
    assert "was committed by run old/2" in once.reason("old/1")
    assert once.ids() == [1]
    assert once.restarted("old/1", restart=RestartFrom.BEGINNING) is RunStatus.SUCCEEDED
    assert once.ids() == [1]


def test_a_statement_in_doubt_stops_until_somebody_says(once: Once) -> None:
    """A script that failed in the middle: which of its statements were executed, nobody can tell."""
    script = (
        "BEGIN INSERT INTO lake.once.target SELECT id, day FROM ${capture.change_table}; "
        "SELECT assert_true(count(*) > 0) FROM lake.once.gate; END"
    )
    once.add(1)
    text = workflow("doubt", script, COUNT)
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.run(text) is RunStatus.FAILED
    assert "dalsegno resolve" in _hint(once, "doubt")
    assert once.ids() == [1]
    with Lake.open(once.settings) as lake:
        resolve(lake, once.pending(), is_written=True)
    assert once.run(text) is RunStatus.FAILED
    assert "cannot be resumed" in once.reason("doubt")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending(), leave_rows=True)
    once.sql("DELETE FROM lake.once.target")
    assert once.run(text) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


def test_an_idempotent_step_starts_over(once: Once) -> None:
    script = (
        "BEGIN DELETE FROM lake.once.target; INSERT INTO lake.once.target SELECT id, day FROM ${capture.change_table}; "
        "SELECT assert_true(count(*) > 0) FROM lake.once.gate; END"
    )
    once.add(1)
    text = workflow("again", script, more="idempotent: true")
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED
    assert once.ids() == [1]


def test_a_target_that_was_rolled_back_stops_the_step(once: Once) -> None:
    once.sql("INSERT INTO lake.once.target VALUES (0, 'x')")
    [before] = once.sql("SELECT snapshot_id FROM lake.once.target.snapshots")
    once.add(5)
    text = workflow("rolled", WRITE, GATE, COUNT)
    assert once.run(text) is RunStatus.FAILED
    once.sql(f"CALL lake.system.rollback_to_snapshot('once.target', {before['snapshot_id']})")
    once.open_gate()
    assert once.run(text) is RunStatus.FAILED
    assert "no longer has what it wrote" in once.reason("rolled")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending())
    assert once.run(text) is RunStatus.SUCCEEDED
    assert once.ids() == [0, 5]


def test_what_was_rolled_back_and_has_expired_is_missed(once: Once) -> None:
    """Nothing of the statement is left to be found, but its target says so: the history is complete without it."""
    once.sql("INSERT INTO lake.once.target VALUES (0, 'x')")
    [before] = once.sql("SELECT snapshot_id FROM lake.once.target.snapshots")
    once.add(5)
    text = workflow("expired", WRITE, GATE, COUNT)
    assert once.run(text) is RunStatus.FAILED
    once.sql(
        f"CALL lake.system.rollback_to_snapshot('once.target', {before['snapshot_id']})",
        "CALL lake.system.expire_snapshots(table => 'once.target', older_than => now(), retain_last => 1)",
    )
    once.open_gate()
    assert once.run(text) is RunStatus.FAILED
    assert "no longer has what it wrote" in once.reason("expired")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending())
    assert once.run(text) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([0, 5], [1])


def test_a_branch_and_the_main_branch_must_both_have_what_was_written(once: Once) -> None:
    """The newest statement wrote to a branch, which is well; that the main branch was rolled back counts as well."""
    once.sql(
        "INSERT INTO lake.once.target VALUES (0, 'x')",
        "ALTER TABLE lake.once.target CREATE BRANCH side",
    )
    [before] = once.sql("SELECT snapshot_id FROM lake.once.target.snapshots")
    once.add(5)
    text = workflow("both", WRITE, WRITE.replace("target", "target.branch_side"), GATE, COUNT)
    assert once.run(text) is RunStatus.FAILED
    once.sql(f"CALL lake.system.rollback_to_snapshot('once.target', {before['snapshot_id']})")
    once.open_gate()
    assert once.run(text) is RunStatus.FAILED
    assert "Statement 1" in once.reason("both")
    assert "was rolled back" in once.reason("both")


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE TABLE lake.once.target USING iceberg AS SELECT 9L AS id, 'q' AS day",
        "CREATE OR REPLACE TABLE lake.once.target (id BIGINT, day STRING) USING iceberg",
    ],
)
def test_a_target_that_was_replaced_and_has_expired(once: Once, change: str) -> None:
    once.sql("INSERT INTO lake.once.target VALUES (0, 'x')")
    once.add(5)
    assert once.run(workflow("replaced", WRITE, GATE)) is RunStatus.FAILED
    expire = "CALL lake.system.expire_snapshots(table => 'once.target', older_than => now(), retain_last => 1)"
    once.sql(change, expire)
    once.open_gate()
    assert once.run(workflow("replaced", WRITE, GATE)) is RunStatus.FAILED
    assert "no longer has what it wrote" in once.reason("replaced")


def test_a_table_that_a_step_made_and_others_replaced(once: Once) -> None:
    """It is missed, and what the others made is not dropped by an undo."""
    make = "CREATE TABLE lake.once.made USING iceberg AS SELECT id FROM ${capture.change_table}"
    once.sql("DROP TABLE IF EXISTS lake.once.made")
    once.add(5)
    assert once.run(workflow("makes", make, GATE)) is RunStatus.FAILED
    once.sql("CREATE OR REPLACE TABLE lake.once.made USING iceberg AS SELECT 7L AS id")
    once.open_gate()
    assert once.run(workflow("makes", make, GATE)) is RunStatus.FAILED
    assert "no longer has what it wrote" in once.reason("makes")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending())
    assert once.ids("lake.once.made") == [7]
    once.sql("DROP TABLE lake.once.made")
    assert once.run(workflow("makes", make, GATE)) is RunStatus.SUCCEEDED
    once.sql("DROP TABLE lake.once.made")


class Broken:
    """A session of Spark that fails once, in front of a statement or behind it."""

    def __init__(self, patched: pytest.MonkeyPatch, name: str, error: Exception, *, is_after: bool) -> None:
        self.execute, self.is_broken = Session.execute, False

        def broken(session: Session, statement: str, most_rows: int, named: str = "") -> object:
            if self.is_broken or named != name:
                return self.execute(session, statement, most_rows, named)
            self.is_broken = True
            if is_after:
                self.execute(session, statement, most_rows, named)
            raise error

        patched.setattr(Session, "execute", broken)


@pytest.mark.parametrize("is_executed", [False, True])
def test_a_statement_whose_answers_spark_has_lost(
    once: Once, monkeypatch: pytest.MonkeyPatch, is_executed: bool
) -> None:
    """What keeps late commits away is empty, and must not be taken for what the statement writes."""
    once.add(1, 2)
    broken = Broken(monkeypatch, "statement 1", LostOperation("statement 1"), is_after=is_executed)
    assert once.run(workflow(f"lost_{is_executed}", WRITE, COUNT)) is RunStatus.SUCCEEDED
    assert broken.is_broken
    assert (once.ids(), once.counts()) == ([1, 2], [2])


def test_an_idempotent_step_starts_over_from_its_first_statement(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark has lost the answers of its second one as well, of which nobody can tell whether it was executed."""
    once.add(1, 2)
    several = (
        "FROM ${capture.change_table} INSERT INTO lake.once.stage SELECT id, day INSERT INTO lake.once.counts SELECT 1"
    )
    into = "INSERT INTO lake.once.target SELECT id, day FROM lake.once.stage"
    text = workflow(
        "over", "TRUNCATE TABLE lake.once.stage", "TRUNCATE TABLE lake.once.target", several, into,
        more="idempotent: true",
    )  # fmt: skip
    broken = Broken(monkeypatch, "statement 3", LostOperation("statement 3"), is_after=True)
    status = once.run(text.replace("platform_retry_limit: 0", "platform_retry_limit: 3"))
    assert (status, broken.is_broken) == (RunStatus.SUCCEEDED, True), once.reason("over")
    assert once.ids() == [1, 2]


def test_an_idempotent_step_does_not_find_what_it_wrote_before_it_started_over(once: Once) -> None:
    """The stage was emptied again: that it was written once does not help."""
    once.add(1, 2)
    stage = WRITE.replace("target", "stage")
    doubt = "BEGIN SELECT assert_true(count(*) > 0) FROM lake.once.gate; END"
    text = workflow("anew", "TRUNCATE TABLE lake.once.stage", stage, doubt, *MERGE, more="idempotent: true")
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED, once.reason("anew")
    assert once.ids() == [1, 2]


def test_a_name_that_means_something_of_the_session(
    once: Once, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A temporary view comes before a table of its name: the table cannot tell what was written to the view's files."""
    once.add(1)
    text = workflow(
        "hidden",
        "USE lake.once",
        f"CREATE TEMPORARY VIEW target (id BIGINT) USING parquet OPTIONS (path '{tmp_path}')",
        "INSERT INTO target SELECT id FROM ${capture.change_table}",
    )
    with monkeypatch.context() as patched:
        Broken(patched, "statement 3", ConnectionError("lost"), is_after=True)
        assert once.run(text) is RunStatus.FAILED
    assert once.run(text) is RunStatus.FAILED
    assert "It is unknown whether" in once.reason("hidden")
    assert once.sql(f"SELECT count(*) AS n FROM parquet.`{tmp_path}`") == [{"n": 1}]


def test_a_namespace_that_needs_quotes(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    once.add(1)
    once.sql("CREATE NAMESPACE IF NOT EXISTS lake.`odd-one`", "DROP TABLE IF EXISTS lake.`odd-one`.made")
    text = workflow("odd", "USE lake.`odd-one`", "CREATE TABLE made AS SELECT id FROM ${capture.change_table}", COUNT)
    with monkeypatch.context() as patched:
        Broken(patched, "statement 2", ConnectionError("lost"), is_after=True)
        assert once.run(text) is RunStatus.FAILED
    assert once.run(text) is RunStatus.SUCCEEDED, once.reason("odd")
    assert (once.ids("lake.`odd-one`.made"), once.counts()) == ([1], [1])


def test_an_empty_snapshot_is_not_a_write_for_the_capture(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store is lost then, the targets must not say that the capture was processed."""
    for number in (1, 2):
        once.add(number)
        assert once.run(workflow("fenced", WRITE)) is RunStatus.SUCCEEDED
    once.add(3)
    with monkeypatch.context() as patched:
        Broken(patched, "statement 1", ConnectionError("lost"), is_after=False)
        assert once.run(workflow("fenced", WRITE)) is RunStatus.FAILED
    with monkeypatch.context() as patched:
        # The statement is looked for, and is about to be executed.
        Broken(patched, "statement 1", ConnectionError("lost"), is_after=False)
        assert once.run(workflow("fenced", WRITE)) is RunStatus.FAILED
    found = once.sql(
        "SELECT summary['dalsegno.fence'] IS NOT NULL AS is_fence, summary['dalsegno.captures'] AS captures "
        "FROM lake.once.target.snapshots ORDER BY committed_at DESC LIMIT 1"
    )
    assert found == [{"is_fence": True, "captures": None}]
    assert once.run(workflow("fenced", WRITE)) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 2, 3]


@pytest.fixture
def other_catalog(once: Once, tmp_path: Path) -> Path:
    """A copy of the catalog, with a row in the source."""
    once.add(1)
    copy = tmp_path / "other.db"
    with (
        closing(sqlite3.connect(once.settings.root / ".dalsegno" / "catalog.db")) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
    return copy


COPY = "INSERT INTO lake.once.target SELECT id, day FROM lake.once.source"


@pytest.mark.parametrize("way", ["conf", "SET"])
def test_a_catalog_that_a_step_defines_anew(
    once: Once, monkeypatch: pytest.MonkeyPatch, other_catalog: Path, way: str
) -> None:
    """What the step calls ``lake`` is another catalog: ours cannot tell what was written there."""
    key, value = "spark.sql.catalog.lake.uri", f"jdbc:sqlite:{other_catalog}"
    more = f"conf: {{{key}: '{value}'}}" if way == "conf" else ""
    text = workflow(f"anew_{way}", *([f"SET {key} = {value}"] if way == "SET" else []), COPY, more=more)
    with monkeypatch.context() as patched:
        Broken(patched, f"statement {1 + (way == 'SET')}", ConnectionError("lost"), is_after=True)
        assert once.run(text) is RunStatus.FAILED
    assert once.run(text) is RunStatus.FAILED
    assert "It is unknown whether" in once.reason(f"anew_{way}")
    session = Session(once.address, session_id_for(uuid4().hex))
    session.configure({key: value})
    assert session.execute("SELECT id FROM lake.once.target", 10).to_pylist() == [{"id": 1}]
    session.release()


def test_a_cluster_that_knows_another_catalog_by_the_same_name(
    once: Once, monkeypatch: pytest.MonkeyPatch, other_catalog: Path
) -> None:
    """A cluster's own definition counts there: what Spark writes does not arrive where we look for it."""
    known = once.settings.catalogs["lake"]
    ours = replace(known, uri=f"sqlite:///{other_catalog}")
    settings = replace(once.settings, spark_remote=once.address, catalogs={"lake": ours})
    once.operations.close()
    once.operations = Operations(Store.open(settings.store), settings, admin())
    with monkeypatch.context() as patched:
        Broken(patched, "statement 1", ConnectionError("lost"), is_after=True)
        assert once.run(workflow("cluster", COPY)) is RunStatus.FAILED
    assert once.run(workflow("cluster", COPY)) is RunStatus.FAILED
    assert "is not in the table that the settings name so" in once.reason("cluster")
    assert once.ids() == [1]


def test_session_variables_have_the_values_that_they_had(once: Once) -> None:
    once.sql("DROP TABLE IF EXISTS lake.once.known")
    once.sql("CREATE TABLE lake.once.known (a STRING, b BIGINT, c DOUBLE, d STRING) USING iceberg")
    statements = (
        "SET TIME ZONE 'Europe/Berlin'",
        "DECLARE VARIABLE `an odd name` STRING",
        "SET VAR `an odd name` = (SELECT concat('it''s \\\\ $', '{x} ', count(*)) FROM lake.once.target)",
        "DECLARE VARIABLE at TIMESTAMP",
        # The second time that the clocks show half past two in that night.
        "SET VAR at = (SELECT timestamp_seconds(1792891800 + count(*)) FROM lake.once.target)",
        "DECLARE VARIABLE real DOUBLE",
        "SET VAR real = (SELECT CAST('NaN' AS DOUBLE) + count(*) FROM lake.once.target)",
        "DECLARE VARIABLE nothing STRING",
        "SET VAR nothing = (SELECT CAST(nullif(count(*), 0) AS STRING) FROM lake.once.target)",
        WRITE,
        GATE,
        "INSERT INTO lake.once.known SELECT `an odd name`, unix_seconds(at), real, nothing",
    )
    once.add(1, 2)
    assert once.run(workflow("values", *statements)) is RunStatus.FAILED
    assert "USER_RAISED_EXCEPTION" in once.reason("values")
    once.open_gate()
    assert once.restarted("values") is RunStatus.SUCCEEDED, once.reason("values")
    [found] = once.sql("SELECT * FROM lake.once.known")
    assert (found["a"], found["b"], str(found["c"]), found["d"]) == ("it's \\ ${x} 0", 1792891800, "nan", None)


def test_a_variable_whose_value_cannot_be_written_down(once: Once) -> None:
    statements = (
        "DECLARE VARIABLE known ARRAY<BIGINT>",
        "SET VAR known = (SELECT collect_list(id) FROM lake.once.target)",
        WRITE,
        GATE,
        "INSERT INTO lake.once.counts SELECT size(known)",
    )
    once.add(1, 2)
    assert once.run(workflow("array", *statements)) is RunStatus.FAILED
    once.open_gate()
    assert once.restarted("array") is RunStatus.FAILED
    assert "cannot be resumed" in once.reason("array")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending())
    assert once.run(workflow("array", *statements)) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 2], [0])


def test_undo_does_not_take_away_what_others_wrote_to_a_branch(once: Once) -> None:
    once.sql("INSERT INTO lake.once.target VALUES (0, 'x')")
    once.add(1)
    assert once.run(workflow("audited", WRITE, GATE, COUNT)) is RunStatus.FAILED
    once.sql(
        "ALTER TABLE lake.once.target CREATE BRANCH audit",
        "INSERT INTO lake.once.target.branch_audit VALUES (9, 'y')",
    )
    with Lake.open(once.settings) as lake, pytest.raises(DalsegnoError, match="others have written to 'audit'"):
        undo(lake, once.pending())
    assert once.ids("lake.once.target.branch_audit") == [0, 1, 9]
    # Where nothing of others is on top, what was there before the work does not count as theirs.
    once.sql("ALTER TABLE lake.once.target CREATE OR REPLACE BRANCH audit")
    with Lake.open(once.settings) as lake:
        undo(lake, once.pending())
    assert once.ids() == [0]


def test_undo_is_refused_if_somebody_works_meanwhile(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    once.add(1)
    text = workflow("meanwhile", WRITE, GATE, COUNT)
    assert once.run(text) is RunStatus.FAILED
    planned = undoing._plan

    def slowly(*given: Any) -> Any:
        found = planned(*given)
        monkeypatch.setattr(undoing, "_plan", planned)
        assert once.restarted("meanwhile") is RunStatus.FAILED
        return found

    monkeypatch.setattr(undoing, "_plan", slowly)
    with Lake.open(once.settings) as lake, pytest.raises(DalsegnoError, match="while it was to be undone"):
        undo(lake, once.pending())
    assert once.ids() == [1]
    once.open_gate()
    assert once.restarted("meanwhile") is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


def test_what_a_person_says_is_not_written_is_ended_first(once: Once) -> None:
    """Nobody is connected to the statement any longer, but Spark goes on with it."""
    once.add(1)
    slow = (
        "INSERT INTO lake.once.target SELECT id, day FROM ${capture.change_table} "
        "WHERE reflect('java.lang.Thread', 'sleep', 3000L) IS NULL OR id > 0"
    )
    fault = Fault("connection lost during", moment="during", is_slow=True)
    with injected(Injection(fault, once.settings, seconds=1.0)):
        assert once.run(workflow("person", slow)) is RunStatus.FAILED
    with Lake.open(once.settings) as lake:
        resolve(lake, once.pending(), is_written=False)
    assert once.run(workflow("person", slow)) is RunStatus.SUCCEEDED
    assert once.ids() == [1]


def test_what_spark_refused_is_not_in_the_way_of_an_undo(once: Once) -> None:
    once.add(1)
    missing = COUNT.replace("counts", "missing")
    assert once.run(workflow("missing", WRITE, missing)) is RunStatus.FAILED
    with Lake.open(once.settings) as lake:
        done = undo(lake, once.pending())
    assert ([each.moves for each in done.targets], once.ids()) == ([("main is empty again",)], [])
    assert once.run(workflow("missing", WRITE, COUNT)) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


def test_undo_is_refused_where_others_have_written(once: Once) -> None:
    once.add(1)
    assert once.run(workflow("others", WRITE, GATE, COUNT)) is RunStatus.FAILED
    once.sql("INSERT INTO lake.once.target VALUES (9, 'y')")
    with Lake.open(once.settings) as lake, pytest.raises(DalsegnoError, match="others have written"):
        undo(lake, once.pending())
    assert once.ids() == [1, 9]
    once.open_gate()
    assert once.restarted("others") is RunStatus.SUCCEEDED
    assert once.ids() == [1, 9]


def test_captures_with_work_are_neither_cleaned_nor_abandoned(once: Once) -> None:
    once.add(1)
    text = workflow("kept", WRITE, GATE, COUNT)
    assert once.run(text) is RunStatus.FAILED
    capture_id = once.pending()
    with Lake.open(once.settings) as lake:
        later = lake.clock() + timedelta(days=1000)
        lake.clock = lambda: later
        cleaned = lake.clean()
        assert cleaned.abandoned == ()
        assert [each.partition(":")[0] for each in cleaned.kept] == [capture_id]
        with pytest.raises(DalsegnoError, match="cannot be abandoned"):
            lake.abandon(capture_id)
        with pytest.raises(DalsegnoError, match="is not finished"):
            lake.commit(capture_id)
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


TWO = """
Workflow:
  id: two
  jobs:
    - job: {id: a, type: IpCapture, ip_capture: {source_tables: [lake.once.source], when_nothing_new: continue}}
    - job: {id: b, type: IpCapture, ip_capture: {source_tables: [lake.once.stage], when_nothing_new: continue}}
    - job:
        id: write
        type: Spark
        spark:
          script: |
            INSERT INTO lake.once.target SELECT id, day FROM ${a.change_table};
            INSERT INTO lake.once.target SELECT id, day FROM ${b.change_table}
    - job: {id: commit_a, type: IpCommit, ip_commit: {capture_step: a}}
    - job:
        id: gate
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark: {script: "SELECT assert_true(count(*) > 0) FROM lake.once.gate"}
    - job: {id: commit_b, type: IpCommit, ip_commit: {capture_step: b}}
  dag: sequential
"""


def test_captures_that_a_step_consumed_together_are_committed_together(once: Once) -> None:
    once.add(1)
    once.sql("INSERT INTO lake.once.stage VALUES (2, 'x')")
    assert once.run(TWO) is RunStatus.FAILED
    with Lake.open(once.settings) as lake:
        states = {each.state for each in lake.store.captures("two")}
        assert states == {CaptureState.READY}
        with pytest.raises(DalsegnoError, match="consumed together"):
            lake.commit(lake.store.captures("two")[0].id)
    once.add(3)
    once.sql("INSERT INTO lake.once.stage VALUES (4, 'x')")
    once.open_gate()
    assert once.run(TWO) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 2]
    assert once.run(TWO) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 2, 3, 4]


CALLED = """
Workflow:
  id: called.pipeline
  jobs:
    - job:
        id: write
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark: {script: "${my_query}"}
"""
REMEDIATED = """
Workflow:
  id: remediated
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [lake.once.source]}}
    - subworkflow:
        id: normal
        workflow_id: called.pipeline
        failure_mode: IGNORE_FAILURE
        SOURCE_TABLE: ${capture.change_table}
        my_query: QUERY
    - job:
        id: recover
        type: Spark
        retry_policy: {error_retry_limit: 0}
        spark: {script: "RECOVERY"}
    - subworkflow:
        id: re_run
        workflow_id: called.pipeline
        SOURCE_TABLE: ${capture.change_table}
        my_query: QUERY
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
  dag: sequential
"""
QUERY = (
    "'INSERT INTO lake.once.target SELECT id, day FROM ${SOURCE_TABLE}; "
    "SELECT assert_true(count(*) > 0) FROM lake.once.gate; "
    "INSERT INTO lake.once.counts SELECT count(*) FROM ${SOURCE_TABLE}'"
)


def test_a_second_call_of_the_same_workflow_resumes_the_first(once: Once) -> None:
    """The seeds' own way to recover: call it, and if it fails, mend what is wrong and call it again."""
    once.operations.workflows.push(CALLED)
    once.add(1, 2)
    text = REMEDIATED.replace("QUERY", QUERY).replace("RECOVERY", "INSERT INTO lake.once.gate VALUES (1)")
    assert once.run(text) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 2], [2])


def test_a_restart_at_a_subworkflow_resumes_what_its_first_run_began(once: Once) -> None:
    once.operations.workflows.push(CALLED)
    once.add(1, 2)
    text = REMEDIATED.replace("QUERY", QUERY).replace("RECOVERY", "SELECT 1").replace("remediated", "from_sub")
    assert once.run(text) is RunStatus.FAILED
    once.open_gate()
    assert once.restarted("from_sub", restart=RestartFrom.STEP, step="normal") is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 2], [2])
    once.add(3)
    assert once.restarted("from_sub", restart=RestartFrom.STEP, step="normal") is RunStatus.FAILED
    assert once.ids() == [1, 2]


def test_parallel_runs_do_not_share_a_capture(once: Once) -> None:
    """A run that is restarted while another one works behind its capture is refused."""
    text = workflow("parallel", WRITE, GATE, COUNT).replace(
        "Workflow:", "properties: {run_strategy: PARALLEL}\nWorkflow:"
    )
    once.add(1)
    assert once.run(text) is RunStatus.FAILED
    # The second run holds the capture, and has not ended: it has not even begun to work.
    second = once.operations.runs.start("parallel", {})
    engine = once.operations.machinery.engine([second.id])
    with Lake.open(once.settings) as lake:
        lake.store.hand_over(once.pending(), "run parallel/1", "run parallel/2")
    assert engine is not None
    assert once.restarted("parallel/1") is RunStatus.FAILED
    assert "held by run parallel/2" in once.reason("parallel/1")
    once.open_gate()
    assert once.operations.runs.finish(second.id).status is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1], [1])


def test_what_the_bookkeeping_costs(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing fails: at most two transactions and one look at a catalog for each statement, and no Spark job."""
    counts = {"transactions": 0, "reads": 0, "queries": 0}
    writing, load, execute = Database.writing, Targets.load, Session.execute

    def counted_writing(self: Database) -> object:
        counts["transactions"] += threading.current_thread().name.startswith("spark-")
        return writing(self)

    def counted_load(self: Targets, *arguments: object) -> object:
        counts["reads"] += 1
        return load(self, *arguments)  # type: ignore[arg-type]

    def counted_execute(self: Session, statement: str, most_rows: int, name: str = "") -> object:
        counts["queries"] += not name
        return execute(self, statement, most_rows, name)

    once.add(1)
    for number in (1, 3):
        text = workflow(f"cost_{number}", *[WRITE] * number)
        counts.update(dict.fromkeys(counts, 0))
        with monkeypatch.context() as patched:
            patched.setattr(Database, "writing", counted_writing)
            patched.setattr(Targets, "load", counted_load)
            patched.setattr(Session, "execute", counted_execute)
            assert once.run(text) is RunStatus.SUCCEEDED
        assert 0 < counts["transactions"] <= 2 * number, counts
        assert 0 < counts["reads"] <= number, counts
        assert counts["queries"] == 0, counts


def test_sql_that_is_submitted_is_resumed(once: Once) -> None:
    """Its driver cannot reach the store: what it wrote before it failed, the targets know."""
    # Who manages the cluster would start the driver again by itself, and that would execute all of it again.
    attempts = "spark.yarn.maxAppAttempts"
    more = f"submit: true\n          conf: {{{attempts}: 3}}"
    text = workflow("submitted", f"SET {attempts}", "TRUNCATE TABLE lake.once.stage", WRITE, GATE, COUNT, more=more)
    once.add(1)
    assert once.run(text) is RunStatus.FAILED
    assert (once.ids(), once.counts()) == ([1], [])
    assert f"|{attempts}|1    |" in once.operations.runs.log("submitted", "write").text()
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED, once.reason("submitted")
    assert (once.ids(), once.counts()) == ([1], [1])
    log = once.operations.runs.log("submitted", "write").text()
    assert "statement 3 of 5 was executed for this capture before" in log


def test_the_end_of_spark_submit_is_not_the_end_of_a_driver_in_a_cluster(once: Once) -> None:
    """However the step says that it is to be there; what its driver did, somebody has to look after."""
    text = workflow("clustered", WRITE, more="submit: true\n          conf: {spark.submit.deployMode: cluster}")
    once.add(1)
    # This machine is no cluster, so that nothing is executed: but that is not what ends it in general.
    assert once.run(text) is RunStatus.FAILED
    assert once.run(text) is RunStatus.FAILED
    assert "was submitted to a cluster, and nobody heard how it ended" in once.reason("clustered")
    with Lake.open(once.settings) as lake:
        resolve(lake, once.pending(), is_written=False)
        lake.abandon(once.pending())


def test_an_older_copy_of_the_store_is_noticed(once: Once, tmp_path: Path) -> None:
    """The target has what the store does not know of: nothing is written, and the way back is named."""
    text = workflow("restored", WRITE)
    once.add(1)
    assert once.run(text) is RunStatus.SUCCEEDED
    once.operations.close()
    store = once.settings.root / ".dalsegno" / "dalsegno.db"
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    once.operations = Operations(Store.open(once.settings.store), once.settings, admin())
    once.add(2)
    assert once.run(text) is RunStatus.SUCCEEDED
    once.operations.close()
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(store)) as target:
        source.backup(target)
    once.operations = Operations(Store.open(once.settings.store), once.settings, admin())
    assert once.run(text) is RunStatus.FAILED
    assert "was an older copy of the store restored" in once.reason("restored")
    assert once.ids() == [1, 2]
    with Lake.open(once.settings) as lake:
        lake.abandon(once.pending())
        lake.rebuild_checkpoints("lake.once.target", consumer="restored")
    once.add(3)
    assert once.run(text) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 2, 3]


def test_an_overwrite_keeps_the_partitions_that_are_not_touched(once: Once) -> None:
    """Spark's own default would delete all others; who asks for that behind a capture is refused."""
    once.sql("INSERT INTO lake.once.target VALUES (0, '2020-01-01'), (9, '2026-01-02')")
    once.add(1)
    overwrite = WRITE.replace("INSERT INTO", "INSERT OVERWRITE")
    mode = "spark.sql.sources.partitionOverwriteMode"
    static = [
        workflow("static", overwrite, more=f"conf: {{{mode}: static}}"),
        workflow("static", f"SET {mode} = static", overwrite),
    ]
    for text in static:
        assert once.run(text) is RunStatus.FAILED
        assert "would delete every partition" in once.reason("static")
        assert once.ids() == [0, 9]
    assert once.run(workflow("static", overwrite)) is RunStatus.SUCCEEDED
    assert once.ids() == [0, 1]


def test_a_part_of_a_partition_is_no_single_one(once: Once) -> None:
    """In static mode, a clause that names the day alone deletes all its hours."""
    once.sql("CREATE TABLE lake.once.hours (id BIGINT, day STRING, hour INT) USING iceberg PARTITIONED BY (day, hour)")
    once.sql("INSERT INTO lake.once.hours VALUES (0, 'd', 0)")
    once.add(1)
    mode = "conf: {spark.sql.sources.partitionOverwriteMode: static}"
    overwrite = "INSERT OVERWRITE lake.once.hours PARTITION (%s) SELECT id%s FROM ${capture.change_table}"
    assert once.run(workflow("hours", overwrite % ("day = 'd'", ", 1"), more=mode)) is RunStatus.FAILED
    assert "would delete every partition" in once.reason("hours")
    assert once.run(workflow("hours", overwrite % ("day = 'd', hour = 1", ""), more=mode)) is RunStatus.SUCCEEDED
    assert once.ids("lake.once.hours") == [0, 1]
