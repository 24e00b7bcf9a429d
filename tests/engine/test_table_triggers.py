"""Runs that start because tables changed: once for what is new, for nothing else, whoever dies, however many look."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.clock import to_millis, utc_now
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.catalogs.sql import SqlCatalog
from dalsegno.model.tables import TableName
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.operations.service import Service
from dalsegno.settings import load
from dalsegno.triggers.table_triggers.engine.firing import TableTriggers
from tests.callers import admin
from tests.engine.support import FAILED, SUCCEEDED, Json, Place
from tests.engine.test_incremental import SCHEMA, append, capture, commit, job, text
from tests.steps.support import until

MINUTE = timedelta(minutes=1)


class Clock:
    """The real one, put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.ahead


class Watching:
    """A place with two tables, a workflow that captures them, and somebody who looks."""

    def __init__(self, place: Place, lake: Lake) -> None:
        self.place, self.lake, self.clock = place, lake, Clock()
        place.use_clock(self.clock)
        self.triggers = self.by(place.operations)

    def by(self, operations: Operations) -> TableTriggers:
        return TableTriggers(self.lake, operations.machinery.versions.blueprint, operations.machinery.start_by_trigger)

    def push(self, *steps: Json, tables: tuple[str, ...] = ("db.plays",), **rules: Any) -> None:
        steps = steps or (capture("commit", tables=tables), commit())
        self.place.push("w", *steps, incremental_triggers=[rules], properties=rules.pop("properties", None))

    def look(self, later: timedelta = timedelta()) -> datetime | None:
        self.clock.ahead += later
        return self.triggers.fire(self.clock())

    def started(self) -> list[RunView]:
        """What a look starts, run to its end."""
        before = {run.id for run in self.runs()}
        self.look()
        return [self.place.finish(run) for run in self.runs() if run.id not in before]

    def runs(self) -> list[RunView]:
        return sorted(self.place.operations.runs.list("w", limit=100), key=lambda run: run.number)


@pytest.fixture
def watching(place: Place) -> Iterator[Watching]:
    yield from _watching(place)


@pytest.fixture
def watching_either(either_place: Place) -> Iterator[Watching]:
    """On each database: for what depends on transactions."""
    yield from _watching(either_place)


def _watching(place: Place) -> Iterator[Watching]:
    with Lake.open(place.operations.settings) as lake:
        lake.catalog("lake").pyiceberg.create_namespace("db")
        for table in ("plays", "users"):
            lake.catalog("lake").pyiceberg.create_table(f"db.{table}", SCHEMA)
        yield Watching(place, lake)


def change(lake: Lake, how: Callable[[Json], None], table: str = "db.plays") -> None:
    """Write other metadata for a table, as some engine would that PyIceberg is not."""
    loaded = lake.load(lake.name(table))
    metadata = json.loads(json.dumps(loaded.metadata))
    how(metadata)
    place = f"{loaded.metadata_location.rpartition('/')[0]}/{len(metadata['snapshots']):05d}-{uuid4()}.metadata.json"
    loaded.files.write(place, json.dumps(metadata).encode())
    lake.catalog("lake").pyiceberg.drop_table(table)
    lake.catalog("lake").pyiceberg.register_table(table, place)


