"""The driver of SQL that is submitted. ``submit.sql_driver`` adds the call of ``main`` with the statements.

It runs wherever Spark puts it, so it is one file that needs nothing but PySpark: cluster managers disagree about where
other files are. Each statement comes as it may be shown, with what to configure for it, and with whether it was
executed before, for the same captures.
"""

from typing import Any

from pyspark.sql import SparkSession

_SHOWN = 20


def main(statements: list[dict[str, Any]]) -> None:
    spark = SparkSession.builder.getOrCreate()
    for number, statement in enumerate(statements, start=1):
        which = f"statement {number} of {len(statements)}"
        print(f"[dalsegno] {which}:\n{statement['shown']}", flush=True)  # noqa: T201
        if statement.get("is_done"):
            print(f"[dalsegno] {which} was executed for this capture before, and is not executed again")  # noqa: T201
            continue
        for name, value in statement["conf"].items():
            spark.conf.set(name, value)
        rows = spark.sql(statement["sql"])
        if rows.columns:
            rows.show(_SHOWN, truncate=False)
    spark.stop()
