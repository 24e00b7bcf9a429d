"""Equality deletes, as Flink's upserts write them: Spark reads them but never writes any.

The files are written with PyArrow, and committed through Iceberg's own library in the JVM of the tests' session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.io.pyarrow import schema_to_pyarrow

from tests.iceberg.support import Rows, Source

Row = tuple[Any, ...]


def row_delta(
    source: Source,
    *,
    deletes: Sequence[Row] = (),
    by: Sequence[str] = ("id",),
    inserts: Sequence[Row] = (),
    partition: str = "",
    spec_id: int | None = None,
) -> None:
    """Delete the rows that have one of the values in the columns ``by``, and insert others, in one snapshot.

    All files are of one ``partition``, such as ``day=d1``, of the table's current spec or another.
    """
    session: Any = source.place.spark
    jvm = session._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, source.full)
    spec = table.spec() if spec_id is None else table.specs().get(spec_id)
    schema = source.pyiceberg.schema()

    def written(builder: Any, rows: Sequence[Row], columns: Sequence[str]) -> Any:
        location = table.locationProvider().newDataLocation(f"{uuid4().hex}.parquet")
        path = Path(location.removeprefix("file:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = schema_to_pyarrow(schema.select(*columns), include_field_ids=True)
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        parquet.write_table(pa.Table.from_pylist(records, pa.schema([fields.field(name) for name in columns])), path)
        builder = builder.withPath(location).withFormat("parquet").withRecordCount(len(rows))
        builder = builder.withFileSizeInBytes(path.stat().st_size)
        return (builder.withPartitionPath(partition) if partition else builder).build()

    delta = table.newRowDelta()
    if inserts:
        data = jvm.org.apache.iceberg.DataFiles.builder(spec)
        delta.addRows(written(data, inserts, [field.name for field in schema.fields]))
    if deletes:
        ids = session.sparkContext._gateway.new_array(jvm.int, len(by))
        for position, column in enumerate(by):
            ids[position] = schema.find_field(column).field_id
        equal = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(ids)
        delta.addDeletes(written(equal, deletes, by))
    delta.commit()


def changed_rows(source: Source) -> dict[str, Rows]:
    """Capture both ends, and commit: the rows by what happened to them."""
    changes, found = source.capture(changes="before_after", keys=["id"]), dict[str, Rows]()
    for row, times in source.place.spark_rows(changes.query()).items() if changes else ():
        found.setdefault(row[-1], Counter())[row[:-1]] += times
    if changes:
        changes.commit()
    return found
