"""Touched partitions on Spark: those that vanish, those without a value, and those that are not the target's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import StrategyName
from tests.iceberg.support import NAMESPACE, Place, fresh_name, sqlite_settings
from tests.rewrite.lakes import captured, differing, reading_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "`odd ``day` date, kind string, at timestamp, v int"
ROUNDS = [
    """INSERT INTO {t} VALUES (DATE'2026-01-01', 'a', TIMESTAMP'2026-01-01 23:30:00', 1),
       (DATE'2026-01-02', 'it''s', TIMESTAMP'2026-01-02 00:00:00', 2), (NULL, 'b', NULL, 3),
       (NULL, NULL, NULL, NULL)""",
    "INSERT INTO {t} VALUES (NULL, 'b', NULL, 4), (DATE'2025-06-01', 'late', TIMESTAMP'2025-06-01 12:00:00', 5)",
    "DELETE FROM {t} WHERE kind = 'it''s' OR v IS NULL",
    "UPDATE {t} SET `odd ``day` = DATE'2026-01-03', at = TIMESTAMP'2026-01-03 01:00:00' WHERE v = 1",
    "ALTER TABLE {t} ADD COLUMN added int",
    "DELETE FROM {t} WHERE `odd ``day` IS NULL",
]
BY_DAY = "SELECT `odd ``day` AS day, count(*) AS n, sum(v) AS v FROM {t} GROUP BY 1"
BY_TIME = "SELECT at, count(*) AS n, sum(v) AS v FROM {t} GROUP BY at"
CASES = [
    ("`odd ``day`", "odd `day", BY_DAY, "day"),
    ("`odd ``day`, kind", "odd `day, kind", BY_DAY, "day"),
    ("days(at)", "days(at)", BY_TIME, "days(at)"),
    ("days(at)", "days(at)", BY_TIME, "at"),
]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("partitions")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    made.lake.close()


@pytest.mark.parametrize(("partitioned", "spec", "query", "target_spec"), CASES)
def test_touched_partitions(place: Place, partitioned: str, spec: str, query: str, target_spec: str) -> None:
    source = place.table(COLUMNS, partitioned=partitioned)
    full = query.replace("{t}", source.full)
    name = (place.catalog, NAMESPACE, f"target_{fresh_name()}")
    place.sql(f"CREATE TABLE {'.'.join(name)} USING iceberg PARTITIONED BY ({target_spec}) AS {full}")
    target = table_of(place, name, target_spec)
    table = table_of(place, (place.catalog, *source.name.split(".")), spec)
    analysis = analyse(full, [table], kinds=target.columns)
    written = 0
    for statement in ROUNDS:
        source.sql(statement)
        if (found := captured(place, source.name, name[-1])) is None:
            continue
        offered = {each.name: each for each in strategies_for(analysis, target, {table.name: found[0]})}
        (sql,) = offered[StrategyName.PARTITIONS].statements(reading_of({table.name: found}))
        assert "REPLACE WHERE true" not in sql
        place.sql(sql)
        found[1].commit()
        written += 1
        assert not differing(place, full, target), sql
    assert written == 5
