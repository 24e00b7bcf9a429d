"""The pipeline by Structured Streaming: what is new comes as one batch, which is written with the example's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.pipeline_forms import touched_days


def run_available(
    address: str, source: str, into: str, script: str, conf: Mapping[str, str], checkpoint: Path, since: int
) -> None:
    """Process all that was appended to a table after a moment (milliseconds), or since the last run."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow

    days = {
        "${days.late}": touched_days(into, "c", only_known=True),
        "${days.reopened}": touched_days(into, "d", only_known=True),
        "${days.touched}": touched_days(into, "t", only_known=False),
    }

    # It is sent to the server, and executed there by a Python of its own.
    def write(batch: Any, _: int) -> None:
        batch.createOrReplaceTempView("changes")
        session, text = batch.sparkSession, script
        for name, query in days.items():
            if name in text:
                text = text.replace(name, session.sql(query).first()[0])
        session.sql(text).collect()

    spark = SparkSession.builder.remote(address).create()
    try:
        for name, value in conf.items():
            spark.conf.set(name, value)
        stream = spark.readStream.format("iceberg").option("stream-from-timestamp", str(since)).load(source)
        query = (
            stream.writeStream.foreachBatch(write)
            .option("checkpointLocation", checkpoint.as_uri())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        spark.stop()
