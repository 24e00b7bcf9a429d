"""The smallest and largest value of a column in the captured files, from metadata.

A range is a superset of the values: a writer may shorten the bounds of long strings. Where one file lacks a bound the
range is unknown, and says why; it is never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.types import DoubleType, FloatType, NestedField, UUIDType

from dalsegno.iceberg.entries import FileEntry
from dalsegno.iceberg.layout import Layout, UnreadableBound, read_bound
from dalsegno.iceberg.manifests import Manifest
from dalsegno.iceberg.predicates import EVERYTHING, range_filter
from dalsegno.iceberg.values import said

_NO_ORDER = "writers do not agree on the order of uuids"
_MAY_BE_NAN = "a captured file holds, or may hold, NaN, which lies between no two numbers"


@dataclass(frozen=True)
class ColumnRange:
    """From the smallest to the largest value of a column, both included."""

    column: str
    #: Both None if no file holds a value, or if the range is unknown.
    min: Any
    max: Any
    #: Why the range is unknown; None if it is known.
    unknown_because: str | None = None
    #: The range as a predicate, nulls included if there may be any.
    filter: str = EVERYTHING
    #: Of the column, as Iceberg calls it.
    type: str = ""
    #: Whether a row may have no value.
    has_nulls: bool = True


def column_ranges(
    layout: Layout,
    columns: Sequence[str],
    manifests: Iterable[Manifest],
    entries_of: Callable[[Manifest], Iterable[FileEntry]],
) -> list[ColumnRange]:
    """The range of each column over all files of the manifests, which are only opened where they must be."""
    bounds = [_Bounds(name, layout, layout.column(name)) for name in columns]
    for manifest in manifests:
        open_questions = [bound for bound in bounds if not bound.take_partition_bounds(manifest)]
        if not open_questions:
            continue
        for entry in entries_of(manifest):
            for bound in open_questions:
                bound.take_file(entry)
    return [bound.range() for bound in bounds]


class _Bounds:
    def __init__(self, name: str, layout: Layout, field: NestedField) -> None:
        self.name, self.layout, self.field = name, layout, field
        self.low: Any = None
        self.high: Any = None
        self.has_nulls = False
        self.unknown = _NO_ORDER if isinstance(field.field_type, UUIDType) else None
        self.is_float = isinstance(field.field_type, FloatType | DoubleType)

    def take_partition_bounds(self, manifest: Manifest) -> bool:
        """Answer for a whole manifest where the column itself is a partition field."""
        if self.unknown:
            return True
        position = self.layout.identity_position(manifest.spec_id, self.field)
        if position is None or manifest.partitions is None:
            return False
        summary = manifest.partitions[position]
        lower, upper = summary["lower_bound"], summary["upper_bound"]
        # Not every writer says whether there is a NaN.
        if (lower is None and not summary["contains_null"]) or (self.is_float and summary.get("contains_nan") is None):
            return False
        if self.is_float and summary["contains_nan"]:
            self.unknown = _MAY_BE_NAN
            return True
        self.has_nulls = self.has_nulls or summary["contains_null"]
        if lower is not None:
            self._widen(lower, upper)
        return True

    def take_file(self, entry: FileEntry) -> None:
        if self.unknown or not entry.rows:
            return
        field_id = self.field.field_id
        if self.is_float and entry.nan_counts.get(field_id) != 0 and not self._has_nulls_only(entry):
            self.unknown = _MAY_BE_NAN
            return
        self.has_nulls = self.has_nulls or entry.null_counts.get(field_id) != 0
        lower, upper = entry.lower.get(field_id), entry.upper.get(field_id)
        if lower is not None and upper is not None:
            self._widen(lower, upper)
        elif not self._has_nulls_only(entry):
            self.unknown = "a captured file has no bounds for it (its writer keeps none for this column)"

    def _has_nulls_only(self, entry: FileEntry) -> bool:
        field_id = self.field.field_id
        return entry.null_counts.get(field_id, -1) == entry.value_counts.get(field_id)

    def range(self) -> ColumnRange:
        if self.unknown:
            return ColumnRange(self.name, None, None, self.unknown, type=str(self.field.field_type))
        kind = self.field.field_type
        low, high = (None if value is None else said(kind, value) for value in (self.low, self.high))
        path = self.layout.column_path(self.field.field_id)
        has_nulls = self.has_nulls and not self.field.required
        condition = range_filter(path, kind, low, high, has_nulls=has_nulls)
        return ColumnRange(self.name, low, high, filter=condition, type=str(kind), has_nulls=has_nulls)

    def _widen(self, lower: bytes, upper: bytes) -> None:
        try:
            low, high = read_bound(self.field.field_type, lower), read_bound(self.field.field_type, upper)
        except UnreadableBound:
            self.unknown = "a captured file has bounds of another type (the column's type was changed)"
            return
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
