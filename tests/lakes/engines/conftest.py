"""A lake behind a REST catalog, which Spark, Flink and Trino see under the same name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from dalsegno.settings import CatalogSettings, CatalogType
from tests.conftest import uncaptured
from tests.iceberg.support import Place, fresh_name, settings_with
from tests.lakes.flink import Flink, running_flink
from tests.lakes.trino import Trino, running_trino
from tests.services.rest_catalog import RestCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def place(spark: SparkSession, rest_catalog: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("lake")
    uncached = {"cache-enabled": "false"}
    catalog = CatalogSettings(fresh_name(), type=CatalogType.REST, uri=rest_catalog.uri, spark=uncached)
    made = Place.make(spark, folder, settings_with(folder, catalog))
    yield made
    made.lake.close()


@pytest.fixture(scope="session")
def flink(
    place: Place, rest_catalog: RestCatalog, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Flink]:
    catalog = {"catalog-type": "rest", "uri": rest_catalog.uri, "cache-enabled": "false"}
    with ExitStack() as stack:
        with uncaptured(pytestconfig):
            started = stack.enter_context(running_flink(tmp_path_factory.mktemp("flink") / "log"))
        started.add_catalog(place.catalog, catalog)
        yield started


@pytest.fixture(scope="session")
def trino(
    place: Place, rest_catalog: RestCatalog, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trino]:
    properties = {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": rest_catalog.uri,
        "fs.native-local.enabled": "true",
        "local.location": "/",
    }
    with ExitStack() as stack:
        with uncaptured(pytestconfig):
            folder = tmp_path_factory.mktemp("trino")
            started = stack.enter_context(running_trino(folder, {place.catalog: properties}))
        yield started