def snapshot(operation: str, **summary: int) -> Callable[[Json], None]:
    """A snapshot on top that changes nothing but what its summary says."""

    def add(metadata: Json) -> None:
        head = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])
        counts = {key.replace("_", "-"): str(value) for key, value in summary.items()}
        new = {**head, "snapshot-id": head["snapshot-id"] // 2 + 1, "parent-snapshot-id": head["snapshot-id"]}
        new |= {"summary": {"operation": operation, **counts}, "timestamp-ms": to_millis(utc_now())}
        new["sequence-number"] = metadata["last-sequence-number"] = metadata["last-sequence-number"] + 1
        metadata["snapshots"].append(new)
        stand_at(new["snapshot-id"])(metadata)

    return add


def stand_at(snapshot_id: int) -> Callable[[Json], None]:
    def move(metadata: Json) -> None:
        metadata["current-snapshot-id"] = snapshot_id
        metadata.setdefault("refs", {})["main"] = {"snapshot-id": snapshot_id, "type": "branch"}

    return move


def head(lake: Lake, table: str = "db.plays") -> int:
    found = lake.catalog("lake").pyiceberg.load_table(table).metadata.current_snapshot_id
    assert found is not None
    return found


def test_what_is_new_starts_one_run(watching_either: Watching) -> None:
    watching = watching_either
    watching.push()
    assert watching.started() == []

    append(watching.lake, 1, 2, 3)
    append(watching.lake, 4)
    [run] = watching.started()
    assert run.status is SUCCEEDED
    initiator = run.initiator
    assert (initiator["type"], initiator["by"], initiator["trigger"]) == ("INCREMENTAL", "dalsegno", "what is captured")
    [told] = initiator["tables"].values()
    assert (told["consumer"], told["snapshots"], told["files"], told["rows"]) == ("w", 2, 2, 4)
    assert told["bytes"] > 0
    # All is processed; the pin that the capture left is no change.
    assert watching.started() == []
    append(watching.lake, 5)
    assert [run.number for run in watching.started()] == [2]
    assert watching.started() == []


def test_a_run_that_is_open_is_waited_for(watching_either: Watching) -> None:
    watching = watching_either
    watching.push()
    append(watching.lake, 1)
    watching.look()
    append(watching.lake, 2)
    watching.look()
    [run] = watching.runs()
    watching.place.finish(run)
    # It has taken the second append along.
    assert watching.started() == []
    # Somebody's own run counts as well.
    append(watching.lake, 3)
    by_hand = watching.place.start("w")
    watching.look()
    watching.place.finish(by_hand)
    assert watching.started() == []
    assert len(watching.runs()) == 2


def test_compaction_and_rollback_start_nothing(watching: Watching) -> None:
    watching.push()
    append(watching.lake, 1)
    first = head(watching.lake)
    append(watching.lake, 2)
    assert len(watching.started()) == 1
    change(watching.lake, snapshot("replace", added_data_files=1, deleted_data_files=2, added_records=2))
    assert watching.started() == []
    change(watching.lake, stand_at(first))
    assert watching.started() == []
    assert watching.look(24 * 60 * MINUTE) is None


def test_what_others_do_starts_nothing(watching: Watching) -> None:
    watching.push()
    append(watching.lake, 1)
    assert len(watching.started()) == 1
    append(watching.lake, 1, table="db.users")
    with watching.lake.capture("db.plays", consumer="somebody"):
        pass
    watching.lake.catalog("lake").pyiceberg.load_table("db.plays").transaction().set_properties(
        {"owner": "somebody"}
    ).commit_transaction()
    assert watching.started() == []


@pytest.mark.parametrize("rule", [{"min_rows": 4}, {"min_snapshots": 2}, {"min_files": 2, "min_rows": 1000}])
def test_thresholds(watching: Watching, rule: dict[str, Any]) -> None:
    watching.push(**rule)
    append(watching.lake, 1, 2)
    assert watching.started() == []
    append(watching.lake, 3, 4)
    assert len(watching.started()) == 1


def test_what_waits_long_enough_is_processed_all_the_same(watching: Watching) -> None:
    watching.push(min_rows=1000, max_wait="1h")
    append(watching.lake, 1)
    again_at = watching.look()
    assert again_at is not None
    assert timedelta(minutes=59) < again_at - watching.clock() <= timedelta(hours=1)
    watching.look(59 * MINUTE)
    assert watching.runs() == []
    watching.look(MINUTE)
    assert len(watching.runs()) == 1


def test_a_table_that_is_written_to_is_left_in_peace(watching: Watching) -> None:
    watching.push(quiet="5m", min_interval="30m")
    append(watching.lake, 1)
    watching.look()
    # Four minutes later somebody writes once more, by a clock that is an hour ahead.
    change(watching.lake, snapshot("append", added_data_files=1, added_records=1))
    change(watching.lake, lambda metadata: metadata["snapshots"][-1].update({"timestamp-ms": _ms(watching, 60)}))
    watching.look(4 * MINUTE)
    watching.look(4 * MINUTE)
    assert watching.runs() == []
    watching.look(MINUTE)
    assert len(watching.runs()) == 1


def _ms(watching: Watching, minutes: int) -> int:
    return to_millis(watching.clock() + minutes * MINUTE)


def test_starts_keep_their_distance(watching: Watching) -> None:
    watching.push(min_interval="30m")
    append(watching.lake, 1)
    assert len(watching.started()) == 1
    append(watching.lake, 2)
    again_at = watching.look(29 * MINUTE)
    assert again_at is not None
    assert len(watching.runs()) == 1
    watching.look(again_at - watching.clock())
    assert len(watching.runs()) == 2


@pytest.mark.parametrize(("when", "expected"), [("any", 1), ("all", 0)])
def test_any_or_all(watching: Watching, when: str, expected: int) -> None:
    watching.push(tables=("db.plays", "db.users"), when=when)
    append(watching.lake, 1)
    assert len(watching.started()) == expected
    append(watching.lake, 1, table="db.users")
    assert len(watching.started()) == 1
    assert [sorted(run.initiator["tables"]) for run in watching.runs()][-1][-1] == "lake.db.users"


def test_a_run_that_fails_is_not_followed_by_another_at_once(watching: Watching) -> None:
    watching.push(capture("write"), job(watching.place, "commit", script="test -e good"), commit())
    append(watching.lake, 1)
    assert [run.status for run in watching.started()] == [FAILED]
    for _ in range(3):
        watching.look(60 * MINUTE)
    assert len(watching.runs()) == 1
    # What comes later is tried, at longer and longer intervals.
    append(watching.lake, 2)
    assert [run.status for run in watching.started()] == [FAILED]
    append(watching.lake, 3)
    again_at = watching.look()
    assert again_at is not None
    assert MINUTE < again_at - watching.clock() <= 2 * MINUTE
    (watching.place.folder / "good").touch()
    watching.clock.ahead += 2 * MINUTE
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    # The capture of the failed runs is done; what came since is next, without delay.
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    assert watching.started() == []


def test_what_is_refused_is_shown_by_one_run(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    first = capture("commit")
    first["step"]["retry_policy"] = {"error_retry_limit": 0, "platform_retry_limit": 0}
    watching.push(first, commit(), max_wait="1h")
    append(watching.lake, 1)
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    change(watching.lake, snapshot("overwrite", added_data_files=1, deleted_data_files=1))
    [run] = watching.started()
    assert run.status is FAILED
    assert "is of kind 'overwrite'" in (run.reason or "")
    assert "w starts a run that will be refused" in caplog.text
    change(watching.lake, snapshot("append", added_data_files=1))
    for _ in range(3):
        watching.look(60 * MINUTE)
    assert len(watching.runs()) == 2
    # Somebody steps over it.
    watching.lake.set_checkpoint("db.plays", consumer="w", to="latest")
    assert watching.started() == []
    append(watching.lake, 2)
    assert [run.status for run in watching.started()] == [SUCCEEDED]


def test_a_consumer_that_begins_now_is_started_to_begin(watching: Watching) -> None:
    """Otherwise the first change would set its checkpoint, and not be processed."""
    first = capture("commit")
    first["step"]["params"]["ip_capture"]["value"]["from"] = text("latest")
    watching.push(first, commit())
    append(watching.lake, 1, 2)
    [run] = watching.started()
    assert (run.status, watching.place.steps(run)["capture"].outputs["has_changes"]) == (SUCCEEDED, False)
    assert watching.started() == []
    append(watching.lake, 3)
    [run] = watching.started()
    assert watching.place.steps(run)["capture"].outputs["rows"] == 1


def test_portions_follow_each_other(watching: Watching) -> None:
    watching.push(capture("commit", max_snapshots="1"), commit())
    for number in range(3):
        append(watching.lake, number)
    assert [len(watching.started()) for _ in range(4)] == [1, 1, 1, 0]


def test_another_branch(watching: Watching) -> None:
    watching.push(capture("commit", branch="audit"), commit())
    append(watching.lake, 1)
    assert watching.started() == []
    table = watching.lake.catalog("lake").pyiceberg.load_table("db.plays")
    table.manage_snapshots().create_branch(head(watching.lake), "audit").commit()
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    append(watching.lake, 2)
    assert watching.started() == []


def test_whoever_dies_before_it_is_remembered_starts_no_second_run(watching_either: Watching) -> None:
    watching = watching_either
    watching.push()
    append(watching.lake, 1)
    operations = watching.place.operations

    def start_and_die(*arguments: Any, **options: Any) -> RunView:
        operations.machinery.start_by_trigger(*arguments, **options)
        raise KeyboardInterrupt

    dying = TableTriggers(watching.lake, operations.machinery.versions.blueprint, start_and_die)
    with pytest.raises(KeyboardInterrupt):
        dying.fire(watching.clock())
    append(watching.lake, 2)
    watching.look()
    [run] = watching.runs()
    watching.place.finish(run)
    assert watching.started() == []
    # Its number is taken; the next one is found, and what has come is not forgotten.
    append(watching.lake, 3)
    watching.look()
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    assert watching.started() == []


def test_nodes_that_look_at_the_same_time_start_one_run(watching_either: Watching) -> None:
    watching = watching_either
    watching.push()
    append(watching.lake, 1)
    first = watching.place.operations
    lakes = [Lake.open(first.settings) for _ in range(3)]
    nodes = [Operations(first.store, first.settings, admin("dalsegno"), clock=watching.clock) for _ in lakes]
    together = Barrier(len(nodes))

    def act(lake: Lake, node: Operations) -> None:
        triggers = TableTriggers(lake, node.machinery.versions.blueprint, node.machinery.start_by_trigger)
        together.wait()
        triggers.fire(watching.clock())

    threads = [Thread(target=act, args=each) for each in zip(lakes, nodes, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for lake in lakes:
        lake.close()
    [run] = watching.runs()
    watching.place.finish(run)
    assert watching.started() == []


@pytest.mark.parametrize("how", ["deactivate", "disable", "without"])
def test_what_is_no_longer_in_force_starts_nothing(watching: Watching, how: str) -> None:
    watching.push()
    append(watching.lake, 1)
    match how:
        case "deactivate":
            watching.place.operations.workflows.deactivate("w")
        case "disable":
            watching.push(properties={"incremental_trigger_disabled": True})
        case "without":
            watching.place.push("w", capture("commit"), commit())
    assert watching.started() == []
    watching.place.operations.workflows.activate("w", "1")
    assert [run.version for run in watching.started()] == [1]


def test_a_new_version_goes_on_where_the_old_one_was(watching_either: Watching) -> None:
    watching = watching_either
    watching.push(capture("write"), job(watching.place, "commit", script="false"), commit())
    append(watching.lake, 1)
    assert [run.status for run in watching.started()] == [FAILED]
    watching.push(min_interval="1h")
    append(watching.lake, 2)
    assert watching.started() == []
    watching.clock.ahead += 60 * MINUTE
    assert [(run.version, run.status) for run in watching.started()] == [(2, SUCCEEDED)]


def test_a_new_version_is_tried_at_once(watching_either: Watching) -> None:
    """With the same changes, and without the back-off that runs of the version before have led to."""
    watching = watching_either
    failing = (capture("write"), job(watching.place, "commit", script="false"), commit())
    watching.push(*failing)
    for number in range(3):
        append(watching.lake, number)
        assert [run.status for run in watching.started()] == [FAILED]
        watching.clock.ahead += 10 * MINUTE
    watching.clock.ahead -= 10 * MINUTE
    assert watching.started() == []
    # The same text is no new version.
    watching.push(*failing)
    assert watching.started() == []
    watching.push(capture("write"), job(watching.place, "commit", script="exit 1"), commit())
    assert [(run.version, run.status) for run in watching.started()] == [(2, FAILED)]
    assert watching.started() == []
    watching.push()
    assert [(run.version, run.status) for run in watching.started()] == [(3, SUCCEEDED)]
    # The capture that was left is done, and what came since is next; then nothing is.
    assert [(run.version, run.status) for run in watching.started()] == [(3, SUCCEEDED)]
    assert watching.started() == []


def test_a_new_version_is_not_tried_while_none_is_needed(watching: Watching) -> None:
    watching.push()
    append(watching.lake, 1)
    assert [run.status for run in watching.started()] == [SUCCEEDED]
    watching.push(capture("write"), job(watching.place, "commit"), commit())
    assert watching.started() == []


def test_only_what_changed_is_loaded(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    original = SqlCatalog.load

    def noted(self: SqlCatalog, name: TableName) -> LoadedTable:
        loaded.append(str(name))
        return original(self, name)

    monkeypatch.setattr(SqlCatalog, "load", noted)
    watching.push(tables=("db.plays", "db.users"), min_rows=100)
    watching.look()
    assert sorted(loaded) == ["lake.db.plays", "lake.db.users"]
    loaded.clear()
    watching.look()
    append(watching.lake, 1, table="db.users")
    watching.look()
    watching.look()
    assert loaded == ["lake.db.users"]
    # A checkpoint that moves is noticed without the table.
    watching.lake.set_checkpoint("db.users", consumer="w", to="latest")
    loaded.clear()
    watching.look()
    watching.look()
    assert loaded == ["lake.db.users"]


def test_other_catalogs_are_asked_table_by_table(watching: Watching) -> None:
    settings = watching.lake.settings.catalog("lake")
    names = [watching.lake.name(text) for text in ("db.plays", "db.users", "db.nothing", "elsewhere.plays")]
    expected = {name: watching.lake.load(name).metadata_location for name in names[:2]}
    for kind in (SqlCatalog, Catalog):
        catalog = kind(settings)
        assert catalog.metadata_locations(names) == expected
        catalog.close()


def test_a_table_that_is_not_there_yet(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    watching.push(tables=("db.plays", "db.later"))
    watching.look()
    watching.look()
    assert caplog.text.count("lake.db.later is watched, but is not there") == 1
    watching.lake.catalog("lake").pyiceberg.create_table("db.later", SCHEMA)
    append(watching.lake, 1, table="db.later")
    assert [run.status for run in watching.started()] == [SUCCEEDED]


def test_a_catalog_that_does_not_answer_is_said_once(
    watching: Watching, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watching.push()
    append(watching.lake, 1)
    engine = watching.lake.catalog("lake").pyiceberg.engine  # type: ignore[attr-defined] # of a SQL catalog

    def refuse() -> None:
        raise OSError("no route to the host")

    with monkeypatch.context() as broken:
        broken.setattr(engine, "connect", refuse)
        watching.look()
        watching.look()
    assert caplog.text.count("no route to the host") == 1
    assert [run.status for run in watching.started()] == [SUCCEEDED]


def test_what_cannot_be_watched_is_said(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    watching.push(capture("commit", consumer="${who}"), commit())
    watching.place.push("other", capture("commit"), commit(), incremental_triggers=[{}])
    append(watching.lake, 1)
    watching.look()
    watching.look()
    assert len(watching.place.operations.runs.list("other")) == 1
    assert watching.runs() == []
    assert caplog.text.count("Step 'capture' of w sets its consumer at run time") == 1


def test_the_service_watches_tables(place: Place) -> None:
    settings = load(working_folder=place.folder, environment={}, trigger_poll_seconds=1)
    with Lake.open(settings) as lake:
        lake.catalog("lake").pyiceberg.create_namespace("db")
        lake.catalog("lake").pyiceberg.create_table("db.plays", SCHEMA)
        place.push("w", capture("commit"), commit(), incremental_triggers=[{"tables": ["db.plays"]}])
        service = Service(settings, place.operations.store)
        thread = Thread(target=service.run)
        thread.start()
        try:
            for number in (1, 2):
                append(lake, number)
                until(lambda number=number: _succeeded(place) == number)  # type: ignore[misc] # a default binds it
        finally:
            service.stop()
            thread.join()


def _succeeded(place: Place) -> int:
    return len(place.operations.runs.list("w", status=["SUCCEEDED"]))
