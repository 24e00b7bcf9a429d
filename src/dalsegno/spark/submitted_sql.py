"""The driver of SQL that is submitted: ``spark-submit --files NAME submitted_sql.py NAME``, a JSON list of statements.

It runs wherever Spark puts it, so it needs nothing but PySpark. Each statement comes with what to configure for it and,
if it may have been executed before, with the question whether it was.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkFiles
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

_SHOWN = 20


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    statements = json.loads(Path(SparkFiles.get(sys.argv[1])).read_text(encoding="utf-8"))
    for number, statement in enumerate(statements, start=1):
        which = f"statement {number} of {len(statements)}"
        print(f"[dalsegno] {which}:\n{statement['sql']}", flush=True)  # noqa: T201
        if _is_written(spark, statement["question"]):
            print(f"[dalsegno] {which} was executed for this capture before, and is not executed again")  # noqa: T201
            continue
        for name, value in statement["conf"].items():
            spark.conf.set(name, value)
        rows = spark.sql(statement["sql"])
        if rows.columns:
            rows.show(_SHOWN, truncate=False)
    spark.stop()


def _is_written(spark: SparkSession, question: dict[str, Any] | None) -> bool:
    if question is None:
        return False
    try:
        found = spark.sql(question["query"]).first()
    except AnalysisException:
        # There is no such table, or it is not Iceberg's.
        return False
    if found and found["digest"] != question["digest"]:
        sys.exit(f"Snapshot {found['snapshot_id']} {question['other_wording']} {question['hint']}")
    return found is not None


if __name__ == "__main__":
    main()
