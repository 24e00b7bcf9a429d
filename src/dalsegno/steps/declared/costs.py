"""What each strategy would read and write now, in bytes, from metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.partitions import Novelty
from dalsegno.iceberg.sizes import TableSizes, Values
from dalsegno.model.refreshes import Cost
from dalsegno.rewrite.footprints import Footprint, Joins, Part, Read, Scope, Write, footprint, marked
from dalsegno.rewrite.strategy import Strategy, StrategyName
from dalsegno.rewrite.tables import Name, Reading, Table

#: What decides how MERGE writes, and Iceberg's word for writing deletes beside the files that they are of.
_MERGE_MODE, _MERGE_ON_READ = "write.merge.mode", "merge-on-read"


@dataclass(frozen=True)
class SourceState:
    """A source at both ends of what changed in it."""

    table: LoadedTable
    #: None: it was empty.
    after_snapshot: int | None
    upto_snapshot: int | None
    #: Of a capture; empty: nothing changed.
    details: Mapping[str, Any]

    @cached_property
    def now(self) -> TableSizes:
        return TableSizes(self.table, self.upto_snapshot)

    @cached_property
    def before(self) -> TableSizes:
        return TableSizes(self.table, self.after_snapshot)

    @cached_property
    def added_bytes(self) -> int:
        return _bytes_of(self.details, self.now)

    @cached_property
    def removed_bytes(self) -> int:
        return _bytes_of(self.details.get("before") or {}, self.now)

    def changed_bytes(self, scope: Scope) -> int:
        """What there is to read of both ends to see the changed rows."""
        total, partitions = self.added_bytes + self.removed_bytes, self.details.get("partitions")
        if scope is not Scope.REOPENED or partitions is None:
            return total
        return min(total, sum(int(each["bytes"]) for each in partitions if each["novelty"] != Novelty.NEW))

    @property
    def new_share(self) -> float:
        """How much of what changed is in partitions that were not there before."""
        partitions = self.details.get("partitions") or ()
        total = sum(each["bytes"] for each in partitions)
        return sum(each["bytes"] for each in partitions if each["novelty"] == Novelty.NEW) / total if total else 0.0

    def touched(self, columns: Sequence[str], scope: Scope) -> set[Values] | None:
        """The values of some partition columns in what changed; None if they are not known."""
        partitions = self.details.get("partitions")
        if partitions is None:
            return None
        found = set()
        for partition in partitions:
            if scope is Scope.REOPENED and partition["novelty"] == Novelty.NEW:
                continue
            fields = self._fields(partition["spec_id"])
            if any(column not in fields for column in columns):
                return None
            found.add(tuple((partition["values"].get(name), to) for name, to in (fields[column] for column in columns)))
        return found

    def span(self, column: str) -> tuple[Any, Any] | None:
        """From the smallest to the largest changed value of a column; None if they are not known."""
        ranges = {name.lower(): each for name, each in (self.details.get("ranges") or {}).items()}
        found = ranges.get(column.lower())
        return None if found is None or found["min"] is None else (found["min"], found["max"])

    def may_be_null(self, column: str) -> bool:
        """Whether a changed row may have no value."""
        ranges = {name.lower(): each for name, each in (self.details.get("ranges") or {}).items()}
        return bool(ranges.get(column.lower(), {}).get("has_nulls", True))

    def _fields(self, spec_id: int) -> dict[str, tuple[str, str]]:
        """Each column that a spec keeps, or counts in units of time: the field's name, and its transform."""
        if spec_id not in self._by_spec:
            self._by_spec[spec_id] = {
                path[0].lower(): (item.name, item.transform)
                for item in self._layout.specs[spec_id]
                if (item.is_identity or item.unit) and len(path := self._layout.column_path(item.source_id) or ()) == 1
            }
        return self._by_spec[spec_id]

    @cached_property
    def _by_spec(self) -> dict[int, dict[str, tuple[str, str]]]:
        return {}

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.table.metadata, self.table.metadata.get("current-schema-id", 0))


def _bytes_of(counted: Mapping[str, Any], sizes: TableSizes) -> int:
    """What a capture counted; by its rows where no manifest was opened."""
    if counted.get("bytes") is not None:
        return int(counted["bytes"])
    rows = counted.get("rows") or 0
    return sizes.total * rows // sizes.rows if sizes.rows else 0


