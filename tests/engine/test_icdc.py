"""Workflows whose capture has a table of the same name in every run, and whose checkpoint moves with the run."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.clock import utc_now
from dalsegno.errors import InvalidWorkflow, PlatformError
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.model.runs import RestartFrom
from tests.engine.dying import NEVER, start_and_work
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, foreach, noop, step
from tests.engine.test_control import going_on
from tests.engine.test_incremental import SCHEMA, append, commit, give_up, job, text
from tests.steps.support import until
from tests.store.crashes import killed_at

TARGET = "db.plays_icdc"


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    with Lake.open(place.operations.settings) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        opened.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
        yield opened


def icdc(*then: str, **fields: str) -> Json:
    block = {"sourceTable": "db.plays", "targetTable": TARGET, **fields}
    return step(
        "capture",
        "ICDC",
        *then,
        params={"icdc": {"type": "MAP", "value": {name: text(value) for name, value in block.items()}}},
    )


def ids(lake: Lake, name: str = TARGET) -> list[int]:
    found = lake.catalog("lake").pyiceberg.load_table(name).scan().to_arrow()
    return sorted(found["id"].to_pylist())


def at_head(lake: Lake) -> bool:
    head = lake.catalog("lake").pyiceberg.load_table("db.plays").metadata.current_snapshot_id
    return [mark.position.snapshot_id for mark in lake.checkpoints("w")] == [head]


NAMED = "echo ${capture__change_table} ${capture__rows} ${capture__has_more} >> out"


def test_the_checkpoint_moves_with_the_success_of_the_run(place: Place, lake: Lake) -> None:
    place.push("w", icdc("write", max_snapshots="2"), job(place, script=NAMED))
    for rows in ((1, 2, 3), (4,), (5,)):
        append(lake, *rows)
    for _ in range(3):
        assert place.run("w").status is SUCCEEDED
    # The last found nothing new.
    assert place.lines() == [f"lake.{TARGET} 4 true", f"lake.{TARGET} 1 false"]
    assert place.statuses()["write"] == "UNSATISFIED"
    assert at_head(lake)
    assert {(each.state, each.settled_by) for each in lake.store.captures()} == {
        (CaptureState.COMMITTED, "run w/1"),
        (CaptureState.COMMITTED, "run w/2"),
    }
    lake.clean()
    assert [str(name) for name in lake.tables()] == ["lake.db.plays"]


def test_a_run_of_a_capture_alone(place: Place, lake: Lake) -> None:
    """Its success and that of the run are one transaction."""
    place.push("w", icdc())
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    assert at_head(lake)


def test_in_a_loop(place: Place, lake: Lake) -> None:
    place.push("w", foreach("each", [1], [icdc("write"), job(place, script=NAMED)], "end"), noop("end"))
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    assert at_head(lake)


def test_a_run_that_failed_leaves_its_table_to_the_next(place: Place, lake: Lake) -> None:
    place.push("w", icdc("write"), job(place, script="test -e good; echo ${capture__capture_id} >> out"))
    append(lake, 1)
    assert place.run("w").status is FAILED
    [pending] = lake.store.captures()
    assert pending.state is CaptureState.READY
    append(lake, 2)
    assert place.run("w").status is FAILED
    assert ids(lake) == [1]
    (place.folder / "good").touch()
    assert place.run("w").status is SUCCEEDED
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == [each.id for each in reversed(lake.store.captures())]
    assert at_head(lake)


def test_a_commit_step_that_names_it_decides(place: Place, lake: Lake) -> None:
    place.push("w", icdc("write"), job(place, "commit:1 > 2", script="true"), commit())
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    assert not lake.checkpoints("w")
    place.push("w", icdc("write"), job(place, "commit", script="true"), commit())
    assert place.run("w").status is SUCCEEDED
    assert at_head(lake)


def test_a_capture_that_was_given_up_fails_the_run(place: Place, lake: Lake) -> None:
    script = "touch at; while ! test -e go; do sleep 0.05; done; echo ${capture__capture_id} >> out"
    place.push("w", icdc("write"), job(place, script=script))
    append(lake, 1)
    with going_on(place, place.start("w")) as ended:
        until((place.folder / "at").exists)
        [pending] = lake.store.captures()
        give_up(lake, pending.id)
        (place.folder / "go").touch()
        run = ended()
    assert run.status is FAILED
    assert f"Capture {pending.id} was abandoned" in (run.reason or "")
    assert place.statuses() == {"capture": "FATALLY_FAILED", "write": "SUCCEEDED"}
    assert not lake.checkpoints("w")
    # Restarted, it captures anew, and what comes after the capture is run again.
    assert place.finish(place.operations.runs.restart(run.id, restart=RestartFrom.INCOMPLETE)).status is SUCCEEDED
    assert place.lines() == [pending.id, lake.store.captures()[0].id]
    assert at_head(lake)


def settled(lake: Lake, state: CaptureState) -> Capture:
    """A capture of an earlier run, whose process died before it could drop the table."""
    made = lake.capture("db.plays", consumer="w", target=TARGET)
    if state is CaptureState.COMMITTED:
        lake.store.commit(made.id, by="ada", now=utc_now())
    else:
        lake.store.abandon(made.id, by="ada", now=utc_now(), reason="test")
    assert ids(lake) == [1]
    return lake.store.capture(made.id)


@pytest.mark.parametrize(
    ("state", "expected"), [(CaptureState.COMMITTED, [2]), (CaptureState.ABANDONED, [1, 2])], ids=str
)
def test_what_was_left_under_the_name_makes_room(
    place: Place, lake: Lake, state: CaptureState, expected: list[int]
) -> None:
    append(lake, 1)
    old = settled(lake, state)
    append(lake, 2)
    changes = lake.capture("db.plays", consumer="w", target=TARGET)
    assert (changes.table, ids(lake)) == (f"lake.{TARGET}", expected)
    assert lake.store.capture(old.id).dropped_at
    # Whoever tidies up after the old one once more finds that the name is no longer its own.
    lake.tidy_up(old.id)
    lake.clean()
    assert ids(lake) == expected


def test_a_late_process_that_brings_the_old_table_back(place: Place, lake: Lake) -> None:
    append(lake, 1)
    catalog = lake.catalog("lake")
    old = lake.capture("db.plays", consumer="w", target=TARGET)
    location = lake.load(lake.name(TARGET)).metadata_location
    content = catalog.files_at(location).read(location)
    old.commit()
    with catalog.pyiceberg._load_file_io({}, location).new_output(location).create() as file:
        file.write(content)
    catalog.register(lake.name(TARGET), location)
    append(lake, 2)
    lake.capture("db.plays", consumer="w", target=TARGET)
    assert ids(lake) == [2]


def test_a_table_that_is_somebody_elses_stays(place: Place, lake: Lake) -> None:
    own = lake.catalog("lake").pyiceberg.create_table(TARGET, SCHEMA)
    own.append(pa.table({"id": [7], "day": ["x"]}, schema=SCHEMA))
    append(lake, 1)
    place.push("w", icdc("write"), job(place, script=NAMED))
    run = place.run("w")
    assert run.status is FAILED
    assert f"there is a table lake.{TARGET} already, which is not a change table of this project" in (run.reason or "")
    assert ids(lake) == [7]
    assert not lake.store.captures()
    lake.catalog("lake").pyiceberg.rename_table(TARGET, "db.mine")
    assert place.run("w").status is SUCCEEDED
    assert ids(lake, "db.mine") == [7]


def test_a_name_that_another_capture_has(place: Place, lake: Lake) -> None:
    append(lake, 1)
    other = lake.capture("db.plays", consumer="other", target=TARGET)
    place.push("w", icdc())
    run = place.run("w")
    assert run.status is FAILED
    assert f"belongs to capture {other.id} of other" in (run.reason or "")
    assert ids(lake) == [1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"targetTable": "db.plays"}, "cannot have its source's own name"),
        ({"targetTable": "db.`a b`"}, "expected words of letters, digits and underscores"),
        ({"targetTable": ""}, "needs one of targetTable, target_table; found none of them"),
        ({"source_table": "db.plays"}, "needs one of sourceTable, source_table; found sourceTable and source_table"),
    ],
)
def test_what_is_refused(place: Place, lake: Lake, fields: dict[str, str], message: str) -> None:
    append(lake, 1)
    place.push("w", icdc(**fields))
    run = place.run("w")
    assert run.status is FAILED
    assert message in (run.reason or "")
    assert not lake.store.captures()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_bytes": "few"}, "icdc.max_bytes cannot be 'few'; expected a whole number above 0"),
        ({"when": "now"}, "icdc has no field 'when'"),
    ],
)
def test_what_is_refused_before_a_run(place: Place, fields: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidWorkflow, match=message):
        place.push("w", icdc(**fields))


def test_other_spellings_and_fields(place: Place, lake: Lake) -> None:
    text_ = f"""
