"""The columns by which changes are followed, and the ranges of their changed values.

New rows of a table that grows by appends lie close together: their order numbers, or their times. If the other reads
are restricted to this range, Iceberg leaves out all files that lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.keys import Direct, NotProven, Touch, carriers, key_of
from dalsegno.rewrite.ordering import orderings
from dalsegno.rewrite.partitions import EVERYTHING, any_of, renamed
from dalsegno.rewrite.relations import Item, Relation, Scan, blocks_in
from dalsegno.rewrite.tables import Name, Reading
from dalsegno.rewrite.touching import Replayed, TouchedKeys

_ORDERED = frozenset({"int", "bigint", "date", "timestamp", "timestamp_ntz"})


def is_ordered(kind: str | None) -> bool:
    """Whether rows are often sorted by columns of a type."""
    return kind in _ORDERED


def followed_columns(analysis: Analysis) -> dict[Name, tuple[str, ...]]:
    """Source → its columns that are joined by, numbered by, or handed through to the output, as it writes them."""
    found: dict[Name, dict[str, None]] = {}
    for scan, expression in _followed(analysis):
        if isinstance(expression, exp.Column) and is_ordered(scan.table.type_of(expression.name)):
            written = scan.table.by_lower_name[expression.name.lower()]
            found.setdefault(scan.table.name, {})[written] = None
    return {name: tuple(columns) for name, columns in found.items()}


def _followed(analysis: Analysis) -> Iterator[tuple[Scan, exp.Expr]]:
    for block in blocks_in(analysis.root):
        for edge in block.edges:
            yield from _carried(edge.one, edge.one_side)
            yield from _carried(edge.other, edge.other_side)
    yield from orderings(analysis)
    for name in analysis.outputs:
        yield from _carried(analysis.root, key_of(analysis.root, [name.lower()])[0])


def _carried(relation: Item | Relation, expression: exp.Expr) -> list[tuple[Scan, exp.Expr]]:
    try:
        found = carriers(relation.relation if isinstance(relation, Item) else relation, (expression,))
    except NotProven:
        return []
    return [(carrier.scan, carrier.key[0]) for carrier in found]


def range_of(reading: Reading, touch: Touch | Replayed, at: int, column: str) -> str:
    """What holds for one part of all keys that a change touches, as a predicate on a column."""
    if not isinstance(touch, Direct):
        return EVERYTHING
    return changed_range(reading, touch.carrier.scan, touch.carrier.key[at], column)


def changed_range(reading: Reading, scan: Scan, expression: exp.Expr, column: str) -> str:
    """What holds for an expression over the changed rows of a read, as a predicate on a column."""
    if not isinstance(expression, exp.Column):
        return EVERYTHING
    name = expression.name.lower()
    ranges: Mapping[str, str] = reading.changes[scan.table.name].ranges
    return renamed(ranges[name], {name: column}) if name in ranges else EVERYTHING


def range_of_keys(reading: Reading, keys: TouchedKeys, name: str, column: str) -> str:
    """The same for all changes."""
    at = keys.names.index(name)
    return any_of([range_of(reading, touch, at, column) for touch in keys.touches])


def where_all(predicates: Sequence[str]) -> str:
    """A WHERE for what holds of all rows that matter; nothing if that is nothing."""
    kept = list(dict.fromkeys(each for each in predicates if each != EVERYTHING))
    return f" WHERE {' AND '.join(kept)}" if kept else ""
