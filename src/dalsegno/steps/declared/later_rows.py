"""Which columns are larger in all new rows than in old ones, as the time of arrival is: metadata tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dalsegno.iceberg.sizes import TableSizes, Values, is_larger
from dalsegno.rewrite.footprints import Scope
from dalsegno.rewrite.tables import Change, Name, Reading
from dalsegno.steps.declared.costs import SourceState


def with_later_columns(
    reading: Reading, sources: Mapping[Name, SourceState], columns: Mapping[Name, Collection[str]]
) -> Reading:
    """The same, and which of some columns have larger values in new rows than in old ones."""
    changes = {
        name: _with_later(change, sources[name], columns.get(name, ())) for name, change in reading.changes.items()
    }
    return replace(reading, changes=changes)


def _with_later(change: Change, source: SourceState, columns: Collection[str]) -> Change:
    if change.removed is not None or change.before is None:
        return change
    partitions = tuple(sorted(change.partitioned_by or ()))
    reopened = source.touched(partitions, Scope.REOPENED) if partitions else None
    everywhere = frozenset(each for each in columns if _is_later(change, source, each))
    others = set(columns) - everywhere if reopened else set()
    in_reopened = {each for each in others if _is_later(change, source, each, partitions, reopened or ())}
    return replace(change, later=everywhere, later_in_reopened=frozenset(in_reopened))


def _is_later(
    change: Change, source: SourceState, column: str, partitions: tuple[str, ...] = (), values: Collection[Values] = ()
) -> bool:
    span = source.span(column)
    if column not in change.ranges or span is None or source.may_be_null(column):
        return False
    old: TableSizes = source.before
    return is_larger(span[0], old.largest(column, partitions, values))
