"""Catalogs for the one Spark session that a test process has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_catalog(spark: SparkSession, name: str, conf: Mapping[str, str]) -> None:
    """Make an Iceberg catalog known to a running session.

    Spark keeps a catalog from its first use until the session ends: give each a name of its own.
    """
    prefix = f"spark.sql.catalog.{name}"
    for key, value in conf.items():
        spark.conf.set(f"{prefix}.{key}", value)
    # Last, so that nobody finds a catalog that is not yet configured.
    spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