class CostEstimate:
    """What the strategies for one change would cost."""

    def __init__(self, target: Table, stored: LoadedTable | None, sources: Mapping[Name, SourceState]) -> None:
        self._target = target
        self._sources = sources
        head = None if stored is None else stored.history().head
        self._sizes = None if stored is None else TableSizes(stored, head.id if head else None)
        properties = {} if stored is None else stored.metadata.get("properties", {})
        self._is_merge_on_read = properties.get(_MERGE_MODE) == _MERGE_ON_READ
        self._within: dict[Any, int] = {}

    def costs(
        self, strategies: Sequence[Strategy], reading: Reading, joins: Joins | None = None
    ) -> dict[StrategyName, Cost]:
        """Of each strategy that is possible; its probe is part of it."""
        marks, sources = marked(reading, self._sources)
        return {
            each.name: self._cost(each, footprint(each, self._target, marks, sources, joins))
            for each in strategies
            if each.is_possible
        }

    def _cost(self, strategy: Strategy, found: Footprint) -> Cost:
        read = self._read(strategy, found.reads)
        if found.write is Write.MERGE and not self._is_merge_on_read:
            # Spark first looks for the files of the target that have matching rows, and so reads everything twice.
            read *= 2
        return Cost(read + self._read(strategy, found.probe), self._written(strategy, found))

    def _read(self, strategy: Strategy, reads: Mapping[Read, int]) -> int:
        return sum(times * self._bytes(strategy, read) for read, times in reads.items())

    def _bytes(self, strategy: Strategy, read: Read) -> int:
        if read.table is None:
            return self._target_bytes(strategy, read.scope)
        source = self._sources[read.table]
        if read.part not in (Part.AFTER, Part.BEFORE):
            return source.changed_bytes(read.scope)
        sizes = source.now if read.part is Part.AFTER else source.before
        columns = strategy.partition_columns.get(read.table, {})
        within = self._bytes_in(sizes, {output: column for column, output in columns.items()}, strategy, read.scope)
        return min([within, *self._bytes_near(sizes, read)])

    def _bytes_near(self, sizes: TableSizes, read: Read) -> Iterator[int]:
        """What is left of a table by each column of which only the range of changed values is read."""
        for column in sorted({each.column for each in read.near}):
            spans = {self._sources[each.source].span(each.source_column) for each in read.near if each.column == column}
            known = [span for span in spans if span is not None]
            if len(known) == len(spans):
                key = id(sizes), column, frozenset(known)
                if key not in self._within:
                    self._within[key] = sizes.near(column, known)
                yield self._within[key]

    def _target_bytes(self, strategy: Strategy, scope: Scope) -> int:
        if self._sizes is None:
            return 0
        outputs = {output for columns in strategy.partition_columns.values() for output in columns.values()}
        return self._bytes_in(self._sizes, {output: output for output in outputs}, strategy, scope)

    def _bytes_in(self, sizes: TableSizes, columns: Mapping[str, str], strategy: Strategy, scope: Scope) -> int:
        """The bytes of a table in the partitions of a scope; ``columns``: what the table calls each output."""
        outputs = sorted(columns)
        wanted = None if scope is Scope.EVERYTHING else self._wanted(strategy, outputs, scope)
        if wanted is None or not outputs:
            return sizes.total
        key = id(sizes), tuple(outputs), tuple(columns[each] for each in outputs), scope, frozenset(wanted)
        if key not in self._within:
            self._within[key] = sizes.within([columns[each] for each in outputs], wanted)
        return self._within[key]

    def _wanted(self, strategy: Strategy, outputs: Sequence[str], scope: Scope) -> set[Values] | None:
        """The values of output columns that any change touches."""
        found: set[Values] = set()
        for name, columns in strategy.partition_columns.items():
            own = {output: column for column, output in columns.items()}
            if sorted(own) != list(outputs):
                return None
            touched = self._sources[name].touched([own[output] for output in outputs], scope)
            if touched is None:
                return None
            found |= touched
        return found

    def _written(self, strategy: Strategy, found: Footprint) -> int:
        new = int(self._changed_share * self._total)
        match found.write:
            case Write.NOTHING:
                return 0
            case Write.APPEND:
                return new
            case Write.REPLACE if found.written is Scope.EVERYTHING:
                return self._total
            case Write.REPLACE:
                return self._target_bytes(strategy, found.written) + int(new * self._new_partition_share)
            case Write.MERGE if self._is_merge_on_read:
                return 2 * new
            case Write.MERGE:
                return self._target_bytes(strategy, found.written) + int(new * self._new_partition_share)

    @cached_property
    def _total(self) -> int:
        return 0 if self._sizes is None else self._sizes.total

    @cached_property
    def _changed_share(self) -> float:
        """How much of the result changes, if each byte of a source makes as much of it as any other."""
        shares = [
            source.added_bytes / source.now.total
            for source in self._sources.values()
            if source.details and source.now.total
        ]
        return min(sum(shares), 1.0)

    @cached_property
    def _new_partition_share(self) -> float:
        shares = [source.new_share for source in self._sources.values() if source.details]
        return max(shares, default=0.0)
