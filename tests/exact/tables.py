"""The tables of a scenario, made, filled and read with PyIceberg: quickly, and without Spark's memory of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.exact.forms import Kind

_ROWS = Schema(NestedField(1, "id", LongType()), NestedField(2, "part", StringType()), NestedField(3, "v", LongType()))
_BY_PART = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
_TOTALS = Schema(NestedField(1, "part", StringType()), NestedField(2, "n", LongType()))
_NUMBERS = Schema(NestedField(1, "n", LongType()))
_SCHEMAS = {
    Kind.ROWS: _ROWS,
    Kind.BRANCH_ROWS: _ROWS,
    Kind.STAGE: _ROWS,
    Kind.TOTALS: _TOTALS,
    Kind.COUNTS: _NUMBERS,
    Kind.TICKS: _NUMBERS,
    Kind.SEQUENCE: _NUMBERS,
}
#: (id, part), (part, n) or (n,), and how often.
Rows = Counter[tuple[object, ...]]
#: Rows of other writers.
FOREIGN = "foreign"
_PARTS = ("a", "b", None)


@dataclass
class Tables:
    """Sources and targets, and what was appended to the sources."""

    catalog: Catalog
    sources: list[str]
    #: By name, and what they hold.
    targets: Mapping[str, tuple[str, Kind]]
    #: By source: the rows of each snapshot, as (id, part).
    batches: dict[str, dict[int, list[tuple[int, str | None]]]] = field(default_factory=dict)
    _next: int = 1

    def make(self) -> None:
        for source in self.sources:
            self.catalog.create_table(source, _ROWS, partition_spec=_BY_PART)
            self.batches[source] = {}
        for name, kind in self.targets.values():
            if kind not in _SCHEMAS:
                continue
            spec = _BY_PART if kind is Kind.ROWS else PartitionSpec()
            table = self.catalog.create_table(name, _SCHEMAS[kind], partition_spec=spec)
            if kind is Kind.TICKS:
                table.append(pa.table({"n": pa.array([0], pa.int64())}))
            if kind is Kind.BRANCH_ROWS:
                table.append(_batch([(0, FOREIGN)]))
                head = table.current_snapshot()
                assert head is not None
                table.manage_snapshots().create_branch(head.snapshot_id, "b").commit()
                table.transaction().set_properties({"write.wap.enabled": "true"}).commit_transaction()

    def append(self, rows: int) -> None:
        """New rows for every source: of two partitions and of the one without a value."""
        for source in self.sources:
            made: list[tuple[int, str | None]] = [(self._next + n, _PARTS[(self._next + n) % 3]) for n in range(rows)]
            self._next += rows
            table = self.catalog.load_table(source)
            table.append(_batch(made))
            head = table.current_snapshot()
            assert head is not None
            self.batches[source][head.snapshot_id] = made

    def rows_until(self, source: str, snapshot_id: int | None) -> list[tuple[int, str | None]]:
        """What was appended to a source up to a snapshot."""
        found: list[tuple[int, str | None]] = []
        if snapshot_id is None:
            return found
        for each, rows in self.batches[source].items():
            found += rows
            if each == snapshot_id:
                return found
        raise AssertionError(f"{source} has no snapshot {snapshot_id}")

    def load(self, name: str) -> Table | None:
        try:
            return self.catalog.load_table(name)
        except NoSuchTableError:
            return None

    def read(self, name: str, kind: Kind) -> Rows:
        """The rows of a target, those of other writers left out."""
        table = self.load(name)
        if table is None:
            return Counter()
        branch = table.metadata.refs.get("b") if kind is Kind.BRANCH_ROWS else None
        scan = table.scan(snapshot_id=branch.snapshot_id) if branch else table.scan()
        found = scan.to_arrow()
        columns = [column for column in ("id", "part", "n") if column in found.column_names]
        rows = Counter(tuple(row[column] for column in columns) for row in found.to_pylist())
        return Counter({row: times for row, times in rows.items() if FOREIGN not in row})

    def restore(self, name: str, kind: Kind, rows: Rows) -> None:
        """Make a target what it should be, by hand."""
        table = self.load(name)
        if table is None or kind in (Kind.STAGE, Kind.MADE):
            return
        every = [row for row, times in rows.items() for _ in range(times)]
        if kind in (Kind.ROWS, Kind.BRANCH_ROWS, Kind.MADE_ROWS):
            made = _batch((int(str(number)), None if part is None else str(part)) for number, part in every)
        elif kind is Kind.TOTALS:
            made = _batch(((int(str(n)), None if part is None else str(part)) for part, n in every), _TOTALS)
        else:
            made = pa.table({"n": pa.array([int(str(n)) for (n,) in every], pa.int64())})
        with warnings.catch_warnings():
            # That there was nothing to replace.
            warnings.simplefilter("ignore", UserWarning)
            table.overwrite(made, branch="b" if kind is Kind.BRANCH_ROWS else "main")

    def write_foreign(self, name: str, kind: Kind) -> None:
        """Somebody else writes to a target, on its main branch."""
        table = self.load(name)
        if table is not None and kind in (Kind.ROWS, Kind.BRANCH_ROWS, Kind.MADE_ROWS, Kind.TOTALS):
            table.append(_batch([(0, FOREIGN)], _TOTALS if kind is Kind.TOTALS else _ROWS))


def _batch(rows: Iterable[tuple[int, str | None]], schema: Schema = _ROWS) -> pa.Table:
    given = list(rows)
    numbers = pa.array([number for number, _ in given], pa.int64())
    parts = pa.array([part for _, part in given], pa.string())
    return pa.table(
        {"part": parts, "n": numbers} if schema is _TOTALS else {"id": numbers, "part": parts, "v": numbers}
    )
