"""Captures as views, and views of changed rows: what Spark reads through them, and that nothing of them is left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from dalsegno import Changes, Lake
from dalsegno.errors import CapturePending, UnsupportedChange, UnsupportedTable, UserError
from dalsegno.model.tables import TableName
from tests.iceberg.support import (
    COPY_ON_WRITE,
    MERGE_MANIFESTS,
    MERGE_ON_READ,
    Place,
    Rows,
    Source,
    captured_from,
    files_below,
    numbered,
    rows,
    sqlite_settings,
)

pytestmark = pytest.mark.spark

KINDS = [
    pytest.param(1, COPY_ON_WRITE, id="v1"),
    pytest.param(2, MERGE_ON_READ, id="v2-merge-on-read"),
    pytest.param(3, MERGE_ON_READ, id="v3-merge-on-read"),
]


def view_of(source: Source, consumer: str = "c", **wishes: Any) -> Changes:
    return source.capture(consumer, mode="view", **wishes)


def seen(source: Source, changes: Changes) -> Rows:
    """What Spark reads through the view."""
    return source.place.spark_rows(f"select * from {changes.table}")


def views(place: Place) -> list[TableName]:
    return place.lake.catalog(place.catalog).views((place.lake.settings.change_namespace,))


def begun(place: Place, version: int = 2, **properties: str) -> Source:
    """A table whose first row is processed by c and d, and that has three more since."""
    source = place.table(version=version, properties=properties)
    source.insert("1")
    for consumer in ("c", "d"):
        source.capture(consumer, start="latest")
    source.insert("2", "3")
    source.insert("4")
    return source


# A range, as a view.


@pytest.mark.parametrize("version", [1, 2, 3])
def test_it_shows_what_a_change_table_shows(place: Place, version: int) -> None:
    source = begun(place, version, **MERGE_MANIFESTS)
    changes = view_of(source)
    source.insert("5")
    assert seen(source, changes) == numbered(2, 3, 4)
    assert (changes.rows, changes.files, changes.details["exact"]) == (3, source.capture("d").files - 1, True)
    assert place.spark_rows(changes.query()) == rows((2, "insert"), (3, "insert"), (4, "insert"))
    assert source.capture(mode="VIEW").id == changes.id, "handed out again"
    changes.commit()
    assert seen(source, view_of(source)) == numbered(5)


@pytest.mark.parametrize("version", [2, 3])
def test_the_source_and_other_ranges_of_it_in_one_statement(place: Place, version: int) -> None:
    """Spark mixes up the options of one table that it reads twice (SPARK-58330); each must be what it is."""
    source = begun(place, version)
    mine, other = view_of(source), view_of(source, "d", upto=str(source.snapshots[1]))
    ours, theirs, all_ = numbered(2, 3, 4), numbered(2, 3), numbered(1, 2, 3, 4)
    expected = {"mine": ours, "other": theirs, "source": all_}
    named = {"mine": mine.table, "other": other.table, "source": source.full}
    for order in (["mine", "other", "source"], ["source", "other", "mine"], ["other", "source", "mine"]):
        together = " union all ".join(f"select id, '{name}' from {named[name]}" for name in order)
        found = place.spark_rows(together)
        assert {name: Counter((row[0],) for row in found if row[1] == name) for name in order} == expected
    counts = f"select (select count(*) from {source.full}), (select count(*) from {mine.table})"
    assert place.sql(counts) == [(4, 3)]
    source.sql(f"merge into {{t}} t using {mine.table} s on t.id = s.id when matched then delete")
    assert source.rows() == numbered(1)
    assert seen(source, mine) == ours, "what the range added stays what it added"


@pytest.mark.parametrize("version", [2, 3])
def test_a_first_capture_and_a_whole_table(place: Place, version: int) -> None:
    source = place.table(version=version, properties=MERGE_ON_READ)
    source.insert("1", "2")
    source.insert("3")
    changes = view_of(source)
    source.sql("delete from {t} where id = 1")
    source.insert("4")
    assert seen(source, changes) == numbered(1, 2, 3)
    full = view_of(source, "full", start="full")
    assert seen(source, full) == source.rows() == numbered(2, 3, 4)
    joined = (
        f"select count(*) from {changes.table} a join {full.table} b on a.id = b.id join {source.full} t on a.id = t.id"
    )
    assert place.sql(joined) == [(2,)]


def test_compaction_inside_and_after_the_range(place: Place) -> None:
    source = begun(place)
    compact = f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))"
    place.call(compact)
    source.insert("5")
    changes = view_of(source)
    place.call(compact)
    place.call(f"expire_snapshots(table => '{source.name}', older_than => now(), retain_last => 1)")
    assert seen(source, changes) == numbered(2, 3, 4, 5)


def test_partitions_and_ranges_are_those_of_the_range_alone(place: Place) -> None:
    """They are told from manifests that also hold what came before."""
    source = place.table("id int, day string", partitioned="day", properties=MERGE_MANIFESTS)
    for number in range(4):
        source.insert(f"{number}, 'd{number}'")
        if number == 1:
            source.capture(start="latest")
    changes = view_of(source, ranges=["id", "day"], partitions=True)
    assert {part["values"]["day"]: part["novelty"] for part in changes.partitions or ()} == {"d2": "new", "d3": "new"}
    assert [(changes.ranges[name]["min"], changes.ranges[name]["max"]) for name in ("id", "day")] == [
        (2, 3),
        ("d2", "d3"),
    ]
    assert (changes.files, changes.rows) == (2, 2)
    assert view_of(source, ranges=["id"], partitions=True).ranges["id"]["max"] == 3


def test_a_branch(place: Place) -> None:
    source = place.table()
    source.insert("1")
    source.sql("alter table {t} create branch audit")
    source.capture("audit", branch="audit", start="latest")
    source.insert("10", into="{t}.branch_audit")
    source.insert("2")
    changes = view_of(source, "audit", branch="audit")
    assert seen(source, changes) == numbered(10)
    assert seen(source, view_of(source)) == numbered(1, 2)


def test_names_that_need_quotes(place: Place) -> None:
    source = place.table("`select` int, `a.b` string")
    source.insert("1, 'a'")
    source.capture("da.i-ly", start="latest")
    source.insert("2, 'b'")
    assert seen(source, view_of(source, "da.i-ly")) == rows((2, "b"))


def test_several_tables_of_which_one_has_nothing_new(place: Place) -> None:
    first, second, empty = place.table(), place.table(), place.table()
    first.insert("1")
    second.insert("1")
    names = [each.name for each in (first, second, empty)]
    place.lake.capture(*names, consumer="several", mode="view").commit()
    first.insert("2")
    changes = place.lake.capture(*names, consumer="several", mode="view")
    found = [place.spark_rows(f"select * from {captured.change_table}") for captured in changes.capture.tables]  # type: ignore[union-attr]
    assert found == [numbered(2), numbered(), numbered()]


# What is refused.


def test_a_range_with_other_changes(place: Place) -> None:
    source = begun(place)
    source.sql("delete from {t} where id = 1")
    with pytest.raises(UnsupportedChange, match="not an append"):
        view_of(source)
    with pytest.raises(UserError, match="A capture as a view can only show what was appended"):
        view_of(source, changes="before_after")
    with pytest.raises(UserError, match="found added of append, overwrite"):
        view_of(source, changes="added", operations=["append", "overwrite"])
    with pytest.raises(UserError, match="'table' is not a known mode: expected icdc, view"):
        source.capture(mode="table")
    assert place.lake.store.pending("c", place.lake.name(source.name)) is None


def test_a_lake_without_pins(unpinned: Place) -> None:
    source = unpinned.table()
    source.insert("1")
    with pytest.raises(UserError, match="set to pin = false"):
        view_of(source)


def test_another_schema_than_that_of_the_end(place: Place) -> None:
    source = place.table("id int, v string")
    source.insert("1, 'a'")
    source.capture(start="latest")
    source.insert("2, 'b'")
    source.sql("alter table {t} add column n int")
    assert seen(source, view_of(source)) == rows((2, "b", None)), "a range is read with the table's schema"
    with pytest.raises(UnsupportedTable, match="expected column 'n' of type int, found no such column"):
        view_of(source, "first")
    upto = str(source.head)
    source.insert("3, 'c', 3")
    source.sql("alter table {t} rename column v to w")
    source.capture("other", start=str(source.snapshots[0]), upto=upto).abandon()
    with pytest.raises(UnsupportedTable, match="expected column 'v' of type string, found column 'w' of type string"):
        view_of(source, "other", start=str(source.snapshots[0]), upto=upto)


def test_a_pending_capture_of_the_other_mode(place: Place) -> None:
    source = begun(place)
    changes = view_of(source)
    with pytest.raises(CapturePending, match=changes.id):
        source.capture()


def test_another_engine(place: Place) -> None:
    source = begun(place)
    changes = view_of(source)
    with pytest.raises(UserError, match="is a view, which only Spark reads"):
        changes.query("duckdb")


def test_a_catalog_without_views(tmp_path: Path, place: Place) -> None:
    """A catalog's table from before there were views cannot tell them from tables."""
    settings = sqlite_settings(tmp_path, "old")
    engine = create_engine(settings.catalogs["old"].uri or "")
    with engine.connect() as connection:
        for statement in (
            "create table iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
            "previous_metadata_location, primary key (catalog_name, table_namespace, table_name))",
            "create table iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)",
        ):
            connection.execute(text(statement))
        connection.commit()
    source = begun(place)
    with Lake.open(settings) as lake:
        catalog = lake.catalog("old")
        catalog.pyiceberg.create_namespace("db")
        catalog.register(TableName("old", ("db",), "t"), source.pyiceberg.metadata_location)
        with pytest.raises(UserError, match=r"Catalog 'old' \(sql\) has no views"):
            lake.capture("db.t", consumer="c", mode="view")
        changes = lake.capture("db.t", consumer="c", changes="before_after")
        assert changes.changes_view is None
        assert "has no views" in changes.details["no_changes_view_because"]
        assert changes.commit().left_over == ()
    engine.dispose()


