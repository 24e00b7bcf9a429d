"""A Spark in this process, for tests and benchmarks; dalsegno itself talks to one over Spark Connect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dalsegno.spark.jars import SQLITE_JDBC
from dalsegno.spark.session import defaults, runtime, spark_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_session(
    conf: Mapping[str, str],
    *,
    app_name: str,
    packages: Sequence[str] = (SQLITE_JDBC,),
    cores: int = 2,
) -> SparkSession:
    """Start Spark in this process, with Iceberg and `packages` (group:artifact:version) on its class path.

    `conf` wins over the defaults. A process has one JVM: a second call gets the same session with `conf` set
    on it, and its `packages` come too late.
    """
    java, jars = runtime(packages)
    os.environ.update(spark_environment(java))

    from pyspark.sql import SparkSession

    # Spark's type stubs leave the builder untyped.
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in {**defaults(jars, cores), **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
