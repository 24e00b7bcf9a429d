"""SQL behind captures on a real Spark: whatever fails, is edited, restarted or renamed, each row is written once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.errors import DalsegnoError
from dalsegno.model.captures import CaptureState
from dalsegno.model.runs import RestartFrom, RunStatus
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.operations.resolving import resolve
from dalsegno.operations.undoing import undo
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session
from dalsegno.steps.spark_targets import Targets
from dalsegno.store import Store
from dalsegno.store.database import Database
from tests.acceptance.test_incremental import Place

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
        return self.orchestrator.finish(self.orchestrator.restart(name, **where).id).status  # type: ignore[arg-type]

    def reason(self, name: str) -> str:
        return self.orchestrator.run(name).reason or ""

    def pending(self) -> str:
        with Lake.open(self.settings) as lake:
            [capture] = lake.store.captures(pending_only=True)
        return capture.id


@pytest.fixture
def once(settings: Settings) -> Iterator[Once]:
    made = Once(settings)
    made.sql(
        "CREATE NAMESPACE IF NOT EXISTS lake.once",
        *(f"DROP TABLE IF EXISTS lake.once.{name}" for name in ("source", "target", "counts", "gate", "stage")),
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
    made.orchestrator.close()


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
    return str(once.orchestrator.steps(name))


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
    once.orchestrator.push(CALLED)
    once.add(1, 2)
    text = REMEDIATED.replace("QUERY", QUERY).replace("RECOVERY", "INSERT INTO lake.once.gate VALUES (1)")
    assert once.run(text) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 2], [2])


def test_a_restart_at_a_subworkflow_resumes_what_its_first_run_began(once: Once) -> None:
    once.orchestrator.push(CALLED)
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
    second = once.orchestrator.start("parallel", {})
    engine = once.orchestrator.engine([second.id])
    with Lake.open(once.settings) as lake:
        lake.store.hand_over(once.pending(), "run parallel/1", "run parallel/2")
    assert engine is not None
    assert once.restarted("parallel/1") is RunStatus.FAILED
    assert "held by run parallel/2" in once.reason("parallel/1")
    once.open_gate()
    assert once.orchestrator.finish(second.id).status is RunStatus.SUCCEEDED
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
    text = workflow("submitted", "TRUNCATE TABLE lake.once.stage", WRITE, GATE, COUNT, more="submit: true")
    once.add(1)
    assert once.run(text) is RunStatus.FAILED
    assert (once.ids(), once.counts()) == ([1], [])
    once.open_gate()
    assert once.run(text) is RunStatus.SUCCEEDED, once.reason("submitted")
    assert (once.ids(), once.counts()) == ([1], [1])
    log = once.orchestrator.log_file("submitted", "write").read_text()
    assert "statement 2 of 4 was executed for this capture before" in log


def test_an_older_copy_of_the_store_is_noticed(once: Once, tmp_path: Path) -> None:
    """The target has what the store does not know of: nothing is written, and the way back is named."""
    text = workflow("restored", WRITE)
    once.add(1)
    assert once.run(text) is RunStatus.SUCCEEDED
    once.orchestrator.close()
    store = once.settings.root / ".dalsegno" / "dalsegno.db"
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    once.orchestrator = Orchestrator(once.settings, Store.open(once.settings.store), actor="ada")
    once.add(2)
    assert once.run(text) is RunStatus.SUCCEEDED
    once.orchestrator.close()
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(store)) as target:
        source.backup(target)
    once.orchestrator = Orchestrator(once.settings, Store.open(once.settings.store), actor="ada")
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
