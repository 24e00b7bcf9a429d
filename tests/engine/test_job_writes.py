"""``job.is_written`` and ``job.write`` on real tables: what they find, what they refuse, what they check at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from dalsegno import Lake
from dalsegno import job as own
from dalsegno.errors import UserError
from dalsegno.model.runs import RestartFrom
from dalsegno.steps.spark.sessions import catalog_conf
from tests.engine.support import FAILED, SUCCEEDED, Place, foreach, shell, subworkflow
from tests.engine.test_incremental import SCHEMA, append, capture, commit
from tests.engine.test_stamps import ids, python
from tests.services.catalogs import add_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table({"id": [1], "day": ["2026-01-01"]}, schema=SCHEMA)


@dataclass
class Job:
    """What a step is told; ``tell`` tells another one."""

    folder: Path

    def tell(self, attempt: str = "1", **stamp: str) -> dict[str, str]:
        named = {"workflow": "w", "step": "write", "place": "write", "captures": "a,b", "unit": "u", **stamp}
        told = {f"dalsegno.{name}": value for name, value in {**named, "attempt": f"w.{attempt}"}.items()}
        made_at = datetime.now(UTC) - timedelta(minutes=1)
        captures = [{"id": each, "created_at": made_at.isoformat()} for each in named["captures"].split(",")]
        steps = [{"workflow": "w", "step": each} for each in ("write", "clean")]
        content = {"stamp": told, "captures": captures, "steps": steps, "has_all_steps": True}
        (self.folder / "captures.json").write_text(json.dumps(content))
        return told

    def no_longer_knows(self) -> None:
        """Which workflow is called is not known before a run."""
        file = self.folder / "captures.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "has_all_steps": False}))

    @property
    def failure(self) -> str | None:
        file = self.folder / "output"
        found: str | None = json.loads(file.read_text())["dalsegno_failure"] if file.exists() else None
        file.unlink(missing_ok=True)
        return found


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("DALSEGNO_CAPTURES", str(tmp_path / "captures.json"))
    monkeypatch.setenv("DALSEGNO_OUTPUT", str(tmp_path / "output"))
    job = Job(tmp_path)
    job.tell()
    return job


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    with Lake.open(place.operations.settings) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        for name in ("db.plays", "db.copies"):
            opened.catalog("lake").pyiceberg.create_table(name, SCHEMA)
        yield opened


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.catalog("lake").pyiceberg.load_table("db.copies")
    made.append(ROWS)
    return made


def test_branches_and_rollbacks(told: Job, table: Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    stale = table.catalog.load_table("db.copies")
    table.manage_snapshots().create_branch(first.snapshot_id, "audit").commit()
    table.append(ROWS, snapshot_properties=own.stamp(), branch="audit")
    found = [own.is_written(stale), own.is_written(stale, branch="audit"), own.is_written(stale, branch="main")]
    assert found == [True, True, False]
    # Published, and the branch dropped: whoever names it finds it all the same.
    head = table.metadata.refs["audit"].snapshot_id
    table.manage_snapshots().remove_branch("audit").commit()
    assert not own.is_written(table)
    table.manage_snapshots().set_current_snapshot(head).commit()
    assert own.is_written(table, branch="audit")
    # Held for a consumer, and rolled back.
    table.manage_snapshots().create_branch(head, "dalsegno_daily").commit()
    table.manage_snapshots().set_current_snapshot(first.snapshot_id).commit()
    assert not own.is_written(table)
    assert not own.is_written(table, branch="main")


def test_a_copy_of_an_expired_snapshot_may_be_ours(told: Job, table: Table) -> None:
    """What is cherry-picked has no stamp; and what it was made of has expired."""
    assert not own.is_written(table)
    table.append(ROWS, snapshot_properties={"source-snapshot-id": str(table.metadata.current_snapshot_id)})
    assert not own.is_written(table)
    table.append(ROWS, snapshot_properties={"source-snapshot-id": "17"})
    with pytest.raises(own.TargetError, match="made of snapshot 17, which has expired"):
        own.is_written(table)


def test_what_another_step_wrote_for_the_same_capture(told: Job, table: Table) -> None:
    def wrote(**stamp: str) -> int:
        table.append(ROWS, snapshot_properties=told.tell(**stamp))
        head = table.current_snapshot()
        assert head is not None
        return head.snapshot_id

    base = wrote(captures="c", unit="other")
    wrote(step="clean", place="clean", unit="v")
    told.tell()
    assert not own.is_written(table)
    for stamp, said in (
        (
            {"step": "load", "place": "load", "unit": "x"},
            "by step 'load' of w, which the running version does not have",
        ),
        ({"captures": "b", "workflow": "older", "unit": "y"}, "by step 'write' of older, which the running version"),
        ({"captures": "a,c", "unit": "z"}, "this step, with other parameters or together with other captures"),
    ):
        snapshot_id = wrote(**stamp)
        told.tell()
        with pytest.raises(
            own.TargetError, match=rf"Snapshot {snapshot_id} of db\.copies .*{said}.* roll db\.copies back"
        ):
            own.is_written(table)
        with pytest.raises(own.TargetError), own.write(table):
            pytest.fail("in doubt nothing is written")
        if "workflow" in stamp:
            told.no_longer_knows()
            assert not own.is_written(table)
        table.manage_snapshots().set_current_snapshot(base).commit()
        told.tell()
        assert not own.is_written(table)


def test_what_cannot_be_told(told: Job, table: Table) -> None:
    assert not own.is_written(table)
    for _ in range(2):
        table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[1].snapshot_id).commit()
    with pytest.raises(own.TargetError, match=r"db\.copies has no snapshot from before the capture any more"):
        own.is_written(table)
    Path(table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(own.TargetError, match=r"db\.copies could not be read"):
        own.is_written(table)
    for wrong in ("lake.db.copies", object()):
        with pytest.raises(TypeError):
            own.is_written(wrong)


def test_a_write(told: Job, table: Table) -> None:
    def written() -> int:
        return len(table.scan().to_arrow())

    with own.write(table) as write:
        if write:
            table.append(ROWS, snapshot_properties=write.stamp)
    assert (written(), own.is_written(table)) == (2, True)
    # A second write of the same attempt, which names no part of its own.
    with pytest.raises(own.TargetError, match=r"This attempt has written part 'write' to db\.copies already"):
        own.write(table).__enter__()
    told.tell(attempt="2", run="7")
    with own.write(table) as write:
        assert not write
        with pytest.raises(own.TargetError, match="if write:"):
            table.append(ROWS, snapshot_properties=write.stamp)
    with own.write(table, part="late") as write:
        table.overwrite(ROWS, snapshot_properties=write.stamp)
    assert (written(), own.is_written(table, part="late"), own.is_written(table, part=2)) == (1, True, False)
    with pytest.raises(ZeroDivisionError), own.write(table, part=2) as write:
        raise ZeroDivisionError
    with own.write(table, part=2) as write:
        write.nothing()
    assert told.failure is None
    # Behind no capture there is nothing to look for, and nothing to check.
    (told.folder / "captures.json").write_text("{}")
    with own.write(table) as write:
        assert write


def test_writes_that_went_wrong(told: Job, table: Table) -> None:
    """The step must not be tried again by itself: it would write once more."""

    def failing(match: str, body: Callable[[own.Write], object], part: str | None = None) -> None:
        branch = part and "b"
        with pytest.raises(own.TargetError, match=match) as raised, own.write(table, part=part, branch=branch) as write:
            body(write)
        assert told.failure == str(raised.value)

    def add(stamp: dict[str, str]) -> None:
        table.append(ROWS, snapshot_properties=stamp)

    def roll_back() -> None:
        table.manage_snapshots().set_current_snapshot(table.metadata.snapshots[0].snapshot_id).commit()

    failing(r"Nothing was written to db\.copies", bool)
    failing("No new snapshot of db.copies has the stamp", lambda _: add({}))
    failing("without naming a part, and now asks for part 'write'", lambda _: add(own.stamp()))
    roll_back()
    table.manage_snapshots().create_branch(table.metadata.snapshots[0].snapshot_id, "b").commit()
    failing("No new snapshot of db.copies has the stamp", lambda write: add(write.stamp), part="to the branch")
    roll_back()
    failing("several commits", lambda write: any(map(add, [write.stamp] * 2)))
    told.tell(attempt="2")
    failing("has them again", lambda _: add(own.stamp("write")))


COPY = """
from pathlib import Path
from dalsegno import Lake, job