workflow:
  name: snakes
  steps:
    - name: capture
      type: icdc
      source_table: db.plays
      target_table: {TARGET}
      data_operations: [append]
      range_columns: [id]
      consumer: somebody
    - name: tell
      type: shell
      script: echo ${{capture__min_id}} ${{capture__source_table}} >> out
      folder: {place.folder}
      dependsOn: capture
"""
    append(lake, 4, 5)
    pushed = place.operations.workflows.push(text_)
    assert place.run(pushed.workflow_id).status is SUCCEEDED
    assert place.lines() == ["4 lake.db.plays"]
    assert [mark.consumer for mark in lake.checkpoints()] == ["somebody"]


def test_before_and_after_under_a_chosen_name(place: Place, lake: Lake) -> None:
    append(lake, 1, 2)
    for deleted, expected in ((1, ([1, 2], [])), (2, ([2], [1, 2]))):
        with lake.capture("db.plays", consumer="w", changes="before_after", target=TARGET) as changes:
            assert changes.before == f"lake.{TARGET}_before"
            assert (ids(lake), ids(lake, f"{TARGET}_before")) == expected
        lake.catalog("lake").pyiceberg.load_table("db.plays").delete(f"id == {deleted}")
    assert not lake.catalog("lake").views(("db",))


def test_killed_at_some_moments(tmp_path: Path) -> None:
    """However far it came: the range is processed once, and the checkpoint is at its end when the run is."""
    chance = random.Random(20261117)
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = Place.at(folder)
        place.push("w", icdc("write"), job(place, script=NAMED))
        place.operations.close()
        with Lake.open(place.operations.settings) as lake:
            lake.catalog("lake").pyiceberg.create_namespace("db")
            lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
            append(lake, 1, 2, 3)
            assert killed_at(chance.randint(10, 110), start_and_work, str(folder), "w")
            killed_at(NEVER, start_and_work, str(folder), "w")
            [done] = lake.store.captures()
            assert (done.state, place.lines()) == (CaptureState.COMMITTED, [f"lake.{TARGET} 3 false"])
            assert at_head(lake)
            lake.clean()
            assert [str(name) for name in lake.tables()] == ["lake.db.plays"]


def test_a_table_whose_folder_somebody_has_deleted(place: Place, lake: Lake) -> None:
    append(lake, 1)
    for target in (None, TARGET):
        changes = lake.capture("db.plays", consumer="w", target=target)
        name = lake.name(changes.table)
        shutil.rmtree(next(iter(changes.tables.values())).location)
        lake.abandon(changes.id)
        assert not lake.catalog("lake").has(name)
    # Of one that was not made here, nobody can tell whose it is.
    own = lake.catalog("lake").pyiceberg.create_table(TARGET, SCHEMA)
    shutil.rmtree(own.location())
    with pytest.raises(PlatformError, match="FileNotFoundError"):
        lake.capture("db.plays", consumer="w", target=TARGET)
    assert lake.catalog("lake").has(lake.name(TARGET))
