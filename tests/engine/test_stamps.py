"""Jobs that write for captures themselves: what they are told and write once, and checkpoints read back from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dalsegno import Lake
from dalsegno.capture.rebuilding import Action
from dalsegno.errors import CapturePending
from dalsegno.operations.undoing import undo
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, step
from tests.engine.test_incremental import SCHEMA, append, capture, commit, job, text

#: Appends what is new, and dies if it is told to, before anybody knows that it has.
APPENDING = """
import os, signal
from pathlib import Path
from dalsegno import Lake, job

here = Path("{folder}")
with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    rows = catalog.load_table(job.change_table("plays").removeprefix("lake.")).scan().to_arrow()
    target = catalog.load_table("db.copies")
    with job.write(target) as write:
        if write:
            target.append(rows, snapshot_properties=write.stamp)
if (here / "die").exists():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    with Lake.open(place.operations.settings) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        for name in ("db.plays", "db.copies", "db.others"):
            opened.catalog("lake").pyiceberg.create_table(name, SCHEMA)
        yield opened


def python(place: Place, script: str, *then: str) -> Json:
    block = {"python": {"type": "MAP", "value": {"script": text(script.replace("{folder}", str(place.folder)))}}}
    retries = {"error_retry_limit": 0, "platform_retry_limit": 0}
    return step("write", "Python", *then, params=block, retry_policy=retries)


def ids(lake: Lake, table: str = "db.copies") -> list[int]:
    rows = lake.catalog("lake").pyiceberg.load_table(table).scan().to_arrow()
    found: list[int] = sorted(rows["id"].to_pylist())
    return found


def test_what_a_job_is_told(place: Place, lake: Lake) -> None:
    script = "cp $DALSEGNO_CAPTURES captures.json; printenv > env"
    place.push("w", capture("write", range_columns="id"), job(place, "commit", script=script), commit())
    append(lake, 7, 9)
    assert place.run("w").status is SUCCEEDED
    [done] = lake.store.captures()
    told = json.loads((place.folder / "captures.json").read_text())
    [known] = told["captures"]
    [table] = known["tables"]
    assert (known["id"], known["consumer"]) == (done.id, "w")
    assert (table["source"], table["change_table"]) == ("lake.db.plays", str(done.tables[0].change_table))
    assert (table["after_snapshot"], table["upto_snapshot"]) == (None, str(done.tables[0].upto.snapshot_id))
    assert (table["rows"], table["files"], table["ranges"]["id"]["max"]) == (2, 1, 9)
    assert told["stamp"]["dalsegno.captures"] == done.id
    assert told["steps"] == [{"workflow": "w", "step": name} for name in ("capture", "commit", "write")]
    assert (told["has_all_steps"], known["created_at"]) == (True, done.created_at.isoformat())
    assert json.loads(told["stamp"]["dalsegno.ranges"])[0]["upto"] == table["upto_snapshot"]


def test_a_step_without_a_capture_is_told_of_none(place: Place) -> None:
    place.push("w", job(place, script="printenv > env"))
    assert place.run("w").status is SUCCEEDED
    assert "DALSEGNO_CAPTURES" not in (place.folder / "env").read_text()


def test_an_append_is_not_repeated(place: Place, lake: Lake) -> None:
    """The job was killed after it had appended, and before anybody knew."""
    place.push("w", capture("write"), python(place, APPENDING, "commit"), commit())
    append(lake, 1, 2)
    (place.folder / "die").touch()
    failed = place.run("w")
    assert (failed.status, ids(lake)) == (FAILED, [1, 2])
    append(lake, 3)
    (place.folder / "die").unlink()
    assert place.finish(place.operations.runs.restart(failed.id)).status is SUCCEEDED
    assert ids(lake) == [1, 2]
    assert not lake.store.captures(pending_only=True)


