"""Schemas that changed before, inside and at the end of a range: a change table is read as its source is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dalsegno import Changes
from tests.iceberg.support import Place, Source, captured_from, numbered, rows

pytestmark = pytest.mark.spark


def schema_in(metadata: dict[str, Any]) -> Any:
    """The current schema with all its ids, as the metadata file says it."""
    current = metadata["current-schema-id"]
    return next(schema for schema in metadata["schemas"] if schema["schema-id"] == current)


def assert_read_like_the_source(source: Source, changes: Changes, after: int) -> None:
    """The same columns with the same ids, and the rows that Spark's own incremental read gives."""
    place = source.place
    assert schema_in(place.metadata(changes.identifier)) == schema_in(source.metadata)
    assert place.rows_of(changes) == source.added(after, source.head)
    by_spark = place.spark.table(changes.table).schema
    assert by_spark == place.spark.table(source.full).schema


CHANGES = {
    "dropped": ["alter table {t} drop column a"],
    "dropped and added again": ["alter table {t} drop column a", "alter table {t} add column a int"],
    "added in front": ["alter table {t} add column first string first"],
    "moved": ["alter table {t} alter column b first"],
    "renamed": ["alter table {t} rename column a to z"],
    "names swapped": [
        "alter table {t} rename column a to tmp",
        "alter table {t} rename column b to a",
        "alter table {t} rename column tmp to b",
    ],
    "nested added": ["alter table {t} add column s.more string", "alter table {t} add column s.first int first"],
    "nested dropped and added again": [
        "alter table {t} drop column s.x",
        "alter table {t} add column s.x int",
    ],
    "in a list of structs": ["alter table {t} add column l.element.q int"],
    "promoted": [
        "alter table {t} alter column a type bigint",
        "alter table {t} alter column f type double",
        "alter table {t} alter column d type decimal(20, 2)",
    ],
}
COLUMNS = "id int, a int, b int, f float, d decimal(9, 2), s struct<x: int, y: int>, l array<struct<p: int>>"
NESTED = {
    "s": '{"x": ID, "y": -ID, "more": "more", "first": ID}',
    "l": '[{"p": ID, "q": ID}]',
}


def insert_by_name(source: Source, id_: int) -> None:
    """Append a row with the columns there are now; the ones that were added later stay empty."""
    known = {
        "id": f"{id_}",
        "a": f"{id_} * 10",
        "b": f"{id_} * 100",
        "f": f"cast({id_} as float) / 4",
        "d": f"{id_}.25bd",
        "z": f"{id_} * 10",
        "first": "'first'",
    }
    columns = source.place.spark.table(source.full).schema.fields
    values = [
        f"cast({known[field.name]} as {field.dataType.simpleString()})"
        if field.name in known
        else f"from_json('{NESTED[field.name].replace('ID', str(id_))}', '{field.dataType.simpleString()}')"
        for field in columns
    ]
    source.sql(f"insert into {{t}} select {', '.join(values)}")


@pytest.mark.parametrize("change", CHANGES)
def test_changed_inside_and_before_the_range(place: Place, change: str) -> None:
    source = place.table(COLUMNS)
    insert_by_name(source, 1)
    after = source.head
    assert not source.capture(start="latest")
    insert_by_name(source, 2)
    source.sql(*CHANGES[change])
    insert_by_name(source, 3)
    changes = source.capture()
    assert changes.details["schema_changed"]
    assert_read_like_the_source(source, changes, after)
    changes.commit()
    after = source.head
    insert_by_name(source, 4)
    changes = source.capture()
    assert not changes.details["schema_changed"]
    assert_read_like_the_source(source, changes, after)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_values_of_a_dropped_column_do_not_come_back(place: Place, version: int) -> None:
    """Made from a schema instead of a clone, `c` would be read from the column that was `b`."""
    source = place.table("id int, b int, c int", version=version)
    source.sql("alter table {t} drop column b")
    source.insert("1, 30")
    assert source.taken() == rows((1, 30))
    source.sql("alter table {t} add column b int after id")
    source.insert("2, 20, 30")
    assert source.taken() == rows((2, 20, 30))
    assert source.taken("other") == rows((1, None, 30), (2, 20, 30))


def test_schema_changed_without_a_snapshot(place: Place) -> None:
    source = place.table("id int, a int")
    source.insert("1, 10")
    source.taken()
    source.sql("alter table {t} add column b int", "alter table {t} rename column a to z")
    assert not source.capture(), "a schema alone is nothing to process"
    assert source.taken("late") == rows((1, 10, None))
    source.insert("2, 20, 200")
    changes = source.capture()
    assert changes.details["schema_changed"]
    assert place.rows_of(changes) == rows((2, 20, 200))
    assert place.spark.table(changes.table).columns == ["id", "z", "b"]


