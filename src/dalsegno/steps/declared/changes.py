"""What changed in a source, as relations that the rewriter's SQL reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dalsegno.capture.queries import query_of
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.partitions import Novelty
from dalsegno.model.captures import CapturedTable
from dalsegno.rewrite.partitions import EVERYTHING
from dalsegno.rewrite.tables import Change
from dalsegno.steps.declared.sources import as_now, state_at


def has_changed(captured: CapturedTable) -> bool:
    before = captured.details.get("before") or {}
    return bool(captured.details.get("files") or before.get("files"))


def change_of(captured: CapturedTable, table: LoadedTable, columns: Collection[str]) -> Change:
    """What changed in some columns of a source, as relations.

    Rows were only appended if no file of the old end is touched.
    """
    details = captured.details
    after, started = state_at(table, captured.upto.snapshot_id), captured.after.snapshot_id
    before = None if started is None else state_at(table, started)
    filters = details["partition_filter"], details["reopened_partition_filter"]
    is_as_now = as_now("", table, captured.upto.schema_id) == ""
    # The names of columns are those at the end of the range.
    ranges = {name.lower(): each["filter"] for name, each in details["ranges"].items()} if is_as_now else {}

    def changed(relation: str, kind: str | None = None) -> str:
        known = [f"_change_type = '{kind}'"] if kind else []
        # They hold for every row. Spark finds what follows from them for tables that are joined.
        known += [each for each in ranges.values() if each != EVERYTHING]
        where = f" WHERE {' AND '.join(known)}" if known else ""
        return as_now(f"(SELECT * FROM {relation}{where})" if known else relation, table, captured.upto.schema_id)

    if not (details.get("before") or {}).get("files"):
        return Change(
            after,
            changed(captured.change_table.quoted),
            None,
            before,
            *filters,
            ranges=ranges,
            late_rows=_late_rows(details),
            partitioned_by=partition_columns(details, table),
        )
    both = f"({query_of(_narrowed(captured, columns) if is_as_now else captured, 'spark', lambda _: '')})"
    return Change(
        after,
        changed(both, "insert"),
        changed(both, "delete"),
        before,
        *filters,
        changed=changed(both),
        ranges=ranges,
        partitioned_by=partition_columns(details, table),
    )


def _narrowed(captured: CapturedTable, columns: Collection[str]) -> CapturedTable:
    """With fewer columns to compare: rows that differ elsewhere alone are unchanged for the query."""
    wanted = [name for name in captured.details["columns"] if name in columns]
    if not wanted:
        return captured
    incomparable = [name for name in captured.details.get("incomparable", ()) if name in wanted]
    return replace(captured, details={**captured.details, "columns": wanted, "incomparable": incomparable})


def partition_columns(details: Mapping[str, Any], table: LoadedTable) -> frozenset[str] | None:
    """The columns that the touched partitions are made of, in lower case; None if they are not known."""
    if (partitions := details.get("partitions")) is None:
        return None
    layout = Layout(table.metadata, table.metadata.get("current-schema-id", 0))
    items = [
        item
        for spec_id in {each["spec_id"] for each in partitions}
        for item in layout.specs[spec_id]
        if not item.is_void
    ]
    paths = [layout.column_path(item.source_id) for item in items]
    return (
        frozenset(path[0].lower() for path in paths if path) if all(path and len(path) == 1 for path in paths) else None
    )


def _late_rows(details: Mapping[str, Any]) -> int | None:
    """How many rows were added to partitions that were, or may have been, there before."""
    partitions = details.get("partitions")
    return None if partitions is None else sum(each["rows"] for each in partitions if each["novelty"] != Novelty.NEW)
