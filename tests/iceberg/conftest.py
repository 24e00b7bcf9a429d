"""A lake on SQLite for each module of tests; its tables and consumers are each test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.iceberg.support import Place, fresh_name, sqlite_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("lake")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    made.lake.close()


@pytest.fixture(scope="module")
def unpinned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A lake whose captures may not write into source tables."""
    folder = tmp_path_factory.mktemp("unpinned")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name(), pin=False))
    yield made
    made.lake.close()
