"""Sum up again the days in which a query says that something changed. A job like any other: it knows no workflow."""

import sys
from pathlib import Path

import duckdb

from dalsegno import Lake

duckdb.sql("INSTALL avro; INSTALL iceberg; LOAD avro; LOAD iceberg")
days = duckdb.sql(f"SELECT DISTINCT event_day FROM ({Path(sys.argv[1]).read_text()})").fetchall()
known = ", ".join(f"'{day}'" for (day,) in days if day)
conditions = [f"event_day IN ({known})"] if known else []
if (None,) in days:  # A row may be without a day, which IN never finds.
    conditions.append("event_day IS NULL")
concerned = " OR ".join(conditions) or "false"

with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    target = catalog.load_table("media.seconds_by_day")
    plays = catalog.load_table("media.playback").scan(concerned).to_arrow()
    sums = duckdb.sql(
        "SELECT event_day, sum(seconds)::BIGINT AS seconds FROM plays GROUP BY event_day"
    ).to_arrow_table()
    target.overwrite(sums.cast(target.schema().as_arrow()), concerned)
print(len(days), "days changed")