with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    rows = catalog.load_table(job.change_table("plays").removeprefix("lake.")).scan().to_arrow()
    target = catalog.load_table("db.copies")
    with job.write(target) as write:
        if write:
            target.append(rows, snapshot_properties=write.stamp)
if Path("{folder}/fail").exists():
    raise SystemExit(1)
"""


def test_a_second_caller_of_a_workflow_does_not_write_again(place: Place, lake: Lake) -> None:
    """As in a pipeline that repairs itself: another step calls the same workflow if the first call fails."""
    (place.folder / "fail").touch()
    place.push("load", python(place, COPY))
    normal = subworkflow("normal_workflow", "load", "repair", failure_mode="IGNORE_FAILURE")
    repair = shell("repair", f"rm {place.folder}/fail", "re_run")
    place.push("w", capture("normal_workflow"), normal, repair, subworkflow("re_run", "load", "commit"), commit())
    append(lake, 1, 2)
    assert place.run("w").status is SUCCEEDED
    assert not (place.folder / "fail").exists()
    assert ids(lake) == [1, 2]
    assert not lake.store.captures(pending_only=True)


def test_a_renamed_step_does_not_write_again(place: Place, lake: Lake) -> None:
    (place.folder / "fail").touch()
    place.push("w", capture("write"), python(place, COPY, "commit"), commit())
    append(lake, 1)
    assert place.run("w").status is FAILED
    (place.folder / "fail").unlink()
    renamed = python(place, COPY, "commit")
    renamed["step"]["id"] = "load"
    place.push("w", capture("load"), renamed, commit())
    run = place.run("w")
    assert (run.status, ids(lake)) == (FAILED, [1])
    assert "the work of step 'write' of w was begun" in (run.reason or "")
    place.push("w", capture("write"), python(place, COPY, "commit"), commit())
    assert (place.run("w").status, ids(lake)) == (SUCCEEDED, [1])


def test_a_restart_with_another_version_does_not_write_again(place: Place, lake: Lake) -> None:
    """It is checked as a new run would be: the run itself has begun the work, but with another version."""
    (place.folder / "fail").touch()
    place.push("w", capture("write"), python(place, COPY, "commit"), commit())
    append(lake, 1)
    failed = place.run("w")
    (place.folder / "fail").unlink()
    renamed = python(place, COPY, "commit")
    renamed["step"]["id"] = "load"
    for restart in (RestartFrom.INCOMPLETE, RestartFrom.BEGINNING):
        place.push("w", capture("load"), renamed, commit())
        again = place.finish(place.operations.runs.restart(failed.id, version="latest", restart=restart))
        assert (again.status, ids(lake)) == (FAILED, [1])
        assert "the work of step 'write' of w was begun" in (again.reason or "")
    place.push("w", capture("write"), python(place, COPY, "commit"), commit())
    assert place.finish(place.operations.runs.restart(failed.id, version="latest")).status is SUCCEEDED
    assert ids(lake) == [1]
    assert not lake.store.captures(pending_only=True)


def test_a_capture_that_is_another_one_is_not_taken_over(place: Place, lake: Lake) -> None:
    (place.folder / "fail").touch()
    place.push("w", capture("write"), python(place, COPY, "commit"), commit())
    append(lake, 1)
    failed = place.run("w")
    place.push("w", capture("write", tables=("db.copies",)), python(place, COPY, "commit"), commit())
    with pytest.raises(UserError, match="'capture' has completed, and captures or commits something else"):
        place.operations.runs.restart(failed.id, version="latest")


def test_iterations_write_each_their_own(place: Place, lake: Lake) -> None:
    (place.folder / "fail").touch()
    place.push("w", capture("each"), foreach("each", [1, 2], [python(place, COPY)], "commit"), commit())
    append(lake, 1)
    assert place.run("w").status is FAILED
    (place.folder / "fail").unlink()
    assert place.run("w").status is SUCCEEDED
    assert ids(lake) == [1, 1]


def test_a_job_that_forgets_the_stamp_is_not_tried_again(place: Place, lake: Lake) -> None:
    forgetting = python(place, COPY.replace(", snapshot_properties=write.stamp", ""), "commit")
    backoff = {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 0}
    forgetting["step"]["retry_policy"] = {"error_retry_limit": 2, "backoff": backoff}
    place.push("w", capture("write"), forgetting, commit())
    append(lake, 1)
    run = place.run("w")
    assert (run.status, ids(lake)) == (FAILED, [1])
    assert "No new snapshot of db.copies has the stamp" in str(place.steps(run)["write"].failure)


@pytest.fixture
def session(place: Place, spark: SparkSession) -> SparkSession:
    """A session of its own, which knows the catalog of the place."""
    session = spark.newSession()
    known, prefix = catalog_conf(place.operations.settings).items(), "spark.sql.catalog.lake."
    add_catalog(session, "lake", {key.removeprefix(prefix): value for key, value in known if key.startswith(prefix)})
    return session


@pytest.mark.spark
def test_a_write_by_spark(told: Job, table: Table, session: SparkSession) -> None:
    name = "lake.db.copies"
    added = f"INSERT INTO {name} VALUES (2, 'x')"
    unit = "spark.sql.iceberg.snapshot-property.dalsegno.unit"
    for expected in (True, False):
        with own.write((session, name)) as write:
            assert bool(write) is expected
            if write:
                session.sql(added)
        told.tell(attempt="2")
    assert (own.is_written(session, name), session.conf.get(unit, None)) == (True, None)
    # What the session itself stamps, as dalsegno's does, is not taken for this write, and is there again afterwards.
    session.conf.set(unit, "session")
    with own.write((session, name), part="late") as write:
        session.table(name).limit(1).writeTo(name).append()
    assert (session.conf.get(unit), own.is_written(session, name, part="late")) == ("session", True)
    with pytest.raises(own.TargetError, match="several commits"), own.write((session, name), part="both"):
        session.sql(f"UPDATE {name} SET day = 'y' WHERE id = 2")
        session.sql(added)
    session.conf.unset(unit)
    with pytest.raises(own.TargetError, match="No new snapshot"), own.write((session, name), part="elsewhere"):
        table.refresh().append(ROWS)
    # The session of a step is stamped from the beginning, so what it wrote before it asked is no answer.
    for key, value in told.tell(attempt="3", unit="scripted", place="other").items():
        session.conf.set(f"spark.sql.iceberg.snapshot-property.{key}", value)
    assert not own.is_written(session, name)
    session.sql(added)
    assert own.is_written(session, name)
    with pytest.raises(own.TargetError, match="before it asked whether it has written"):
        own.is_written(session, f"{name}.branch_main")
    told.tell(attempt="4", unit="scripted", place="other")
    assert own.is_written(session, f"{name}.branch_main")
    for key in told.tell(attempt="2"):
        session.conf.unset(f"spark.sql.iceberg.snapshot-property.{key}")
    # A driver on another machine has no file, but a configuration.
    session.conf.set("spark.dalsegno.captures", (told.folder / "captures.json").read_text())
    (told.folder / "captures.json").write_text("{}")
    assert own.is_written(session, name, part="late")
    with own.write((session, name), part="cluster") as write:
        session.sql(added)
    assert own.is_written(session, name, part="cluster")
    told.tell(attempt="2")
    # What others wrote is seen, though the session remembers the table.
    table.append(ROWS, snapshot_properties=own.stamp("other"))
    assert own.is_written((session, name), part="other")


@pytest.mark.spark
def test_names_that_spark_knows(told: Job, table: Table, lake: Lake, session: SparkSession) -> None:
    session.sql("ALTER TABLE lake.db.copies CREATE BRANCH audit")
    session.sql("CREATE TABLE lake.db.branch_audit (id BIGINT) USING iceberg")
    session.sql("USE lake.db")
    with own.write((session, "db.copies.branch_audit")) as write:
        assert write
        session.sql("INSERT INTO db.copies.branch_audit VALUES (2, 'x')")
    names = ("copies", "db.copies.branch_audit", "lake.`db`.copies", "db.copies.branch_main", "branch_audit")
    assert [own.is_written(session, name) for name in names] == [True, True, True, False, False]
    with pytest.raises(own.TargetError, match="missing_ok=True"):
        own.is_written(session, "db.renamed")
    with own.write((session, "db.new"), missing_ok=True):
        session.table("copies").writeTo("db.new").create()
    assert own.is_written(session, "db.new", missing_ok=True)
    # The catalog names a file that is gone.
    Path(lake.catalog("lake").pyiceberg.load_table("db.new").metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(own.TargetError, match=r"db\.new could not be read.*metadata\.json") as unreadable:
        own.is_written(session, "db.new", missing_ok=True)
    assert "missing_ok" not in str(unreadable.value)


@pytest.mark.spark
def test_staged_snapshots(told: Job, table: Table, session: SparkSession) -> None:
    name = "lake.db.copies"
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")

    def stage(wap_id: str) -> None:
        session.conf.set("spark.wap.id", wap_id)
        try:
            with own.write((session, name), part=wap_id):
                session.sql(f"INSERT INTO {name} VALUES (3, 'x')")
        finally:
            session.conf.unset("spark.wap.id")
        assert own.is_written(session, name, part=wap_id)
        assert own.is_written(table, part=wap_id)

    head = table.metadata.current_snapshot_id
    # Published as it is, or as another snapshot because the table has moved on; then rolled back.
    for wap_id, moves_on in (("as it is", False), ("another", True)):
        stage(wap_id)
        if moves_on:
            session.sql(f"INSERT INTO {name} VALUES (4, 'x')")
        session.sql(f"CALL lake.system.publish_changes('db.copies', '{wap_id}')")
        assert own.is_written(session, name, part=wap_id)
        session.sql(f"CALL lake.system.rollback_to_snapshot('db.copies', {head})")
        assert not own.is_written(session, name, part=wap_id)
        assert not own.is_written(table, part=wap_id)
