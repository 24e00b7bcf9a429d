"""The driver of SQL that is submitted: ``spark-submit --files NAME submitted_sql.py NAME``, a JSON list of statements.

It runs wherever Spark puts it, so it needs nothing but PySpark.
"""

import json
import sys
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

_SHOWN = 20
_STATEMENT_STAMP = "spark.sql.iceberg.snapshot-property.dalsegno.statement"


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    statements = json.loads(Path(SparkFiles.get(sys.argv[1])).read_text(encoding="utf-8"))
    for number, statement in enumerate(statements, start=1):
        print(f"[dalsegno] statement {number} of {len(statements)}:\n{statement}", flush=True)  # noqa: T201
        spark.conf.set(_STATEMENT_STAMP, str(number))
        rows = spark.sql(statement)
        if rows.columns:
            rows.show(_SHOWN, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
