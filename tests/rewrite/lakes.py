"""What tests of rewriting on Spark share: captures as changes, and targets compared with the whole query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.capture.changes import Changes
from dalsegno.errors import HistoryLost, UnsupportedChange
from dalsegno.rewrite.strategy import Changed
from dalsegno.rewrite.tables import Change, Name, PartitionField, Reading, Table
from tests.iceberg.support import Place


def spec_of(text: str) -> tuple[PartitionField, ...]:
    """The partition fields of ``day, days(at), bucket(2, id)``."""
    fields = []
    for part in text.replace("bucket(2, ", "bucket(").split(", ") if text else ():
        name, _, rest = part.partition("(")
        transform = {"days": "day", "bucket": "bucket[2]"}[name] if rest else "identity"
        fields.append(PartitionField(rest.rstrip(")") or name, transform))
    return tuple(fields)


def captured(place: Place, table: str, consumer: str) -> tuple[Changed, Changes] | None:
    """What changed in a table: its new rows, or both ends if rows were updated or deleted."""
    try:
        changes = place.lake.capture(table, consumer=consumer, changes="added", partitions=True)
        kind = Changed.APPENDED
    except (HistoryLost, UnsupportedChange):
        changes = place.lake.capture(table, consumer=consumer, changes="before_after", partitions=True)
        kind = Changed.ANY
    return (kind, changes) if changes else None


def change_of(kind: Changed, changes: Changes, full: str) -> Change:
    (only,) = changes.tables.values()
    added, removed = changes.table, None
    if kind is Changed.ANY:
        added, removed = (
            f"(SELECT * FROM ({changes.query()}) WHERE _change_type IN ({types}))"
            for types in ("'insert', 'update_after'", "'delete', 'update_before'")
        )
    before = only.after.snapshot_id
    return Change(
        after=f"{full} VERSION AS OF {only.upto.snapshot_id}",
        added=added,
        removed=removed,
        before=f"{full} VERSION AS OF {before}" if before else None,
        partition_filter=changes.details["partition_filter"],
        reopened_filter=changes.details["reopened_partition_filter"],
        partitioned_by=_partition_columns(changes),
        changed=f"({changes.query()})" if kind is Changed.ANY else None,
        # Joins are then hinted, as they are for few rows.
        late_rows=0,
    )


def _partition_columns(changes: Changes) -> frozenset[str]:
    fields = {name for each in changes.details["partitions"] for name in each["values"]}
    return frozenset(name.removesuffix("_day").removesuffix("_bucket") for name in fields)


def reading_of(found: Mapping[Name, tuple[Changed, Changes]]) -> Reading:
    return Reading({name: change_of(kind, changes, ".".join(name)) for name, (kind, changes) in found.items()})


def table_of(place: Place, name: Name, partitioned: str = "") -> Table:
    """A table as Spark describes it."""
    return Table(name, dict(place.spark.table(".".join(name)).dtypes), spec_of(partitioned))


def differing(place: Place, query: str, target: Table) -> list[tuple[Any, ...]]:
    """Rows that the target lacks, or has too many of, and how many."""
    columns = ", ".join(f"`{name}`" for name in target.columns)
    return place.sql(
        f"SELECT {columns}, sum(net) AS net FROM (SELECT {columns}, 1 AS net FROM (\n{query}\n) UNION ALL "
        f"SELECT {columns}, -1 FROM {'.'.join(target.name)}) GROUP BY {columns} HAVING sum(net) <> 0"
    )
