"""Killed at any step, a capture comes back as the same one: one change table, complete or absent, with exact rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from dalsegno import Lake
from dalsegno.model.captures import CaptureState
from dalsegno.model.tables import TableName
from tests.iceberg.dying import (
    Deed,
    abandon,
    all_at_once,
    capture,
    capture_as_view,
    capture_both_ends,
    clean,
    commit,
    killed_at,
)
from tests.iceberg.support import arrow_rows, fresh_name, numbered
from tests.lakes.catalogs import make_settings, stored_below

SCHEMA = pa.schema([pa.field("id", pa.int32())])
#: A step that no process comes to.
NEVER = 1_000_000
MERGED = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}


KINDS = ["sqlite", *(pytest.param(kind, marks=pytest.mark.prove_lakes) for kind in ("sqlite on s3", "glue", "hive"))]
KINDS.append(pytest.param("rest on s3", marks=[pytest.mark.rest, pytest.mark.prove_lakes]))


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    settings = make_settings(request.param, request, tmp_path, "lake")
    # Servers are shared, so namespaces are each test's own.
    settings = replace(settings, change_namespace=fresh_name())
    with Lake.open(settings) as opened:
        opened.catalog("lake").pyiceberg.create_namespace(namespace_of(opened))
        yield opened


@pytest.fixture
def lake_with_views(lake: Lake) -> Lake:
    if not lake.catalog("lake").has_views:
        pytest.skip("a catalog of this type has no views")
    return lake


def namespace_of(lake: Lake) -> str:
    """Of the source tables."""
    return f"db_{lake.settings.change_namespace}"


def catalog_of(lake: Lake) -> Catalog:
    return lake.catalog("lake").pyiceberg


def table_with_news(lake: Lake, number: int) -> str:
    """A table with row 1 processed, and rows 2 and 3 to capture, the last from a manifest with older rows in it."""
    name = f"{namespace_of(lake)}.t{number}"
    table = catalog_of(lake).create_table(name, SCHEMA, properties=MERGED)
    for id_ in range(1, 4):
        table.append(pa.table({"id": [id_]}, schema=SCHEMA))
        if id_ == 1:
            lake.capture(name, consumer="c").commit()
    return name


def rows_of(lake: Lake, name: TableName) -> object:
    return arrow_rows(catalog_of(lake).load_table(name.identifier).scan().to_arrow())


def change_tables(lake: Lake) -> list[TableName]:
    return lake.catalog("lake").tables((lake.settings.change_namespace,))


def views(lake: Lake) -> list[TableName]:
    return lake.catalog("lake").views((lake.settings.change_namespace,))


def change_files(lake: Lake) -> set[str]:
    """All files of change tables, wherever the catalog has put them."""
    return {path for path in all_files(lake) if f"/{lake.settings.change_namespace}/" in path}


def source_files(lake: Lake) -> set[str]:
    return {path for path in all_files(lake) if "metadata.json" not in path} - change_files(lake)


def all_files(lake: Lake) -> set[str]:
    settings = lake.settings.catalogs["lake"]
    location = settings.warehouse or str(catalog_of(lake).load_table(f"{namespace_of(lake)}.t0").location())
    return stored_below(location.partition(namespace_of(lake))[0].rstrip("/"), dict(settings.properties))


def deaths(lake: Lake, deed: Deed, log: Path) -> Iterator[tuple[str, str]]:
    """For each step of a deed: a table, and a process that died there; what it had done before."""
    for step in count():
        name = table_with_news(lake, step)
        if deed is not capture:
            lake.capture(name, consumer="c")
        before = source_files(lake)
        died = killed_at(step, lake.settings, deed, name, log)
        assert before <= source_files(lake), f"files of the source are gone after {log.read_text()}"
        if not died:
            break
        yield name, log.read_text()
    assert step > 4, "the process should have met many steps"


def assert_nothing_is_left(lake: Lake, name: str, done: str) -> None:
    """Everything is processed, and no trace of a capture remains."""
    assert change_tables(lake) == [], done
    assert change_files(lake) == set(), done
    assert not lake.capture(name, consumer="c"), done
    assert lake.store.captures(pending_only=True) == [], done
    assert rows_of(lake, lake.name(name)) == numbered(1, 2, 3), done


def test_killed_while_capturing(lake: Lake, tmp_path: Path) -> None:
    seen = set()
    for name, done in deaths(lake, capture, tmp_path / "log"):
        seen.add(done.splitlines()[-1])
        for table in change_tables(lake):
            assert rows_of(lake, table) == numbered(2, 3), f"a half-made change table is visible after {done}"
        changes = lake.capture(name, consumer="c")
        assert change_tables(lake) == [TableName.of(changes.table)], done
        assert rows_of(lake, TableName.of(changes.table)) == numbered(2, 3), done
        assert changes.rows == 2, done
        assert [c.id for c in lake.store.captures(pending_only=True)] == [changes.id], done
        assert lake.capture(name, consumer="c").id == changes.id, done
        assert changes.commit().left_over == (), done
        assert_nothing_is_left(lake, name, done)
    register = f"after {type(lake.catalog('lake')).__name__}.register"
    assert {"before Store.record_capture", register, "after Store.mark_ready"} <= seen


def steps_at(lake: Lake, deed: Deed, name: str, log: Path, words: tuple[str, ...]) -> list[int]:
    """The steps of a deed, which is done, that have to do with views."""
    assert not killed_at(NEVER, lake.settings, deed, name, log)
    found = [step for step, line in enumerate(log.read_text().splitlines()) if line.endswith(words)]
    assert found
    return found


@pytest.mark.parametrize("deed", [capture_as_view, capture_both_ends])
def test_killed_while_making_views(lake_with_views: Lake, tmp_path: Path, deed: Callable[[Lake, str], str]) -> None:
    lake = lake_with_views
    name, log = table_with_news(lake, 0), tmp_path / "log"
    expected = {""} if deed is capture_as_view else {"_changes"}
    steps = steps_at(lake, deed, name, log, ("create_view", "Store.mark_ready"))
    lake.commit(deed(lake, name))
    for number, step in enumerate(steps, start=1):
        name = table_with_news(lake, number)
        assert killed_at(step, lake.settings, deed, name, log)
        done, capture_id = log.read_text(), deed(lake, name)
        assert {view.name.rpartition(f"_{capture_id}")[2] for view in views(lake)} == expected, done
        assert [c.id for c in lake.store.captures(pending_only=True)] == [capture_id], done
        assert lake.commit(capture_id).left_over == (), done
        assert views(lake) == [], done
        assert_nothing_is_left(lake, name, done)


@pytest.mark.parametrize("made", [capture_as_view, capture_both_ends])
def test_killed_while_removing_views(lake_with_views: Lake, tmp_path: Path, made: Callable[[Lake, str], str]) -> None:
    lake = lake_with_views
    name, log = table_with_news(lake, 0), tmp_path / "log"
    made(lake, name)
    for number, step in enumerate(steps_at(lake, commit, name, log, ("forget_view", "Store.mark_dropped")), start=1):
        name = table_with_news(lake, number)
        made(lake, name)
        assert killed_at(step, lake.settings, commit, name, log)
        done = log.read_text()
        assert lake.clean().left_over == (), done
        assert views(lake) == [], done
        assert_nothing_is_left(lake, name, done)


def test_killed_while_committing(lake: Lake, tmp_path: Path) -> None:
    for name, done in deaths(lake, commit, tmp_path / "log"):
        changes = lake.capture(name, consumer="c")
        committed = "after Store.commit" in done
        assert bool(changes) is not committed, done
        if changes:
            assert rows_of(lake, TableName.of(changes.table)) == numbered(2, 3), done
            changes.commit()
        else:
            assert lake.clean().left_over == (), done
        moves = lake.history("c", name)
        assert len(moves) == 2, f"the checkpoint moved more than once after {done}"
        assert_nothing_is_left(lake, name, done)


def test_killed_while_abandoning(lake: Lake, tmp_path: Path) -> None:
    for name, done in deaths(lake, abandon, tmp_path / "log"):
        changes = lake.capture(name, consumer="c")
        assert rows_of(lake, TableName.of(changes.table)) == numbered(2, 3), done
        changes.commit()
        assert lake.clean().left_over == (), done
        assert_nothing_is_left(lake, name, done)


def test_killed_while_cleaning(lake: Lake, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for step in count():
        name = table_with_news(lake, step)
        changes = lake.capture(name, consumer="c")
        # As if the process that commits had died right after its transaction.
        lake.store.commit(changes.id, by="test", now=lake.clock())
        if not killed_at(step, lake.settings, clean, name, log):
            break
        done = log.read_text()
        assert lake.store.capture(changes.id).state is CaptureState.COMMITTED
        assert lake.clean().left_over == (), done
        assert_nothing_is_left(lake, name, done)
    assert step > 4


def test_captures_at_once_are_one(lake: Lake) -> None:
    for number in range(4):
        name = table_with_news(lake, number)
        answers = all_at_once(3, lake.settings, name)
        assert len(set(answers)) == 1, answers
        changes = lake.capture(name, consumer="c")
        assert [changes.id] == list(set(answers))
        assert change_tables(lake) == [TableName.of(changes.table)]
        assert rows_of(lake, TableName.of(changes.table)) == numbered(2, 3)
        changes.commit()
        assert_nothing_is_left(lake, name, "a race")
