"""Captures with no credentials but those that a REST catalog vends, for one table's folder and a short time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from dalsegno import Lake
from dalsegno.iceberg import vended_files
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings, CatalogType
from tests.iceberg.support import arrow_rows, fresh_name, numbered, settings_with
from tests.lakes.catalogs import stored_below
from tests.lakes.object_stores import ObjectStore
from tests.lakes.vending import Vending, running_vending
from tests.services.rest_catalog import RestCatalog

pytestmark = pytest.mark.rest
SCHEMA = pa.schema([pa.field("id", pa.int32())])


@pytest.fixture(scope="module")
def vending(rest_catalog_on_s3: RestCatalog, moto: ObjectStore) -> Iterator[Vending]:
    with running_vending(rest_catalog_on_s3.uri, moto) as running:
        yield running


@pytest.fixture
def writer(rest_catalog_on_s3: RestCatalog, moto: ObjectStore) -> Catalog:
    """Somebody with credentials of their own."""
    return load_catalog("writer", type="rest", uri=rest_catalog_on_s3.uri, **moto.properties)


@pytest.fixture
def lake(vending: Vending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(vending, "seconds", 60.0)
    vending.refused.clear()
    catalog = CatalogSettings("lake", type=CatalogType.REST, uri=vending.uri)
    settings = replace(settings_with(tmp_path, catalog), change_namespace=fresh_name())
    with Lake.open(settings) as opened:
        yield opened


def table_with(writer: Catalog, lake: Lake, *ids: int) -> str:
    namespace = f"db_{lake.settings.change_namespace}"
    writer.create_namespace_if_not_exists(namespace)
    table = writer.create_table_if_not_exists(f"{namespace}.t", SCHEMA)
    for id_ in ids:
        table.append(pa.table({"id": [id_]}, schema=SCHEMA))
    return f"{namespace}.t"


def rows_of(writer: Catalog, name: str) -> object:
    return arrow_rows(writer.load_table(TableName.of(name).identifier).scan().to_arrow())


@pytest.mark.parametrize("by_prefix", [False, True])
def test_capture_commit_and_clean(
    writer: Catalog, lake: Lake, vending: Vending, moto: ObjectStore, monkeypatch: pytest.MonkeyPatch, by_prefix: bool
) -> None:
    monkeypatch.setattr(vending, "by_prefix", by_prefix)
    name = table_with(writer, lake, 1, 2)
    changes = lake.capture(name, consumer="c", partitions=True)
    assert changes.details["pinned"], changes.details["pin"]
    assert rows_of(writer, changes.table) == numbered(1, 2)
    (captured,) = changes.tables.values()
    assert stored_below(captured.location, moto.properties)
    assert changes.commit().left_over == ()
    assert stored_below(captured.location, moto.properties) == set()
    table_with(writer, lake, 3)
    changes = lake.capture(name, consumer="c")
    lake.store.commit(changes.id, by="test", now=lake.clock())
    assert lake.clean().left_over == ()
    assert stored_below(next(iter(changes.tables.values())).location, moto.properties) == set()
    assert vending.refused == []
    (report,) = lake.check_catalogs()
    assert report.works, report


def test_credentials_that_expire_in_the_middle_are_renewed(
    writer: Catalog, lake: Lake, vending: Vending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vending, "seconds", 3.0)
    catalog = lake.catalog("lake")
    table = catalog.load(lake.name(table_with(writer, lake, 1)))
    folder = f"{str(table.metadata['location']).rpartition('/')[0]}/beside"
    new = catalog.files_of(lake.name(f"db_{lake.settings.change_namespace}.beside"), folder)
    new.write(f"{folder}/one", b"1")
    time.sleep(3.1)
    assert table.files.read(table.metadata_location)
    new.write(f"{folder}/two", b"2")
    new.delete(*new.list(folder))
    assert vending.refused == []


def test_credentials_without_a_known_end_are_renewed_in_time() -> None:
    assert 0 < vended_files._renew_at({}) - time.time() < 15 * 60


def test_other_secrets_than_the_vended_are_refused(vending: Vending, lake: Lake, writer: Catalog) -> None:
    """The test itself would see requests with other credentials, or outside of a table's folder."""
    table = lake.catalog("lake").load(lake.name(table_with(writer, lake, 1)))
    with pytest.raises(OSError, match="403"):
        table.files.list(str(table.metadata["location"]).rpartition("/")[0])
    assert vending.refused
