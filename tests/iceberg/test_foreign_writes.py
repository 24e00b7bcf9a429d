"""Change tables that somebody wrote to: they are made anew, and never handed out with other rows than were captured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dalsegno import Changes
from dalsegno.errors import DataError
from tests.iceberg.row_deltas import row_delta
from tests.iceberg.support import COPY_ON_WRITE, Place, Source, numbered, rows
from tests.iceberg.test_changes import Told

pytestmark = pytest.mark.spark

WRITES = {
    "rows more": "insert into {t} values (99)",
    "replaced": "create or replace table {t} (id int) using iceberg",
    "another name": "alter table {t} rename column id to other",
    "a branch": "alter table {t} create branch aside",
}


def begun(place: Place, version: int = 2) -> Source:
    source = place.table("id int", version=version, properties=COPY_ON_WRITE)
    source.insert("1", "2")
    source.capture(start="latest", changes="before_after")
    source.capture("added", start="latest")
    return source


@pytest.mark.parametrize("write", WRITES)
def test_it_is_made_anew(place: Place, write: str) -> None:
    source = begun(place)
    source.insert("3")
    changes = source.capture("added")
    place.sql(WRITES[write].replace("{t}", changes.table))
    again = source.capture("added")
    assert (again.id, again.is_resumed) == (changes.id, True)
    assert place.rows_of(again) == numbered(3)
    assert again.commit().left_over == ()
    assert place.lake.checkpoint(source.name, consumer="added").position.snapshot_id == source.head


@pytest.mark.parametrize("of", [lambda c: c.table, lambda c: c.before], ids=["after", "before"])
def test_both_ends(place: Place, of: Callable[[Changes], str]) -> None:
    source = begun(place)
    source.sql("delete from {t} where id = 1")
    changes = source.capture(changes="before_after")
    place.sql(f"insert into {of(changes)} values (99)")
    with pytest.raises(DataError, match="wrote to"):
        changes.commit()
    again = source.capture(changes="before_after")
    assert Told.by(place, again).by_type == {"delete": numbered(1)}
    again.commit()


def test_deleted_keys(place: Place) -> None:
    source = begun(place)
    row_delta(source, deletes=[(1,)], by=["id"], inserts=[])
    changes = source.capture(changes="before_after")
    place.sql(f"insert into {changes.deleted_keys} values (99)")
    again = source.capture(changes="before_after")
    assert place.spark_rows(f"select * from {again.deleted_keys}") == rows((1,))


def test_a_capture_that_was_not_finished(place: Place) -> None:
    """What an earlier attempt has registered is taken over only if nobody wrote to it."""
    source = begun(place)
    source.insert("3")
    changes = source.capture("added")
    place.sql(f"insert into {changes.table} values (99)")
    store = place.lake.store
    with store.database.writing() as connection:
        connection.exec_driver_sql("update captures set state = 'preparing' where id = ?", (changes.id,))
    assert place.rows_of(source.capture("added")) == numbered(3)


def test_views(place: Place) -> None:
    source = begun(place)
    source.insert("3")
    changes = source.capture(changes="before_after")
    place.sql(f"create or replace view {changes.changes_view} as select 99 as id, 'insert' as _change_type")
    again = source.capture(changes="before_after")
    assert place.spark_rows(f"select * from {again.changes_view}") == rows((3, "insert"))
    shown = source.capture("added", mode="view")
    place.sql(f"create or replace view {shown.table} as select 99 as id")
    assert place.spark_rows(f"select * from {source.capture('added', mode='view').table}") == numbered(3)


def test_what_is_gone_can_be_committed(place: Place) -> None:
    source = begun(place)
    source.insert("3")
    changes = source.capture("added")
    place.sql(f"drop table {changes.table}")
    assert changes.commit().is_new