# What becomes of views.


@pytest.mark.parametrize("end", ["commit", "abandon"])
def test_it_goes_with_the_capture(place: Place, end: str) -> None:
    source = begun(place)
    changes = view_of(source)
    name = TableName.of(changes.table)
    assert name in views(place)
    assert name not in place.change_tables()
    folder = Path(captured_from(changes, source).location)
    assert [path.name[:10] for path in files_below(folder)] == [changes.id]
    getattr(changes, end)()
    assert name not in views(place)
    assert not folder.exists()
    assert source.rows() == numbered(1, 2, 3, 4)
    place.lake.drop(changes.id)


def test_a_dropped_view_is_made_anew(place: Place) -> None:
    source = begun(place)
    changes = view_of(source)
    place.sql(f"drop view {changes.table}")
    again = view_of(source)
    assert (again.id, again.is_resumed) == (changes.id, True)
    assert seen(source, again) == numbered(2, 3, 4)


def test_one_that_came_late_is_cleaned(place: Place) -> None:
    """As if a process had made it after another had settled its capture."""
    source = begun(place)
    changes = view_of(source)
    changes.commit()
    of_capture = f"tblproperties ('dalsegno.capture-id' = '{changes.id}')"
    place.sql(f"create view {changes.table} {of_capture} as select 1 as id")
    assert changes.id in place.lake.clean().dropped
    assert TableName.of(changes.table) not in views(place)


