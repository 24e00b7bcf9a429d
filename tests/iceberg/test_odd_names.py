"""Columns with names that SQL, people or captures themselves use for something else."""

from __future__ import annotations

import pytest

from dalsegno.errors import UnsupportedTable, UserError
from tests.iceberg.support import COPY_ON_WRITE, Place, rows
from tests.iceberg.test_changes import Told

pytestmark = pytest.mark.spark

ODD = ["a.b", "it's", 'say "so"', "a b", "tick`tock", "semi;colon", "😀", "select", "naïve--x", "{x}", "%s", "a/b=c"]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def test_names_that_need_quotes(place: Place) -> None:
    columns = ", ".join(f"{quoted(name)} int" for name in ODD)
    source = place.table(f"id int, {columns}", partitioned=", ".join(map(quoted, ODD)), properties=COPY_ON_WRITE)
    values = [", ".join(str(number) for _ in ODD) for number in range(3)]
    source.insert(f"1, {values[0]}", f"2, {values[1]}")
    source.capture(start="latest", changes="before_after")
    source.sql(f"update {{t}} set {quoted(ODD[0])} = 7 where id = 1")
    changes = source.capture(changes="before_after", keys=["id", ODD[4]], partitions=True, ranges=ODD)
    assert changes.changes_view
    (before, after) = (1, *[0] * len(ODD)), (1, 7, *[0] * (len(ODD) - 1))
    wanted = {"update_before": rows(before), "update_after": rows(after)}
    assert Told.by(place, changes).by_type == wanted
    view = place.spark_rows(f"select * from {changes.changes_view}")
    assert view == rows((*before, "update_before"), (*after, "update_after"))
    found = source.rows(f"select id from {{t}} where {changes.details['partition_filter']}")
    assert found == rows((1,))
    for name in ODD:
        assert source.rows(f"select id from {{t}} where {changes.ranges[name]['filter']}") >= rows((1,))
    keys = source.capture("keys", start="earliest", changes="keys", keys=[ODD[0], ODD[4]])
    assert place.spark_rows(keys.query()) == rows((7, 0), (1, 1))


@pytest.mark.parametrize("name", ["_change_type", "_Change_Type", "_dalsegno_more"])
def test_names_of_columns_that_a_query_adds(place: Place, name: str) -> None:
    source = place.table(f"id int, {name} string", properties=COPY_ON_WRITE)
    source.insert("1, 'x'")
    for changes in ("before_after", "upserts", "keys"):
        with pytest.raises(UnsupportedTable, match=rf"{name}.*Rename"):
            source.capture("odd", changes=changes, keys=["id"])
    assert place.lake.store.captures("odd") == []
    added = source.capture()
    assert place.rows_of(added) == rows((1, "x"))
    with pytest.raises(UserError, match=name):
        added.query()
    assert source.capture("range", changes="range", start="earliest")


def test_names_that_change_feeds_have(place: Place) -> None:
    """Iceberg's own, such as ``_row_id`` and ``_file``, Spark refuses to read."""
    source = place.table("id int, _change_ordinal bigint, _commit_snapshot_id bigint", properties=COPY_ON_WRITE)
    source.insert("1, 100, 1", "2, 2, 2")
    source.capture(start="latest", changes="before_after")
    source.sql("update {t} set id = 20 where id = 2")
    told = Told.by(place, source.capture(changes="before_after"))
    assert (told.added, told.removed) == (rows((20, 2, 2)), rows((2, 2, 2)))


def test_names_that_differ_by_case(place: Place) -> None:
    place.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        source = place.table("id int, A int, a int", properties=COPY_ON_WRITE)
        source.insert("1, 10, 100")
        source.capture(start="latest", changes="before_after")
        source.sql("update {t} set A = 11")
        changes = source.capture(changes="before_after", keys=["id"])
        told = Told.by(place, changes)
        assert (told.added, told.removed) == (rows((1, 11, 100)), rows((1, 10, 100)))
        with pytest.raises(UserError, match="upper and lower case"):
            changes.query("duckdb")
    finally:
        place.spark.conf.unset("spark.sql.caseSensitive")
