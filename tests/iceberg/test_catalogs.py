"""The whole flow on each kind of catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dalsegno import Changes, Lake
from dalsegno.errors import UnsupportedChange
from dalsegno.iceberg import publishing
from dalsegno.iceberg.evidence import Absent, Written, state_of
from dalsegno.iceberg.history import branch_heads
from tests.iceberg.support import (
    MERGE_MANIFESTS,
    Place,
    Source,
    fresh_name,
    numbered,
    rows,
)
from tests.lakes.catalogs import make_settings, stored_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = [
    pytest.param("sqlite", marks=pytest.mark.spark),
    pytest.param("postgres", marks=[pytest.mark.spark, pytest.mark.postgres]),
    pytest.param("rest", marks=[pytest.mark.spark, pytest.mark.rest]),
    pytest.param("postgres on s3", marks=[pytest.mark.spark, pytest.mark.postgres, pytest.mark.prove_lakes]),
    pytest.param("rest on s3", marks=[pytest.mark.spark, pytest.mark.rest, pytest.mark.prove_lakes]),
    pytest.param("glue", marks=[pytest.mark.spark, pytest.mark.prove_lakes]),
    pytest.param("hive", marks=[pytest.mark.spark, pytest.mark.prove_lakes]),
]


@pytest.fixture(scope="module", params=KINDS)
def place(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    settings = make_settings(request.param, request, folder, fresh_name())
    for catalog in settings.catalogs.values():
        # Iceberg's client of Glue does not look for keys among a catalog's properties.
        for name, value in {"accessKeyId": "access-key-id", "secretAccessKey": "secret-access-key"}.items():
            if f"s3.{value}" in catalog.properties:
                spark._jvm.java.lang.System.setProperty(f"aws.{name}", catalog.properties[f"s3.{value}"])  # type: ignore[union-attr]
    made = Place.make(spark, folder, settings)
    yield made
    made.lake.close()


@pytest.fixture
def place_with_views(place: Place) -> Place:
    catalog = place.lake.catalog(place.catalog)
    if not catalog.has_views:
        pytest.skip(f"a catalog of type {catalog.settings.type} has no views")
    return place


def stored(place: Place, location: str) -> set[str]:
    return stored_below(location, dict(place.lake.settings.catalogs[place.catalog].properties))


@pytest.mark.parametrize("version", [2, 3])
def test_the_whole_flow(place: Place, version: int) -> None:
    source = place.table("id int", version=version, properties=MERGE_MANIFESTS)
    source.insert("1", "2")
    changes = source.capture(ranges=["id"], partitions=True)
    assert place.rows_of(changes) == numbered(1, 2)
    assert (changes.rows, changes.ranges["id"]["min"], changes.ranges["id"]["max"]) == (2, 1, 2)
    assert changes.details["pinned"], changes.details["pin"]
    pin = source.metadata["refs"]["dalsegno_c"]
    assert (pin["type"], pin["snapshot-id"]) == ("branch", source.head)
    assert source.capture().id == changes.id
    location = changes.tables[place.lake.name(source.name)].location
    assert stored(place, location)
    assert changes.commit().left_over == ()
    assert not stored(place, location)
    assert changes.identifier not in [name.identifier for name in place.change_tables()]
    assert not source.capture()
    source.insert("3")
    source.insert("4")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(3, 4)
    assert source.metadata["refs"]["dalsegno_c"]["min-snapshots-to-keep"] == 3
    place.call(f"rewrite_data_files(table => '{source.name}', options => map('rewrite-all', 'true'))")
    place.call(f"expire_snapshots(table => '{source.name}', older_than => now(), retain_last => 1)")
    assert place.rows_of(changes) == numbered(3, 4)
    changes.abandon()
    assert source.taken() == numbered(3, 4)
    source.sql("delete from {t}")
    with pytest.raises(UnsupportedChange):
        source.capture()
    assert not source.taken(start="full")


@pytest.mark.spark
@pytest.mark.parametrize("place", ["glue", pytest.param("postgres on s3", marks=pytest.mark.postgres)], indirect=True)
def test_the_shortest_flow_on_s3(place: Place) -> None:
    """The rest of the flow, on these kinds, takes long: `make prove-lakes`."""
    source = place.table("id int", version=3)
    source.insert("1", "2")
    changes = source.capture()
    assert place.rows_of(changes) == numbered(1, 2)
    assert changes.details["pinned"], changes.details["pin"]
    location = changes.tables[place.lake.name(source.name)].location
    assert stored(place, location)
    assert changes.commit().left_over == ()
    assert not stored(place, location)
    assert not source.capture()


def test_a_capture_as_a_view(place_with_views: Place) -> None:
    place = place_with_views
    source = place.table()
    source.insert("1")
    first = source.capture(mode="view")
    assert place.spark_rows(f"select * from {first.table}") == numbered(1)
    first.commit()
    source.insert("2")
    source.insert("3")
    changes = source.capture(mode="view")
    assert source.capture(mode="view").id == changes.id
    both = f"select r.id from {source.full} t join {changes.table} r on t.id >= r.id"
    assert place.spark_rows(both) == numbered(2, 2, 3)
    assert_gone_with(place, changes)


def test_a_view_of_the_changed_rows(place_with_views: Place) -> None:
    place = place_with_views
    source = place.table("id int, v int", version=3)
    source.insert("1, 1", "2, 2")
    source.capture(start="latest", changes="before_after")
    source.sql("update {t} set v = 10 where id = 1", "delete from {t} where id = 2")
    changes = source.capture(changes="before_after")
    assert place.spark_rows(f"select * from {changes.changes_view}") == rows(
        (1, 1, "update_before"), (1, 10, "update_after"), (2, 2, "delete")
    )
    assert source.capture(changes="before_after").id == changes.id
    assert_gone_with(place, changes)


def assert_gone_with(place: Place, changes: Changes) -> None:
    """Nothing of a capture is left after its commit: no table, no view, no file."""
    catalog, (captured,) = place.lake.catalog(place.catalog), changes.tables.values()
    folder, name = captured.location.rpartition("/")[0], captured.change_table.name
    assert [path for path in stored(place, folder) if name in path]
    assert [view for view in catalog.views(captured.change_table.namespace) if view.name.startswith(name)]
    assert changes.commit().left_over == ()
    assert not [path for path in stored(place, folder) if name in path]
    names = {*place.change_tables(), *catalog.views(captured.change_table.namespace)}
    assert not [each for each in names if each.name.startswith(name)]
    assert place.lake.clean().left_over == ()


def test_a_dropped_change_table_is_made_anew(place: Place) -> None:
    source = place.table()
    source.insert("1")
    changes = source.capture()
    place.sql(f"drop table {changes.table}")
    again = source.capture()
    assert (again.id, again.table) == (changes.id, changes.table)
    assert place.rows_of(again) == numbered(1)
    place.sql(f"insert into {changes.table} values (99)")
    assert place.rows_of(source.capture()) == numbered(1)


def test_a_checkpoint_follows_its_table_to_another_name(place: Place) -> None:
    source = place.table()
    source.insert("1")
    assert source.taken() == numbered(1)
    source.insert("2")
    source.sql("alter table {t} rename to db.renamed")
    assert Source(place, "db.renamed").taken() == numbered(2)


def test_appends_go_on_while_it_is_captured(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit of a writer between our look at the table and our pin."""
    source = place.table()
    source.insert("1")
    catalog = place.lake.catalog(place.catalog)
    set_ref = catalog.set_ref
    late = iter(["2", "3"])

    def after_a_writer(*args: object) -> object:
        for number in late:
            source.insert(number)
            break
        return set_ref(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "set_ref", after_a_writer)
    changes = source.capture()
    assert place.rows_of(changes) == numbered(1)
    assert changes.details["pinned"], changes.details["pin"]
    changes.commit()
    monkeypatch.undo()
    found = source.taken()
    assert found == numbered(2) or found == numbered(2, 3)
    assert source.rows() == numbered(1) + found


