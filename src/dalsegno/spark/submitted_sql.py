"""The driver of SQL that is submitted: ``spark-submit --files NAME submitted_sql.py NAME``, a JSON list of statements.

It runs wherever Spark puts it, so it needs nothing but PySpark. Each statement comes with what to configure for it, and
with whether it was executed before, for the same captures.
"""

import json
import sys
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

_SHOWN = 20


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    statements = json.loads(Path(SparkFiles.get(sys.argv[1])).read_text(encoding="utf-8"))
    for number, statement in enumerate(statements, start=1):
        which = f"statement {number} of {len(statements)}"
        print(f"[dalsegno] {which}:\n{statement['sql']}", flush=True)  # noqa: T201
        if statement.get("is_done"):
            print(f"[dalsegno] {which} was executed for this capture before, and is not executed again")  # noqa: T201
            continue
        for name, value in statement["conf"].items():
            spark.conf.set(name, value)
        rows = spark.sql(statement["sql"])
        if rows.columns:
            rows.show(_SHOWN, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