class Writer:
    """Processes what is new by hand, as a step does that stamps what it writes."""

    def __init__(self, place: Place, lake: Lake) -> None:
        self.place, self.lake = place, lake
        script = f"cp $DALSEGNO_CAPTURES {place.folder}/captures.json"
        place.push("w", capture("write"), job(place, "commit", script=script), commit())

    def run(self, *targets: str) -> dict[str, str]:
        assert self.place.run("w").status is SUCCEEDED
        stamp: dict[str, str] = json.loads((self.place.folder / "captures.json").read_text())["stamp"]
        self.write(stamp, *targets)
        return stamp

    def write(self, stamp: dict[str, str], *targets: str) -> None:
        rows = self.lake.catalog("lake").pyiceberg.load_table("db.plays").scan().to_arrow().slice(0, 1)
        for target in targets:
            self.lake.catalog("lake").pyiceberg.load_table(target).append(rows, snapshot_properties=stamp)


def lost_store(place: Place) -> Lake:
    """The same tables, and a store that knows nothing."""
    for file in (place.folder / ".dalsegno").glob("dalsegno.db*"):
        file.unlink()
    return Lake.open(place.operations.settings)


def test_jobs_of_a_lost_store_are_not_taken_for_new_ones(place: Place) -> None:
    place.push("w", job(place, script="echo ran >> out"))
    assert place.run("w").status is SUCCEEDED
    place.operations.close()
    lost_store(place).close()
    again = Place.at(place.folder)
    again.push("w", job(place, script="echo again | tee -a out"))
    run = again.run("w")
    assert (run.status, run.number, place.lines()) == (SUCCEEDED, 1, ["ran", "again"])
    assert again.operations.runs.log("w", "write").text() == "again\n"
    again.operations.close()


def test_checkpoints_are_read_back(place: Place, lake: Lake) -> None:
    writer = Writer(place, lake)
    for each in (1, 2, 3):
        append(lake, each)
        writer.run("db.copies", "db.others")
    [expected] = lake.checkpoints("w")
    assert lake.rebuild_checkpoints("db.copies").checkpoints[0].action is Action.KEPT
    place.operations.close()
    with lost_store(place) as again:
        looked = again.rebuild_checkpoints("db.copies", "db.others", is_dry_run=True)
        assert not again.checkpoints()
        [found] = again.rebuild_checkpoints("db.copies", "db.others").checkpoints
        assert looked.checkpoints == (found,)
        assert (found.action, found.captures, found.stored) == (Action.SET, 3, None)
        [mark] = again.checkpoints()
        assert (mark.consumer, mark.table, mark.position) == ("w", expected.table, expected.position)
        assert mark.reason == f"rebuilt from lake.db.copies, lake.db.others: capture {found.capture_id}"
        assert mark.moved_by == again.actor
        # An older one is moved on, a newer one never back.
        again.set_checkpoint("db.plays", consumer="w", to="earliest", reprocess=True)
        assert again.rebuild_checkpoints("db.copies").checkpoints[0].action is Action.SET
        append(again, 4)
        again.set_checkpoint("db.plays", consumer="w", to="latest")
        assert again.rebuild_checkpoints("db.copies").checkpoints[0].action is Action.KEPT
        assert not again.rebuild_checkpoints("db.copies", consumer="other").checkpoints
        # Not while a capture holds the checkpoint where it is.
        again.set_checkpoint("db.plays", consumer="w", to="earliest", reprocess=True)
        pending = again.capture("db.plays", consumer="w")
        [refused] = again.rebuild_checkpoints("db.copies").checkpoints
        assert (refused.refusal or {})["code"] == CapturePending.__name__
        pending.abandon()


