"""The servers of tests/services come up, and Spark and PyIceberg meet in each kind of catalog."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog as PyIcebergRestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from tests.services.catalogs import add_catalog
from tests.services.postgres import USER, Postgres
from tests.services.rest_catalog import RestCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.table({"id": [1, 2]})


@dataclass(frozen=True)
class Meeting:
    """One catalog, as both sides are told of it."""

    name: str
    pyiceberg: Mapping[str, str]
    spark: Mapping[str, str]

    def open(self) -> Catalog:
        kind = PyIcebergRestCatalog if self.spark["type"] == "rest" else SqlCatalog
        return kind(self.name, **self.pyiceberg)


@pytest.fixture(params=["sqlite", "postgres", "rest"])
def meeting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Meeting]:
    name = f"c{uuid4().hex}"
    warehouse = {"warehouse": (tmp_path / "warehouse").as_uri()}
    jdbc = {"type": "jdbc", "jdbc.schema-version": "V1", **warehouse}
    match request.param:
        case "sqlite":
            database = tmp_path / "catalog.db"
            spark = {**jdbc, "uri": f"jdbc:sqlite:{database}"}
            yield Meeting(name, {"uri": f"sqlite:///{database}", **warehouse}, spark)
        case "postgres":
            server: Postgres = request.getfixturevalue("postgres")
            created = server.create_database()
            spark = {**jdbc, "uri": server.jdbc_url(created), "jdbc.user": USER}
            yield Meeting(name, {"uri": server.url(created), **warehouse}, spark)
        case _:
            rest: RestCatalog = request.getfixturevalue("rest_catalog")
            yield Meeting(name, {"uri": rest.uri}, {"type": "rest", "uri": rest.uri})


@pytest.mark.parametrize("first", ["pyiceberg", "spark"])
def test_spark_and_pyiceberg_share_a_catalog(meeting: Meeting, first: str, spark: SparkSession) -> None:
    """Whoever comes first makes the database's tables; the other must be able to use them."""
    namespace = f"n{uuid4().hex}"
    add_catalog(spark, meeting.name, meeting.spark)
    spark_table = f"{meeting.name}.{namespace}.by_spark"

    def from_pyiceberg() -> None:
        catalog = meeting.open()
        catalog.create_namespace_if_not_exists(namespace)
        catalog.create_table(f"{namespace}.by_pyiceberg", schema=ROWS.schema).append(ROWS)
        catalog.close()

    def from_spark() -> None:
        spark.sql(f"create namespace if not exists {meeting.name}.{namespace}")
        spark.sql(f"create table {spark_table} (id bigint) using iceberg")
        spark.sql(f"insert into {spark_table} values (7)")

    steps = [from_pyiceberg, from_spark]
    for step in steps if first == "pyiceberg" else reversed(steps):
        step()

    seen = spark.table(f"{meeting.name}.{namespace}.by_pyiceberg").orderBy("id").collect()
    assert [row.id for row in seen] == [1, 2]
    catalog = meeting.open()
    assert catalog.load_table(f"{namespace}.by_spark").scan().to_arrow().to_pydict() == {"id": [7]}
    catalog.close()


def test_databases_are_separate(postgres: Postgres) -> None:
    for _ in range(2):
        with psycopg.connect(postgres.url(postgres.create_database()).replace("+psycopg", "")) as connection:
            connection.execute("create table same_name (id int)")


def test_the_session_stays_on_this_machine(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_python_workers_are_this_python(spark: SparkSession) -> None:
    prefixes = spark.sparkContext.parallelize([1], 1).map(lambda _: sys.prefix).collect()
    assert prefixes == [sys.prefix]
