"""What a capture cannot prove it refuses: it says what was found and what to do, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dalsegno.errors import (
    CapturePending,
    DalsegnoError,
    HistoryLost,
    UnknownName,
    UnsupportedChange,
    UnsupportedTable,
    UserError,
)
from tests.iceberg.support import CONSUMER, COPY_ON_WRITE, MERGE_ON_READ, Place, Source, arrow_rows, numbered, rows

pytestmark = pytest.mark.spark


@contextmanager
def refused(source: Source, kind: type[DalsegnoError], *said: str) -> Iterator[None]:
    """The block is refused with this kind of error, which says all of this, and leaves everything as it was."""
    before = _state(source)
    with pytest.raises(kind) as refusal:
        yield
    assert type(refusal.value) is kind
    for words in said:
        assert words in str(refusal.value)
    assert _state(source) == before


def _state(source: Source) -> Any:
    lake = source.place.lake
    return (
        lake.checkpoints(),
        [capture.id for capture in lake.store.captures()],
        source.place.change_tables(),
        _metadata_location(source),
    )


def _metadata_location(source: Source) -> str | None:
    try:
        return source.place.lake.load(source.place.lake.name(source.name)).metadata_location
    except UnknownName:
        return None


CHANGES = {
    "insert overwrite": ("overwrite", "insert overwrite {t} values (7, 'x')"),
    "merge": (
        "overwrite",
        "merge into {t} using (select 1 as id, 'z' as v) s on {t}.id = s.id when matched then update set v = s.v",
    ),
    "update": ("overwrite", "update {t} set v = 'z' where id = 1"),
    "delete of all": ("delete", "delete from {t}"),
    "truncate": ("delete", "truncate table {t}"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_that_are_not_appends(place: Place, change: str) -> None:
    operation, statement = CHANGES[change]
    source = place.table("id int, v string", properties=COPY_ON_WRITE)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b')")
    source.taken()
    source.insert("3, 'c'")
    source.sql(statement)
    assert source.operations[-1] == operation
    with refused(
        source,
        UnsupportedChange,
        f"snapshot {source.head}",
        f"of kind '{operation}'",
        f"dalsegno capture {source.full} --consumer {CONSUMER} --from full",
        f"dalsegno capture {source.full} --consumer {CONSUMER} --changes before_after",
    ):
        source.capture()
    assert source.taken(start="full") == source.rows()
    source.insert("9, 'i'")
    assert source.taken() == rows((9, "i"))


def test_stepping_over_a_refused_change(place: Place) -> None:
    source = place.table("id int")
    source.insert("1")
    source.taken()
    source.sql("delete from {t}")
    with refused(source, UnsupportedChange):
        source.capture()
    place.lake.set_checkpoint(source.name, consumer=CONSUMER, to=str(source.head))
    source.insert("2")
    assert source.taken() == numbered(2)


@pytest.mark.parametrize("version", [2, 3], ids=["position deletes", "deletion vectors"])
@pytest.mark.parametrize("statement", ["delete from {t} where id = 2", "update {t} set v = 'z' where id = 2"])
def test_rows_deleted_merge_on_read(place: Place, version: int, statement: str) -> None:
    """Refused as a change; a capture of the whole table applies the deletes."""
    source = place.table("id int, v string", version=version, properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b'), (3, 'c')")
    source.taken()
    source.sql(statement)
    assert place.sql(f"select count(*) from {source.full}.delete_files") == [(1,)]
    with refused(source, UnsupportedChange, f"snapshot {source.head}"):
        source.capture()
    changes = source.capture(start="full")
    expected = source.rows()
    assert place.rows_of(changes) == expected
    assert place.sql(f"select count(*) from {changes.table}") == [(expected.total(),)]
    assert place.pyiceberg(changes.identifier).scan().count() == expected.total()
    changes.commit()
    source.insert("4, 'd'")
    assert source.taken() == rows((4, "d"))


def test_appends_before_rows_were_deleted_are_exact(place: Place) -> None:
    """The delete files of the table are not those of a range without deletes."""
    source = place.table("id int", properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1), (2), (3)")
    source.sql("delete from {t} where id = 2")
    assert source.taken(start="full") == numbered(1, 3)
    source.insert("4")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(4)
    assert place.sql(f"select * from {changes.table}.delete_files") == []


def test_rolled_back_behind_the_checkpoint(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.insert("2")
    source.taken()
    checkpoint = source.head
    place.call(f"rollback_to_snapshot('{source.name}', {source.snapshots[0]})")
    with refused(source, HistoryLost, "was rolled back", f"snapshot {checkpoint}", str(source.head), "--from full"):
        source.capture()
    source.insert("3")
    with refused(source, HistoryLost, "was rolled back", f"snapshot {checkpoint}"):
        source.capture()
    assert source.taken(start="full") == numbered(1, 3)
    source.insert("4")
    assert source.taken() == numbered(4)


def test_rolled_back_and_forth(place: Place) -> None:
    """Who comes back to the checkpoint has lost nothing."""
    source = place.table()
    source.insert("1")
    source.insert("2")
    source.taken()
    checkpoint = source.head
    place.call(f"rollback_to_snapshot('{source.name}', {source.snapshots[0]})")
    place.call(f"set_current_snapshot('{source.name}', {checkpoint})")
    assert not source.capture()
    source.insert("3")
    assert source.taken() == numbered(3)


def test_rolled_back_while_a_capture_is_pending(place: Place) -> None:
    """What was captured can be processed; what follows is refused."""
    source = place.table()
    source.insert("1")
    source.taken()
    source.insert("2")
    changes = source.capture()
    place.call(f"rollback_to_snapshot('{source.name}', {source.snapshots[0]})")
    assert place.rows_of(source.capture()) == numbered(2)
    assert source.capture().id == changes.id
    changes.commit()
    with refused(source, HistoryLost, "was rolled back"):
        source.capture()


@pytest.mark.parametrize("how", ["as select", "empty, then an insert"])
def test_replaced(place: Place, how: str) -> None:
    """The table keeps its uuid and its old snapshots; the insert looks like any other append."""
    source = place.table()
    source.insert("1")
    source.taken()
    uuid = source.metadata["table-uuid"]
    if how == "as select":
        source.sql("create or replace table {t} using iceberg as select 7 as id")
    else:
        source.sql("create or replace table {t} (id int) using iceberg")
        with refused(source, HistoryLost, "has lost its history"):
            source.capture()
        source.insert("7")
        assert source.operations[-1] == "append"
    assert source.metadata["table-uuid"] == uuid
    with refused(source, HistoryLost, "was replaced", f"snapshot {source.head}", "--from full"):
        source.capture()
    assert source.taken(start="full") == numbered(7)


def test_a_replaced_table_begins_anew_for_new_consumers(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.sql("create or replace table {t} (id int) using iceberg")
    source.insert("7")
    assert source.taken() == numbered(7)


def test_dropped_and_created_anew(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.taken()
    uuid = source.metadata["table-uuid"]
    source.sql("drop table {t}", "create table {t} (id int) using iceberg")
    source.insert("1")
    with refused(source, HistoryLost, "was dropped and created anew", uuid, source.metadata["table-uuid"]):
        source.capture()
    assert source.taken(start="full") == numbered(1)
    source.insert("2")
    assert source.taken() == numbered(2)


def test_dropped_while_a_capture_is_pending(place: Place) -> None:
    source = place.table()
    source.insert("1")
    changes = source.capture()
    source.sql("drop table {t}")
    assert changes.commit().left_over == ()
    with refused(source, UnknownName, "there is no such table"):
        source.capture()


@pytest.mark.parametrize("version", [2, 3])
def test_encrypted_tables(place: Place, version: int) -> None:
    source = place.table(version=version)
    source.insert("1")
    source.sql("alter table {t} set tblproperties ('encryption.key-id' = 'key')")
    with refused(source, UnsupportedTable, "is encrypted"):
        source.capture()


def test_names_that_are_not_there(place: Place) -> None:
    source = place.table("id int, name string, s struct<x: int>")
    source.insert("1, 'a', null")
    with refused(source, UnknownName, "there is no such table", "dalsegno catalogs tables"):
        place.lake.capture("db.nothing", consumer=CONSUMER)
    with refused(source, UnknownName, "no branch 'nope'", "it has main"):
        source.capture(branch="nope")
    with refused(source, UnknownName, "no column 'nme'", "Did you mean 'name'?"):
        source.capture(ranges=["id", "nme"])
    with refused(source, UserError, "is a struct", "single values"):
        source.capture(ranges=["s"])
    with refused(source, UserError, "is not in the history"):
        source.capture(start="12345")
    with refused(source, UserError, "'soon' cannot be a start"):
        source.capture(start="soon")
    with refused(source, UserError, "cannot be the name of a consumer"):
        source.capture("a consumer")
    assert source.taken(ranges=["id", "s.x"]).total() == 1


def test_a_start_is_chosen_once(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.taken()
    source.insert("2")
    with refused(source, UserError, "has a checkpoint", "without --from"):
        source.capture(start="latest")
    source.capture()
    with refused(source, CapturePending, "has another capture pending", "dalsegno abandon"):
        source.capture(start="full")
    with refused(source, CapturePending, "has another capture pending"):
        source.capture(branch="other")


def test_a_vanished_manifest_list(place: Place) -> None:
    """Somebody deleted metadata files: an error with a name, and no half-made change table."""
    source = place.table()
    source.insert("1")
    source.taken()
    source.insert("2")
    lost = next(s["manifest-list"] for s in source.metadata["snapshots"] if s["snapshot-id"] == source.head)
    (place.folder / lost).unlink()
    tables = place.change_tables()
    with pytest.raises(DalsegnoError, match="vanished"):
        source.capture()
    assert place.change_tables() == tables


def test_full_is_what_a_reader_sees(place: Place) -> None:
    source = place.table("id int, part string", partitioned="part", properties=MERGE_ON_READ)
    source.sql("insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'a'), (3, 'b')")
    source.sql("alter table {t} add partition field bucket(2, id)", "alter table {t} add column n int")
    source.insert("4, 'c', 40", "5, 'a', 50")
    source.sql("delete from {t} where id in (1, 4)")
    place.call(f"rewrite_manifests('{source.name}')")
    changes = source.capture(start="full")
    assert place.rows_of(changes) == source.rows()
    assert arrow_rows(place.pyiceberg(changes.identifier).scan("part == 'a'").to_arrow()) == rows(
        (2, "a", None), (5, "a", 50)
    )
    source.sql("delete from {t} where id = 2")
    assert place.rows_of(source.capture()) == rows((2, "a", None), (3, "b", None), (5, "a", 50))
    changes.commit()
    with refused(source, UnsupportedChange):
        source.capture()