def test_what_targets_do_not_tell(place: Place, lake: Lake) -> None:
    writer = Writer(place, lake)
    append(lake, 1)
    first = writer.run("db.copies", "db.others")
    append(lake, 2)
    writer.run("db.copies")

    def refusal(*targets: str) -> str:
        [found] = lake.rebuild_checkpoints(*targets, is_dry_run=True).checkpoints
        return str((found.refusal or {}).get("message"))

    assert "but not what the captures before it wrote to lake.db.others" in refusal("db.copies", "db.others")
    # Rolled back, as it says, the second capture is in no target.
    table = lake.catalog("lake").pyiceberg.load_table("db.copies")
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    found = lake.rebuild_checkpoints("db.copies", "db.others", is_dry_run=True).checkpoints[0]
    assert (found.capture_id, found.captures, found.refusal) == (first["dalsegno.captures"], 1, None)
    # Another source of the same name, or none.
    lake.catalog("lake").pyiceberg.drop_table("db.plays")
    assert "lake.db.plays" in refusal("db.copies")
    lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
    assert "was dropped and created anew" in refusal("db.copies")
    lake.catalog("lake").pyiceberg.create_table("db.empty", SCHEMA)
    assert lake.rebuild_checkpoints("db.empty").checkpoints == ()


def test_parts_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``job`` answers from the file alone, for any engine."""
    from dalsegno import job as own

    tables = [{"source": "lake.db.plays", "change_table": "lake.icdc.p"}]
    tables += [{"source": "lake.db.more_plays", "change_table": "lake.icdc.m"}]
    stamp = {"dalsegno.captures": "a", "dalsegno.workflow": "w", "dalsegno.place": "write", "dalsegno.unit": "u"}
    told: dict[str, Any] = {"stamp": stamp, "captures": [{"id": "a", "consumer": "w", "tables": tables}]}
    assert (own.captures(), own.is_written([stamp])) == ([], False)
    (tmp_path / "captures.json").write_text(json.dumps(told))
    monkeypatch.setenv("DALSEGNO_CAPTURES", str(tmp_path / "captures.json"))
    assert [own.change_table(name) for name in ("plays", "db.plays", "lake.db.more_plays")] == [
        "lake.icdc.p",
        "lake.icdc.p",
        "lake.icdc.m",
    ]
    for name in (None, "lays"):
        with pytest.raises(LookupError, match=r"found captures of lake\.db\.plays, lake\.db\.more_plays"):
            own.change_table(name)
    # Another step may have called the same workflow.
    assert own.is_written([{"operation": "append"}, {**stamp, "dalsegno.place": "re_run/write", "dalsegno.run": "7"}])
    assert not own.is_written([{**stamp, "dalsegno.captures": "b", "dalsegno.unit": "v"}])
    assert own.stamp(2) == {**stamp, "dalsegno.statement": "2"}
    assert own.is_written([own.stamp(2)], part=2)
    assert not own.is_written([own.stamp(2)], part=1)
    for summary, part in ((own.stamp(2), None), (stamp, 2)):
        with pytest.raises(own.TargetError, match="whether these are the same rows is unknown"):
            own.is_written([summary], part=part)
    with pytest.raises(TypeError, match=r"job\.write needs"), own.write([stamp]):
        pass


def test_what_was_undone_does_not_count_as_written(place: Place, lake: Lake) -> None:
    """Rows were taken back without a rollback, so that their snapshot is still there: nobody may take it for theirs."""
    place.push("w", capture("write"), python(place, APPENDING, "commit"), commit())
    target = lake.catalog("lake").pyiceberg.load_table("db.copies")
    target.append(target.scan().to_arrow())
    base = target.metadata.current_snapshot_id
    append(lake, 1, 2)
    (place.folder / "die").touch()
    assert place.run("w").status is FAILED
    assert ids(lake) == [1, 2]
    (place.folder / "die").unlink()
    target.refresh().delete("id > 0")
    [pending] = lake.store.captures(pending_only=True)
    undo(lake, pending.id, leave_rows=True)
    assert place.run("w").status is FAILED
    assert "was written for the same capture" in place.operations.runs.log("w", "write").text()
    assert base is not None
    target.refresh().manage_snapshots().set_current_snapshot(base).commit()
    assert place.run("w").status is SUCCEEDED
    assert ids(lake) == [1, 2]
