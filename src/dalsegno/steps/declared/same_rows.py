"""Whether two snapshots of a table have the same rows, by metadata."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.evidence import line

_CHANGES = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


def has_same_rows(table: LoadedTable, earlier: int | None, later: int | None) -> bool:
    """Whether nothing but compaction and empty commits lies between a snapshot and a later one.

    False also where that is not known.
    """
    if earlier == later:
        return True
    for raw in line(table.metadata, later):
        if raw["snapshot-id"] == earlier:
            return True
        if not _keeps_rows(raw.get("summary") or {}):
            return False
    return False


def _keeps_rows(summary: Mapping[str, str]) -> bool:
    if summary.get("operation") == "replace":
        return True
    # Whoever counts files at all counts those that changed.
    return "total-data-files" in summary and not any(summary.get(name, "0") != "0" for name in _CHANGES)
