"""``make demo``: a small lake, a day with late rows, and what dalsegno makes of it; on real Spark and Iceberg."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dalsegno.capture.changes import Changes
from dalsegno.capture.lake import Lake
from dalsegno.cli import text
from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError
from dalsegno.iceberg.catalogs import spark_configuration
from dalsegno.settings import load
from dalsegno.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path("demo")
TABLE = "lake.media.playback"
CONSUMER = "daily"
_ROWS_A_DAY = 20_000
_DAYS = 30


def main() -> None:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    # An empty settings file: everything at its default, and all of it in this folder.
    (FOLDER / "dalsegno.toml").write_text('default_catalog = "lake"\n', encoding="utf-8")
    settings = load(FOLDER / "dalsegno.toml")
    today = utc_now().date()
    with Lake.open(settings) as lake, _spark(lake) as spark:
        _say(f"1. A table of {_DAYS} days of playback, which consumer {CONSUMER!r} has processed so far")
        _make_table(spark, today)
        lake.capture(TABLE, consumer=CONSUMER).commit()
        _say("2. The next morning: a new day, and late rows of 1, 3 and 20 days ago")
        _append_day(spark, today)
        _say("3. What would a run read?   $ dalsegno plan media.playback --consumer daily")
        print(text.plans(lake.plan(TABLE, consumer=CONSUMER)))
        _say("4. Capture it: metadata only   $ dalsegno capture media.playback --consumer daily --range event_day")
        changes = _capture(lake)
        print(text.changes(changes, None))
        _say("5. Any engine reads the change table like any other Iceberg table")
        _read(lake, spark, changes)
        _say(f"6. Processed: move the checkpoint   $ dalsegno commit {changes.id}")
        print(text.committed(changes.commit()))
        _say("7. A second capture finds nothing")
        print(text.changes(lake.capture(TABLE, consumer=CONSUMER), None))
    print(f"\nThe lake is still there to play with: cd {FOLDER} && {_command()} checkpoints list")


@contextmanager
def _spark(lake: Lake) -> Iterator[SparkSession]:
    print("Starting Spark (about ten seconds; the first time it also fetches Iceberg's runtime) …", flush=True)
    conf = {k: v for catalog in lake.settings.catalogs.values() for k, v in spark_configuration(catalog).items()}
    session = local_session(conf, app_name="dalsegno-demo")
    try:
        yield session
    finally:
        session.stop()


def _make_table(spark: SparkSession, today: date) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.media")
    spark.sql(
        f"CREATE TABLE {TABLE} (event_day DATE, profile BIGINT, title STRING, seconds INT) "
        "USING iceberg PARTITIONED BY (event_day)"
    )
    _insert(spark, [(today - timedelta(days=days), _ROWS_A_DAY) for days in range(_DAYS, 0, -1)])


def _append_day(spark: SparkSession, today: date) -> None:
    _insert(spark, [(today, _ROWS_A_DAY)])
    _insert(spark, [(today - timedelta(days=days), 400 // days) for days in (1, 3, 20)])


def _insert(spark: SparkSession, days: list[tuple[date, int]]) -> None:
    parts = " UNION ALL ".join(
        f"SELECT DATE'{day.isoformat()}' AS event_day, id * 7919 % 5000 AS profile, "
        f"concat('title-', id % 97) AS title, CAST(id % 3600 AS INT) AS seconds FROM range({rows})"
        for day, rows in days
    )
    spark.sql(f"INSERT INTO {TABLE} {parts}")


def _capture(lake: Lake) -> Changes:
    begin = time.perf_counter()
    changes = lake.capture(TABLE, consumer=CONSUMER, ranges=["event_day"])
    print(f"(took {1000 * (time.perf_counter() - begin):.0f} ms, no data file was opened)")
    return changes


def _read(lake: Lake, spark: SparkSession, changes: Changes) -> None:
    print("Spark:")
    spark.sql(
        f"SELECT event_day, count(*) AS plays, sum(seconds) AS seconds FROM {changes.table} "
        "GROUP BY event_day ORDER BY event_day"
    ).show()
    import polars as pl  # noqa: PLC0415 - only this step needs it

    # Otherwise Polars warns that its own planner is not installed.
    os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
    table = lake.catalog("lake").pyiceberg.load_table(changes.identifier)
    rows = pl.scan_iceberg(table).group_by("event_day").agg(pl.len().alias("plays"), pl.col("seconds").sum())
    print("Polars:")
    print(rows.sort("event_day").collect())


def _command() -> str:
    return os.path.relpath(Path(sys.executable).with_name("dalsegno"), FOLDER)


def _say(title: str) -> None:
    print(f"\n── {title}\n", flush=True)


if __name__ == "__main__":
    try:
        main()
    except DalsegnoError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        raise SystemExit(1) from error
