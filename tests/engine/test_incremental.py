"""Workflows that process what changed: captured, handed to a job as parameters, committed with the run."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.cli import run_text
from dalsegno.engine.captures import consumed_by
from dalsegno.errors import CapturePending
from dalsegno.model.captures import CaptureState
from dalsegno.model.runs import RestartFrom
from dalsegno.store import captures, run_queries
from tests.engine.dying import NEVER, start_and_work
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, foreach, noop, shell, step, subworkflow
from tests.engine.test_control import going_on
from tests.steps.support import until
from tests.store.crashes import killed_at

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
NO_RETRY = {"error_retry_limit": 0}


@pytest.fixture
def lake(either_place: Place) -> Iterator[Lake]:
    with Lake.open(either_place.operations.settings) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        opened.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
        yield opened


def append(lake: Lake, *ids: int, day: str = "2026-01-01", table: str = "db.plays") -> None:
    rows = pa.table({"id": ids, "day": [day] * len(ids)}, schema=SCHEMA)
    lake.catalog("lake").pyiceberg.load_table(table).append(rows)


def texts(values: list[str]) -> Json:
    return {"type": "STRING_ARRAY", "value": values}


def text(value: str) -> Json:
    return {"type": "STRING", "value": value}


def capture(*then: str, tables: tuple[str, ...] = ("db.plays",), step_id: str = "capture", **fields: str) -> Json:
    block = {"source_tables": texts([*tables]), **{name: text(value) for name, value in fields.items()}}
    return step(step_id, "IpCapture", *then, params={"ip_capture": {"type": "MAP", "value": block}})


def commit(*then: str, capture_step: str = "capture") -> Json:
    block = {"capture_step": text(capture_step)}
    return step("commit", "IpCommit", *then, params={"ip_commit": {"type": "MAP", "value": block}})


def job(place: Place, *then: str, script: str = "echo ${capture__rows} >> out", **fields: Any) -> Json:
    return shell("write", f"cd {place.folder}; {script}", *then, retry_policy=NO_RETRY, **fields)


def test_only_what_is_new_is_processed(either_place: Place, lake: Lake) -> None:
    place = either_place
    place.push("w", capture("write"), job(place, "commit"), commit())
    append(lake, 1, 2, 3)
    assert place.run("w").status is SUCCEEDED
    # Late or not, what counts is when it was added.
    append(lake, 4, day="2019-05-05")
    append(lake, 5)
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["3", "2"]
    assert [mark.position.snapshot_id for mark in lake.checkpoints("w")] == [
        lake.catalog("lake").pyiceberg.load_table("db.plays").metadata.current_snapshot_id
    ]
    # Nobody needs the change tables any longer.
    assert all(each.state is CaptureState.COMMITTED and each.dropped_at for each in lake.store.captures())
    assert not lake.catalog("lake").tables(("icdc",))
    assert {each.settled_by for each in lake.store.captures()} == {"run w/1", "run w/2"}


def test_what_later_steps_can_use(either_place: Place, lake: Lake) -> None:
    place = either_place
    script = "echo ${capture__change_table} ${capture__min_id}-${capture__max_id} ${capture__files} >> out"
    place.push("w", capture("write", range_columns="id"), job(place, "commit", script=script), commit())
    append(lake, 7, 9)
    assert place.run("w").status is SUCCEEDED
    [capture_of_run] = lake.store.captures()
    assert place.lines() == [f"{capture_of_run.tables[0].change_table} 7-9 1"]


def test_predicates_reach_later_steps(either_place: Place, lake: Lake) -> None:
    """One source has them as they are, of several each has its own, and with nothing new nothing is meant."""
    place = either_place
    lake.catalog("lake").pyiceberg.create_table("db.orders", SCHEMA)
    for table in ("plays", "orders"):
        with lake.catalog("lake").pyiceberg.load_table(f"db.{table}").update_spec() as update:
            update.add_identity("day")
    script = """echo "${capture.partition_filter('t')}; ${capture.range_filter_id}" >> out"""
    place.push("one", capture("write", range_columns="id"), job(place, "commit", script=script), commit())
    append(lake, 7, 9)
    assert place.run("one").status is SUCCEEDED
    script = """echo "${capture.new_partition_filter_plays}; ${capture.partition_filter_orders}" >> out"""
    several = capture("write", tables=("db.plays", "db.orders"), when_nothing_new="continue")
    place.push("both", several, job(place, "commit", script=script), commit())
    append(lake, 1, day="it's", table="db.orders")
    assert place.run("both").status is SUCCEEDED
    assert place.run("both").status is SUCCEEDED
    assert place.lines() == [
        "t.`day` = '2026-01-01'; `id` BETWEEN 7 AND 9",
        "`day` = '2026-01-01'; `day` = 'it\\'s'",
        "false; false",
    ]


@pytest.mark.parametrize(
    ("word", "status", "lines"), [("skip", SUCCEEDED, []), ("continue", SUCCEEDED, ["0"]), ("fail", FAILED, [])]
)
def test_when_there_is_nothing_new(place: Place, word: str, status: object, lines: list[str]) -> None:
    with Lake.open(place.operations.settings) as lake:
        lake.catalog("lake").pyiceberg.create_namespace("db")
        lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
    place.push("w", capture("write", when_nothing_new=word), job(place, "commit"), commit())
    assert place.run("w").status is status
    assert place.lines() == lines
    assert place.statuses()["write"] == {"skip": "UNSATISFIED", "continue": "SUCCEEDED"}.get(word, "NOT_CREATED")
    shown = run_text.tree(place.operations.runs.get("w"), place.operations.runs.steps("w"), place.operations.clock())
    assert ("∅ write  Shell  UNSATISFIED  nothing new\n" in shown) is (word == "skip")
    assert shown.count("nothing new") == {"skip": 3, "continue": 0}.get(word, 2)
    assert ("SUCCEEDED  nothing new" in shown.splitlines()[0]) is (word == "skip")
    listed = run_text.runs(place.operations.runs.list("w"))
    assert ("nothing new" in listed) is (word != "continue")


def test_nothing_new_stays_nothing_new_in_another_version(place: Place) -> None:
    with Lake.open(place.operations.settings) as lake:
        lake.catalog("lake").pyiceberg.create_namespace("db")
        lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
    place.push("w", capture("write"), job(place, "commit"), commit(), shell("other", "false", retry_policy=NO_RETRY))
    failed = place.run("w")
    place.push("w", capture("write", "more"), job(place, "commit"), commit(), shell("more", "true"), noop("other"))
    assert place.finish(place.operations.runs.restart(failed.id, version="latest")).status is SUCCEEDED
    assert place.statuses() == {
        "capture": "SUCCEEDED",
        "write": "UNSATISFIED",
        "commit": "UNSATISFIED",
        "more": "UNSATISFIED",
        "other": "SUCCEEDED",
    }


def test_a_run_that_failed_leaves_its_capture_to_the_next(either_place: Place, lake: Lake) -> None:
    place = either_place
    script = "test -e good; echo ${capture__capture_id} >> out"
    place.push("w", capture("write"), job(place, "commit", script=script), commit())
    append(lake, 1)
    assert place.run("w").status is FAILED
    [pending] = lake.store.captures()
    assert (pending.state, pending.created_by) == (CaptureState.READY, "run w/1")
    append(lake, 2)
    (place.folder / "good").touch()
    # The same range as before: a job that wrote half of it sees the same rows again.
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == [pending.id]
    assert place.run("w").status is SUCCEEDED
    assert len(set(place.lines())) == 2


def test_a_restarted_run_goes_on_with_its_capture(either_place: Place, lake: Lake) -> None:
    place = either_place
    script = "test -e good; echo ${capture__rows} >> out"
    place.push("w", capture("write"), job(place, "commit", script=script), commit())
    append(lake, 1)
    failed = place.run("w")
    append(lake, 2)
    (place.folder / "good").touch()
    assert place.finish(place.operations.runs.restart(failed.id)).status is SUCCEEDED
    assert place.lines() == ["1"]
    # From the beginning it captures again, and finds what has come since.
    again = place.operations.runs.restart(failed.id, restart=RestartFrom.BEGINNING)
    assert place.finish(again).status is SUCCEEDED
    assert place.lines() == ["1", "1"]


WAITING = "touch at; while ! test -e go; do sleep 0.05; done; echo ${capture__rows} >> out"


def test_a_commit_that_is_refused_fails_the_run(either_place: Place, lake: Lake) -> None:
    """The capture was given up while the job went on, as in a store that was restored: the run says why."""
    place = either_place
    place.push("w", capture("write"), job(place, "commit", script=WAITING), commit())
    append(lake, 1)
    with going_on(place, place.start("w")) as ended:
        until((place.folder / "at").exists)
        [pending] = lake.store.captures()
        with pytest.raises(CapturePending, match="held by run w/1"):
            lake.abandon(pending.id)
        give_up(lake, pending.id)
        (place.folder / "go").touch()
        run = ended()
    assert run.status is FAILED
    assert f"Capture {pending.id}" in (run.reason or "")
    assert place.statuses()["commit"] == "FATALLY_FAILED"
    assert not lake.checkpoints("w")


def give_up(lake: Lake, capture_id: str) -> None:
    """Against all rules."""
    with lake.store.database.writing() as connection:
        captures.settle(connection, capture_id, CaptureState.ABANDONED, by="ada", now=lake.clock(), reason="none")
        connection.exec_driver_sql("DELETE FROM work_unit_captures")
    lake.tidy_up(capture_id)


def test_runs_at_the_same_time_do_not_share_a_capture(either_place: Place, lake: Lake) -> None:
    place = either_place
    not_again = {"retry_policy": {"platform_retry_limit": 0}}
    first = capture("write")
    first["step"] |= not_again
    parallel = {"run_strategy": {"rule": "PARALLEL"}}
    place.push("w", first, job(place, "commit", script=WAITING), commit(), properties=parallel)
    append(lake, 1)
    with going_on(place, place.start("w")) as ended:
        until((place.folder / "at").exists)
        other = Place.at(place.folder, place.operations.settings.store)
        second = other.run("w")
        other.operations.close()
        assert second.status is FAILED
        assert "is being processed by run w/1, which has not ended" in (second.reason or "")
        (place.folder / "go").touch()
        assert ended().status is SUCCEEDED
    assert place.lines() == ["1"]


def test_several_tables(either_place: Place, lake: Lake) -> None:
    place = either_place
    lake.catalog("lake").pyiceberg.create_table("db.members", SCHEMA)
    script = "echo ${capture__rows} ${capture__change_table_plays} ${capture__change_table_members} >> out"
    place.push("w", capture("write", tables=("db.plays", "db.members")), job(place, "commit", script=script), commit())
    append(lake, 1, 2)
    append(lake, 1, table="db.members")
    assert place.run("w").status is SUCCEEDED
    [captured] = lake.store.captures()
    assert place.lines() == [" ".join(["3", *(str(each.change_table) for each in captured.tables)])]
    assert len(lake.checkpoints("w")) == 2


def test_what_a_step_of_a_subworkflow_processes(either_place: Place, lake: Lake) -> None:
    """The captures of the runs it belongs to; and each iteration that runs the same subworkflow is another place."""
    place = either_place
    place.push("child", shell("inside", "true"))
    each = foreach("each", [1, 2], [subworkflow("sub", "child")], "commit")
    place.push("w", capture("each"), each, commit())
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    [done] = lake.store.captures()
    operations, found = place.operations, set()
    for number in (1, 2):
        with operations.store.database.reading() as connection:
            row = run_queries.numbered(connection, "child", number)
        assert row is not None
        blueprint = operations.machinery.versions.named("child", "active")
        consumed = consumed_by(operations.store, operations.machinery.versions, row, blueprint, row["id"], "inside")
        assert [each.id for each in consumed.captures] == [done.id]
        found.add(consumed.place)
    assert len(found) == 2
    assert all(re.fullmatch(r"each/\d+/sub/inside", each) for each in found), found


def test_killed_at_some_moments(tmp_path: Path) -> None:
    """However far it came: the range is processed once, the checkpoint is at its end, and nothing is left behind."""
    chance = random.Random(20261116)
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = Place.at(folder)
        place.push("w", capture("write"), job(place, "commit"), commit())
        place.operations.close()
        with Lake.open(place.operations.settings) as lake:
            lake.catalog("lake").pyiceberg.create_namespace("db")
            lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
            append(lake, 1, 2, 3)
            assert killed_at(chance.randint(10, 120), start_and_work, str(folder), "w")
            killed_at(NEVER, start_and_work, str(folder), "w")
            [done] = lake.store.captures()
            assert (done.state, place.lines()) == (CaptureState.COMMITTED, ["3"])
            head = lake.catalog("lake").pyiceberg.load_table("db.plays").metadata.current_snapshot_id
            assert [mark.position.snapshot_id for mark in lake.checkpoints("w")] == [head]
            lake.clean()
            assert not lake.catalog("lake").tables(("icdc",))


def test_ranges_over_several_tables(place: Place) -> None:
    """Numbers are compared as numbers; where the tables do not agree on what a column is, nothing is told."""
    with Lake.open(place.operations.settings) as lake:
        catalog = lake.catalog("lake").pyiceberg
        catalog.create_namespace("db")
        for table, price, code in (("sold", "9.50", 7), ("returned", "10.00", "seven")):
            rows = pa.table({"price": pa.array([Decimal(price)], pa.decimal128(9, 2)), "code": [code]})
            catalog.create_table(f"db.{table}", rows.schema).append(rows)
    tables = ("db.sold", "db.returned")
    first = capture("commit", tables=tables)
    first["step"]["params"]["ip_capture"]["value"]["range_columns"] = texts(["price", "code"])
    place.push("w", first, commit())
    assert place.run("w").status is SUCCEEDED
    told = place.steps()["capture"].outputs
    assert (told["min_price"], told["max_price"]) == ("9.50", "10.00")
    assert not {"min_code", "max_code"} & set(told)
    assert "range_filter_code" in told


def test_a_commit_beside_a_step_that_may_still_write(either_place: Place, lake: Lake) -> None:
    """If the checkpoint moved first, the step could not write any more, and its rows would be lost."""
    place = either_place
    copy = {"spark": {"type": "MAP", "value": {"script": text("INSERT INTO lake.db.t SELECT 1")}}}
    committed = {"ip_commit": {"type": "MAP", "value": {"capture_step": text("capture")}}}
    place.push(
        "w",
        capture("write", "slow"),
        job(place, "commit"),
        step("commit", "IpCommit", params=committed, retry_policy={"platform_retry_limit": 0}),
        shell("slow", "sleep 2; exit 1", "copy", retry_policy=NO_RETRY),
        step("copy", "Spark", params=copy),
    )
    append(lake, 1)
    assert place.run("w").status is FAILED
    failure = place.steps()["commit"].failure or {}
    assert "Step 'copy' may still write what 'capture' captured" in failure["message"]
    assert lake.store.captures(pending_only=True)