def test_promoted_values_and_their_ranges(place: Place) -> None:
    source = place.table("a int, f float, d decimal(9, 2)")
    source.insert("1, 0.5, 1.25")
    source.sql(*CHANGES["promoted"])
    source.insert("9000000000, 1e300, 123456789012.25")
    changes = source.capture(ranges=["a", "f", "d"])
    expected = rows((1, 0.5, Decimal("1.25")), (9_000_000_000, 1e300, Decimal("123456789012.25")))
    assert place.rows_of(changes) == expected
    assert {name: (item["min"], item["max"]) for name, item in changes.ranges.items()} == {
        "a": (1, 9_000_000_000),
        "f": (0.5, 1e300),
        "d": ("1.25", "123456789012.25"),
    }


def cut_after(source: Source, snapshot_id: int) -> Any:
    """A clock that stands still right after a snapshot."""
    taken_at = next(s["timestamp-ms"] for s in source.metadata["snapshots"] if s["snapshot-id"] == snapshot_id)
    moment = datetime.fromtimestamp(taken_at / 1000, UTC) + timedelta(microseconds=1)
    return lambda: moment


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_range_cut_before_the_schema_changed(place: Place, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read with the schema of its end, also where the table's spec and order need a column that came later."""
    source = place.table("id int, a int", partitioned="a", version=version)
    other = place.table()
    other.insert("1")
    source.insert("1, 10")
    cut = source.head
    source.sql(
        "alter table {t} add column b int",
        "alter table {t} replace partition field a with bucket(4, b)",
        "alter table {t} write ordered by b",
        "alter table {t} drop column a" if version == 2 else "alter table {t} rename column id to key",
    )
    source.insert("2, 20" if version == 2 else "2, 20, 200")
    monkeypatch.setattr(place.lake, "clock", cut_after(source, cut))
    changes = place.lake.capture(source.name, other.name, consumer="cut")
    assert place.rows_of_each(changes) == {source.name: rows((1, 10)), other.name: numbered(1)}
    table = captured_from(changes, source).change_table
    assert place.spark.table(str(table)).columns == ["id", "a"]
    assert captured_from(changes, source).details["partitions"][0]["values"] == {"a": 10}
    changes.commit()
    monkeypatch.undo()
    changes = place.lake.capture(source.name, other.name, consumer="cut")
    expected = rows((2, 20)) if version == 2 else rows((2, 20, 200))
    assert place.rows_of_each(changes)[source.name] == expected


def test_a_range_cut_where_no_spec_fits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only spec is by a column that the older schema does not have."""
    source = place.table("id int", partitioned="")
    source.insert("1")
    cut = source.head
    source.sql(
        "alter table {t} add column b int", "alter table {t} drop column id", "alter table {t} add column id int"
    )
    source.insert("20, 2")
    other = place.table()
    monkeypatch.setattr(place.lake, "clock", cut_after(source, cut))
    changes = place.lake.capture(source.name, other.name, consumer="nospec")
    assert place.rows_of_each(changes) == {source.name: numbered(1), other.name: rows()}


def test_default_values(place: Place) -> None:
    """A column of version 3 may have a value for the rows that were there before it."""
    source = place.table("id int", version=3)
    source.insert("1")
    jvm: Any = place.spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(place.spark._jsparkSession, source.full)
    types, literal = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal
    table.updateSchema().addColumn("n", types.IntegerType.get(), "", literal.of(7)).commit()
    source.insert("2, 20")
    changes = source.capture()
    by_spark = place.spark_rows(f"select * from {changes.table}")
    assert by_spark == source.rows() == rows((1, 7), (2, 20))


def test_a_type_that_pyiceberg_does_not_know(place: Place) -> None:
    source = place.table("id int, day date, v variant", partitioned="day", version=3)
    source.sql("insert into {t} select 1, date '2026-11-15', parse_json('{\"a\": 1}')")
    changes = source.capture(ranges=["id", "day"], partitions=True)
    assert place.spark_rows(f"select id, v:a::int from {changes.table}") == rows((1, 1))
    assert [item["values"] for item in changes.partitions or ()] == [{"day": "2026-11-15"}]
    assert {name: (item["min"], item["max"]) for name, item in changes.ranges.items()} == {
        "id": (1, 1),
        "day": ("2026-11-15", "2026-11-15"),
    }
