"""Each kind of catalog that captures are tested on, by name; its servers are started when a test asks for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from dalsegno import Lake, Settings
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings, CatalogType
from tests.iceberg.support import arrow_rows, files_below, settings_with
from tests.lakes.hive import HiveMetastore
from tests.lakes.object_stores import ObjectStore
from tests.services.postgres import Postgres
from tests.services.rest_catalog import RestCatalog

SCHEMA = pa.schema([pa.field("id", pa.int32())])
UNCACHED = {"cache-enabled": "false"}


def make_settings(kind: str, request: pytest.FixtureRequest, folder: Path, name: str) -> Settings:
    """A store on SQLite beside a new catalog, or a shared one."""
    catalog, _, is_on_s3 = kind.partition(" on ")
    warehouse, properties = str(folder / "warehouse"), {}
    if is_on_s3 or catalog == "glue":
        store: ObjectStore = request.getfixturevalue("moto")
        warehouse, properties = f"s3://{store.create_bucket()}/lake", store.properties
    match catalog:
        case "sqlite":
            uri = f"sqlite:///{folder / 'catalog.db'}"
            settings = CatalogSettings(name, uri=uri, warehouse=warehouse)
        case "postgres":
            settings = CatalogSettings(name, uri=_postgres(request), warehouse=warehouse)
        case "rest":
            rest: RestCatalog = request.getfixturevalue("rest_catalog_on_s3" if is_on_s3 else "rest_catalog")
            settings = CatalogSettings(name, type=CatalogType.REST, uri=rest.uri)
        case "hive":
            metastore: HiveMetastore = request.getfixturevalue("hive_metastore")
            settings = CatalogSettings(name, type=CatalogType.HIVE, uri=metastore.uri, warehouse=warehouse)
        case "glue":
            settings = CatalogSettings(name, type=CatalogType.GLUE, warehouse=warehouse)
            properties = {**properties, "glue.endpoint": properties["s3.endpoint"]}
        case _:
            raise ValueError(kind)
    return settings_with(folder, replace(settings, properties=properties, spark=UNCACHED))


def _postgres(request: pytest.FixtureRequest) -> str:
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(server.create_database()).replace("+psycopg", "")


def stored_below(location: str, properties: dict[str, str] | None = None) -> set[str]:
    """The files below a folder or a prefix, as the store itself lists them."""
    address = urlsplit(location)
    if address.scheme != "s3":
        return {str(path) for path in files_below(Path(location.removeprefix("file://").removeprefix("file:")))}
    named = properties or {}
    store = ObjectStore(named["s3.endpoint"], named["s3.access-key-id"], named["s3.secret-access-key"])
    prefix = f"{address.path.strip('/')}/"
    return {f"s3://{address.netloc}/{key}" for key in store.keys(address.netloc, prefix)}


def writer(lake: Lake) -> Catalog:
    return lake.catalog("lake").pyiceberg


def table_with(lake: Lake, *ids: int) -> str:
    """A table in a namespace of the lake's own, one append for each id."""
    namespace = f"db_{lake.settings.change_namespace}"
    writer(lake).create_namespace_if_not_exists(namespace)
    table = writer(lake).create_table_if_not_exists(f"{namespace}.t", SCHEMA)
    for id_ in ids:
        table.append(pa.table({"id": [id_]}, schema=SCHEMA))
    return f"{namespace}.t"


def rows_of(lake: Lake, name: TableName) -> object:
    return arrow_rows(writer(lake).load_table(name.identifier).scan().to_arrow())
