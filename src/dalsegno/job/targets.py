"""What a step can write to: tables of PyIceberg and of Spark; of any other, the summaries of its snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from dalsegno.job.spark_tables import SparkTable
from dalsegno.job.tables import MAIN, Snapshot, Table, reading, without_pins


class Target(Protocol):
    #: The branch that the name of the table names.
    branch: str | None

    def read(self) -> Table:
        """The table as it is now."""

    def told(self) -> dict[str, Any]:
        """What ``DALSEGNO_CAPTURES`` would say, where there is no such file; empty if it is not known."""

    def stamped(self, stamp: Mapping[str, str]) -> AbstractContextManager[None]:
        """A context in which what is written gets the stamp, as far as that goes without the writer's help."""


def target_of(table: Any, name: str | None, *, missing_ok: bool = False) -> Target:
    if name is not None:
        return SparkTable(table, name, missing_ok=missing_ok)
    if isinstance(table, tuple):
        spark, name = table
        return SparkTable(spark, name, missing_ok=missing_ok)
    if hasattr(table, "metadata"):
        return PyIcebergTable(table)
    if isinstance(table, str) or hasattr(table, "sql"):
        raise TypeError(f"Expected a PyIceberg table, or (spark, 'catalog.db.table'), found {table!r}.")
    return Summaries(table)


class PyIcebergTable:
    branch: str | None = None

    def __init__(self, table: Any) -> None:
        self._table = table

    def read(self) -> Table:
        name = ".".join(self._table.name())
        with reading(name):
            # Others may have written since it was loaded.
            metadata = self._table.refresh().metadata
        snapshots = {
            each.snapshot_id: Snapshot(
                each.snapshot_id, each.parent_snapshot_id, each.timestamp_ms, dict(_properties(each.summary))
            )
            for each in metadata.snapshots
        }
        heads = {name: ref.snapshot_id for name, ref in metadata.refs.items() if str(ref.snapshot_ref_type) == "branch"}
        if metadata.current_snapshot_id is not None:
            heads.setdefault(MAIN, metadata.current_snapshot_id)
        logged = frozenset(entry.snapshot_id for entry in metadata.snapshot_log)
        return Table(name, snapshots, without_pins(heads), logged)

    def told(self) -> dict[str, Any]:
        return {}

    def stamped(self, stamp: Mapping[str, str]) -> AbstractContextManager[None]:
        return nullcontext()


class Summaries:
    """Of the snapshots that lead to a table as it is now, from any engine."""

    branch: str | None = None

    def __init__(self, summaries: Iterable[Mapping[str, str]]) -> None:
        self._summaries = list(summaries)

    def read(self) -> Table:
        line = list(enumerate(self._summaries))
        snapshots = {at: Snapshot(at, at - 1 if at else None, 0, summary) for at, summary in line}
        return Table("the table", snapshots, {MAIN: len(line) - 1} if line else {})

    def told(self) -> dict[str, Any]:
        return {}

    def stamped(self, stamp: Mapping[str, str]) -> AbstractContextManager[None]:
        raise TypeError("job.write needs a PyIceberg table or (spark, name). For summaries: job.is_written, job.stamp.")


def _properties(summary: Any) -> dict[str, Any]:
    if summary is None:
        return {}
    return {**summary.additional_properties, "operation": summary.operation.value}