def test_a_name_that_is_taken(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    source = begun(place)
    catalog = place.lake.catalog(place.catalog)
    create_view = catalog.create_view

    def late(name: TableName, *args: Any) -> bool:
        place.sql(f"create view {name} as select 1 as id")
        return create_view(name, *args)

    monkeypatch.setattr(catalog, "create_view", late)
    with pytest.raises(Exception, match="that is not of this capture"):
        view_of(source)


# The changed rows, as a view.


@pytest.mark.parametrize(("version", "modes"), KINDS)
@pytest.mark.parametrize("kind", ["before_after", "upserts", "keys", "range"])
def test_the_changed_rows(place: Place, version: int, modes: dict[str, str], kind: str) -> None:
    source = place.table("id bigint, day string, v decimal(5, 2)", version=version, properties=modes)
    source.insert(*(f"{number}, 'd{number % 3}', {number}" for number in range(6)))
    source.capture(start="latest", changes=kind, keys=["id"])
    source.sql("update {t} set v = 100 where id = 4", "delete from {t} where id = 5")
    source.insert("70, 'd7', 70")
    changes = source.capture(changes=kind, keys=["id"])
    assert changes.changes_view == f"{changes.table}_changes"
    query = place.spark.sql(changes.query())
    assert query.columns == place.spark.table(changes.changes_view).columns
    found = place.spark_rows(f"select * from {changes.changes_view}")
    assert found == place.spark_rows(changes.query())
    assert found.total() == {"before_after": 4, "range": 4, "upserts": 2, "keys": 3}[kind]
    described = place.spark_rows(
        f"select c.id, s.id from {changes.changes_view} c left join {source.full} s on c.id = s.id"
    )
    assert described.total() == found.total()
    changes.commit()
    assert TableName.of(changes.changes_view) not in views(place)
    folder = Path(f"{captured_from(changes, source).location}_changes")
    assert not folder.exists()


def test_columns_of_every_shape(place: Place) -> None:
    source = place.table("id int, s struct<a: int, b: array<string>>, ts timestamp, bin binary", version=3)
    source.insert("1, named_struct('a', 1, 'b', array('x')), timestamp '2026-01-01', x'01'")
    source.capture(start="latest", changes="before_after")
    source.sql("update {t} set id = 2", "alter table {t} add column more int")
    changes = source.capture(changes="before_after")
    assert place.spark_rows(f"select * from {changes.changes_view}") == place.spark_rows(changes.query())


def test_a_dropped_view_of_changes_is_made_anew(place: Place) -> None:
    source = begun(place)
    changes = source.capture(changes="before_after")
    place.sql(f"drop view {changes.changes_view}")
    again = source.capture(changes="before_after")
    assert again.id == changes.id
    assert place.spark_rows(f"select id from {again.changes_view}") == numbered(2, 3, 4)


def test_added_files_need_none(place: Place) -> None:
    changes = begun(place).capture()
    assert (changes.changes_view, changes.details["no_changes_view_because"]) == (None, None)