def test_the_check_of_a_catalog(place: Place) -> None:
    (report,) = place.lake.check_catalogs()
    assert report.works, report


@contextmanager
def writing_to(place: Place, branch: str) -> Iterator[None]:
    place.spark.conf.set("spark.wap.branch", branch)
    yield
    place.spark.conf.unset("spark.wap.branch")


@pytest.mark.parametrize("version", [1, 3])
def test_a_branch_is_published_with_one_move_of_main(place: Place, version: int) -> None:
    """As atomic steps do: conditional on the head that the branch began with; an empty table has none."""
    source = place.table(version=version, properties={publishing.WAP: "true"})
    catalog = place.lake.catalog(place.catalog)
    name = place.lake.name(source.name)
    for after in ((1, 2), (1, 2, 3, 4)):
        table = catalog.load(name)
        before, branch = state_of(table.metadata), publishing.new_branch("w")
        publishing.stage(catalog, table, branch)
        source.sql("refresh table {t}")
        with writing_to(place, branch):
            for number in after[-2:]:
                source.insert(str(number))
        head = branch_heads(source.metadata)[branch]
        assert publishing.verdict(source.metadata, before, head) == Absent()
        publishing.publish(catalog, name, before, head)
        publishing.publish(catalog, name, before, head)
        assert publishing.verdict(source.metadata, before, head) == Written(head)
        publishing.remove_branches(catalog, name, "w")
        source.sql("refresh table {t}")
        assert place.spark_rows(f"select * from {source.full}") == numbered(*after)
        assert source.taken() == numbered(*after[-2:])
    table = catalog.load(name)
    before, branch = state_of(table.metadata), publishing.new_branch("w")
    publishing.stage(catalog, table, branch)
    source.sql("refresh table {t}")
    with writing_to(place, branch):
        source.insert("5")
    source.insert("6")
    with pytest.raises(publishing.Moved):
        publishing.publish(catalog, name, before, branch_heads(source.metadata)[branch])
    # What others write for the table is not confused by a branch that is left.
    assert "main" in state_of(source.metadata).heads
    assert branch not in state_of(source.metadata).heads
    assert source.taken() == numbered(6)


def test_a_catalog_that_pyiceberg_is_configured_for_is_opened_by_pyiceberg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dalsegno.toml").touch()
    with Lake.open(tmp_path / "dalsegno.toml") as lake:
        lake.catalog("lake").ensure_namespace(("db",))
    for is_configured in (False, True):
        if is_configured:
            monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__PY_IO_IMPL", "pyiceberg.io.pyarrow.PyArrowFileIO")
        with Lake.open(tmp_path / "dalsegno.toml") as lake:
            catalog = lake.catalog("lake")
            assert not catalog.has(lake.name("db.none"))
            assert ("pyiceberg" in catalog.__dict__) == is_configured
            # Whoever asks PyIceberg gets the same connections.
            assert catalog.pyiceberg.engine is catalog._sql.engine  # type: ignore[attr-defined]
