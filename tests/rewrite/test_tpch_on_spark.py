"""TPC-H's queries with correlated subqueries, which DuckDB cannot execute as they are rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.states import states_of
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, StrategyName
from dalsegno.rewrite.tables import Change, Name, Reading, Table
from tests.iceberg.support import NAMESPACE, Place, fresh_name, sqlite_settings
from tests.rewrite.lakes import differing, table_of
from tests.rewrite.test_tpch import FACTS, Data
from tests.rewrite.tpch import COLUMNS, QUERIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("tpch")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    # Other tests share the session.
    made.sql("USE spark_catalog.default")
    made.lake.close()


def literal(value: Any) -> str:
    return f"DATE'{value}'" if isinstance(value, date) else f"'{value}'" if isinstance(value, str) else str(value)


def copied(place: Place, connection: duckdb.DuckDBPyConnection, table: str, like: str) -> None:
    """Make a table of DuckDB one of Iceberg."""
    name = f"{place.catalog}.{NAMESPACE}.{table}"
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS[like].items())
    rows = [f"({', '.join(map(literal, row))})" for row in connection.execute(f"FROM lake.main.{table}").fetchall()]
    place.sql(f"CREATE OR REPLACE TABLE {name} ({columns}) USING iceberg")
    if rows:
        place.sql(f"INSERT INTO {name} VALUES {', '.join(rows)}")


@pytest.mark.parametrize("kind", list(Changed))
def test_correlated_subqueries(place: Place, kind: Changed) -> None:
    current = (place.catalog, NAMESPACE)
    sources = [Table((*current, name), columns, (), frozenset(columns)) for name, columns in COLUMNS.items()]
    queries = {number: QUERIES[number] for number in (4, 17, 21)}
    queries[17] = states_of(analyse(queries[17], sources, current=current)).states
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS lake")
        data = Data(connection, 5)
        for name in COLUMNS:
            copied(place, connection, name, name)
        place.sql(f"USE {'.'.join(current)}")
        targets = {}
        for number, query in queries.items():
            name = f"target_{number}_{kind}"
            place.sql(f"CREATE TABLE {name} USING iceberg AS {query}")
            targets[number] = table_of(place, (*current, name))
        data.changed(kind)
        for name in FACTS:
            for suffix in ("", "_added", "_removed", "_before"):
                copied(place, connection, name + suffix, name)
    changes: dict[Name, Change] = {
        (*current, name): Change(
            after=name,
            added=f"{name}_added",
            removed=None if kind is Changed.APPENDED else f"{name}_removed",
            before=f"{name}_before",
        )
        for name in FACTS
    }
    for number, query in queries.items():
        analysis = analyse(query, sources, current=current, kinds=targets[number].columns)
        own = {name: change for name, change in changes.items() if name in analysis.sources}
        found = {each.name: each for each in strategies_for(analysis, targets[number], dict.fromkeys(own, kind))}
        for statement in found[StrategyName.DELTA_KEYS].statements(Reading(own)):
            place.sql(statement)
        assert not differing(place, query, targets[number]), number
