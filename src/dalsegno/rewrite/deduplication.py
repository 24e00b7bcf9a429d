"""Probe-then-append: new rows of a deduplicated table are appended where the target does not have their key.

The query takes one row of each key, by ROW_NUMBER or DISTINCT, and makes rows of the target of it. Of a key that is
new in both, the first of its new rows is taken. Of a key that the target has, the first of all rows is either the one
that it was, or the first of the new ones: if both make the same rows, nothing changes. A probe finds the keys for
which this is not so; then another strategy is needed.

Where metadata proves that all new rows are numbered after all old ones, as those that are ordered by the time of their
arrival are, nothing changes for a key that the source had. No probe is needed, and no row of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.expressions import conjuncts, sql_of, substituted
from dalsegno.rewrite.functions import window_function
from dalsegno.rewrite.keys import NotProven, Whole, carriers, key_of
from dalsegno.rewrite.linear import linear_below
from dalsegno.rewrite.ordering import first_in_order
from dalsegno.rewrite.partitions import EVERYTHING, NOTHING, PassedPartitions, partition_names, passed, quoted_with
from dalsegno.rewrite.relations import Block, Item, Join, Obstacle, Occurrence, Relation, Scan, scans_in
from dalsegno.rewrite.tables import Reading, Table, quoted, quoted_list
from dalsegno.rewrite.touching import candidates, touched_keys
from dalsegno.rewrite.writing import Writer


@dataclass(frozen=True)
class Deduplication:
    """A query that takes one row of each key of one read."""

    analysis: Analysis
    target: Table
    scan: Scan
    #: The output columns that are the key.
    keys: tuple[str, ...]
    #: The key as expressions over the columns of the read.
    source_key: Whole
    #: Whether each key that the source has is in the target.
    is_total: bool
    #: Whether the key is the whole row, which cannot get other values.
    is_distinct: bool
    through: PassedPartitions | None
    #: How many of the keys the query counts by; others are determined by these.
    key_size: int
    #: Whether each key of the source, and so each row that counts, is numbered: nothing is left out before.
    is_whole: bool
    #: The column of the read by which rows are numbered first, in lower case; None: another order.
    order: str | None

    def probe(self, reading: Reading) -> str | None:
        """Returns a row if a key that is not new gets other rows."""
        if self._is_later(reading) or self._reopened(reading, quoted_with("")) == NOTHING:
            return None
        writer = Writer(self.analysis, self.target, reading)
        columns, new = quoted_list(writer.columns), self._new(writer, self._late(writer, reading))
        old = self._old(writer, reading, writer.columns)
        found = [
            f"SELECT {columns}, 1 AS _dalsegno_net, 0 AS _dalsegno_old, 0 AS _dalsegno_seen FROM ({new})",
            f"SELECT {columns}, -1, 1, 0 FROM ({old})",
        ]
        before = None if self.is_total else writer.change(self.scan.table.name).before
        if before is not None:
            # The source may have keys that the target has not: a new row is not the first one of such a key.
            nothing = ", ".join(
                quoted(each) if each in self.keys else f"NULL AS {quoted(each)}" for each in writer.columns
            )
            found.append(f"SELECT {nothing}, 0, 0, 1 FROM ({self._seen(writer, reading, before)})")
        rows = (
            f"SELECT {quoted_list(self.keys)}, SUM(_dalsegno_net) AS _dalsegno_net, "
            "MAX(_dalsegno_old) AS _dalsegno_old, MAX(_dalsegno_seen) AS _dalsegno_seen "
            f"FROM (\n{' UNION ALL '.join(found)}\n) GROUP BY {columns}"
        )
        return (
            f"SELECT 1 FROM ({rows}) GROUP BY {quoted_list(self.keys)} "
            "HAVING (MAX(_dalsegno_old) = 1 AND MAX(ABS(_dalsegno_net)) > 0) "
            "OR (MAX(_dalsegno_old) = 0 AND MAX(_dalsegno_seen) = 1 AND MAX(_dalsegno_net) > 0) LIMIT 1"
        )

    def _seen(self, writer: Writer, reading: Reading, before: str) -> str:
        """The keys of new rows that the source had before."""
        known = f"SELECT {self._source_keys()} FROM {before} s{self._where(reading, 's.', is_source=True)}"
        return (
            f"SELECT {self._broadcast(writer, 'k')}b.* FROM ({known}) b "
            f"LEFT SEMI JOIN ({self._touched(writer, reading)}) k ON {self._same('b', 'k')}"
        )

    def _touched(self, writer: Writer, reading: Reading) -> str:
        return f"SELECT DISTINCT {self._source_keys()} FROM {self._late(writer, reading)} s"

    def statements(self, reading: Reading) -> list[str]:
        writer = Writer(self.analysis, self.target, reading)
        if self._is_later(reading):
            return [
                f"INSERT INTO {writer.name} ({quoted_list(writer.columns)})\n"
                f"{self._new(writer, self._unseen(writer, reading))}"
            ]
        there = self._old(writer, reading, self.keys)
        new = self._new(writer, self._added(writer))
        return [
            f"INSERT INTO {writer.name} ({quoted_list(writer.columns)})\n"
            f"SELECT {self._broadcast(writer, 't')}{quoted_list(writer.columns, 'n.')} FROM (\n{new}\n) n "
            f"LEFT ANTI JOIN ({there}) t ON {self._same('n', 't')}"
        ]

    def _is_later(self, reading: Reading) -> bool:
        """Whether all new rows are numbered after all rows that the source had with their keys."""
        name = self.scan.table.name
        change = reading.changes[name]
        is_in_reopened = self.through is not None and self.through.are_all(name, change)
        return self.is_whole and self.order in (change.later | (change.later_in_reopened if is_in_reopened else set()))

    def _unseen(self, writer: Writer, reading: Reading) -> str:
        """The new rows with keys that the source did not have before."""
        before = writer.change(self.scan.table.name).before
        if before is None or self._reopened(reading, quoted_with("")) == NOTHING:
            return self._added(writer)
        same = " AND ".join(
            f"{sql_of(part, 's.')} <=> k.{quoted(key)}" for part, key in zip(self.source_key, self.keys, strict=True)
        )
        return (
            f"(SELECT {self._broadcast(writer, 'k')}s.* FROM {self._added(writer)} s "
            f"LEFT ANTI JOIN ({self._seen(writer, reading, before)}) k ON {same})"
        )

    def _broadcast(self, writer: Writer, alias: str) -> str:
        return writer.broadcast(alias, is_late=self.through is not None)

    def _old(self, writer: Writer, reading: Reading, columns: Sequence[str]) -> str:
        """The target's rows with keys of new rows. The semi join keeps few rows, so that what follows is cheap."""
        touched = self._touched(writer, reading)
        return (
            f"SELECT {self._broadcast(writer, 'k')}{quoted_list(columns, 't.')} FROM {writer.name} t "
            f"LEFT SEMI JOIN ({touched}) k ON {self._same('t', 'k')}{self._where(reading, 't.')}"
        )

    def _new(self, writer: Writer, rows: str) -> str:
        """What the query makes of new rows alone."""

        def relation(occurrence: Occurrence) -> str | None:
            return rows if occurrence.number == self.scan.occurrence else None

        return writer.outputs(writer.query(relation))

    def _added(self, writer: Writer) -> str:
        return writer.change(self.scan.table.name).added

    def _late(self, writer: Writer, reading: Reading) -> str:
        """The new rows whose keys may have been there before."""
        where = self._where(reading, "s.", is_source=True)
        return f"(SELECT * FROM {self._added(writer)} s{where})" if where else self._added(writer)

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{quoted(key)} <=> {other}.{quoted(key)}" for key in self.keys)

    def _source_keys(self) -> str:
        return ", ".join(
            f"{sql_of(part, 's.')} AS {quoted(key)}" for part, key in zip(self.source_key, self.keys, strict=True)
        )

    def _where(self, reading: Reading, alias: str, *, is_source: bool = False) -> str:
        parts = {
            key: part.name for key, part in zip(self.keys, self.source_key, strict=True) if isinstance(part, exp.Column)
        }
        column = (lambda output: f"{alias}{quoted(parts[output])}") if is_source else quoted_with(alias)
        predicate = self._reopened(reading, column)
        return "" if predicate == EVERYTHING else f" WHERE {predicate}"

    def _reopened(self, reading: Reading, column: Callable[[str], str]) -> str:
        """Only partitions that were there before can have keys that were there before."""
        return EVERYTHING if self.through is None else self.through.reopened(reading.changes, column)


def deduplication_of(analysis: Analysis, target: Table, scans: Sequence[Scan]) -> Deduplication:
    """How a deduplicating query is brought up to date after appends; raises ``NotProven``."""
    if len(scans) != 1:
        raise _unproven("several tables changed, or one is read several times.")
    scan = scans[0]
    usable = set(candidates(analysis, target))
    path = _path(analysis.root, scan)
    last = path[-1]
    is_distinct = last.is_distinct and len(path) == 1 and not last.windows and last.groups is None
    if is_distinct:
        keys, is_total = analysis.outputs, True
    else:
        keys, is_total = _numbered(analysis, path)
    if inexact := [key for key in keys if key not in usable]:
        raise _unproven(f"the type of {', '.join(inexact)} is not exact, or not known.")
    if scan not in linear_below(last):
        raise _unproven(f"{scan.table} is grouped, deduplicated or outer-joined before.")
    source_key, size = _source_key(analysis, keys, scan), len(keys)
    # Partition columns that the key determines say where the target can have it.
    more = [name for name in partition_names(target, analysis.outputs) if name in usable and name not in keys]
    for name in () if is_distinct else more:
        with suppress(NotProven):
            source_key = _source_key(analysis, (*keys, name), scan)
            keys = (*keys, name)
    through = passed(touched_keys(analysis, keys, [scan]), target, aligned=False)
    numbered = None if is_distinct else first_in_order(last, last.windows[0][1])
    order = numbered[1].name.lower() if numbered is not None and numbered[0] is scan else None
    return Deduplication(
        analysis, target, scan, keys, source_key, is_total, is_distinct, through, size, _is_whole(last), order
    )


def is_first_taken(analysis: Analysis, scan: Scan) -> bool:
    """Whether of the rows that ROW_NUMBER counts only number 1 is taken."""
    try:
        _numbered(analysis, _path(analysis.root, scan))
    except NotProven:
        return False
    return True


def _is_whole(block: Block) -> bool:
    """Whether a block has every row of one read."""
    if len(block.items) != 1 or block.condition is not None or block.subqueries or block.groups is not None:
        return False
    inner = block.items[0].relation
    return isinstance(inner, Scan) or (isinstance(inner, Block) and not inner.is_distinct and _is_whole(inner))


def _source_key(analysis: Analysis, keys: Sequence[str], scan: Scan) -> Whole:
    """The key as expressions over the columns of a read."""
    try:
        carrying = carriers(analysis.root, key_of(analysis.root, [key.lower() for key in keys]))
    except NotProven as error:
        raise _unproven(error.obstacle.reason) from error
    if len(carrying) != 1 or carrying[0].scan is not scan:
        raise _unproven("the key is not made of columns of the table that changed.")
    return carrying[0].key


def _path(root: Relation, scan: Scan) -> list[Block]:
    """The blocks from the query down to the one that takes one row of each key; all but that one are linear."""
    path: list[Block] = []
    at = root
    while isinstance(at, Block):
        path.append(at)
        if at.groups is not None or at.windows or at.is_distinct:
            return path
        item = next((item for item in at.items if scan in set(scans_in(item.relation))), None)
        if item is None or not item.is_mandatory:
            break
        at = item.relation
    raise _unproven("the query does not take one row of each key.")


def _numbered(analysis: Analysis, path: Sequence[Block]) -> tuple[tuple[str, ...], bool]:
    """The outputs that ROW_NUMBER counts by, if only number 1 is taken; and whether every key is in the result."""
    last = path[-1]
    if len(path) == 1 or len(last.windows) != 1 or last.groups is not None or last.is_distinct:
        raise _unproven("the query does not take one row of each key.")
    partition, window = last.windows[0]
    if not isinstance(window, exp.Window) or not isinstance(window_function(window), exp.RowNumber):
        raise _unproven("only ROW_NUMBER takes one row of each key.")
    number = next((name for name, output in last.outputs.items() if output is window or output == window), "")
    above = path[-2]
    item = next(item for item in above.items if item.relation is last)
    if not any(_is_first(part, item, number) for part in conjuncts(above.condition)):
        raise _unproven("the query does not take number 1 alone.")
    made_of = {name: _over(path, name.lower()) for name in analysis.outputs}
    keys = []
    for part in partition:
        found = next((name for name, expression in made_of.items() if expression == part), None)
        if found is None:
            raise _unproven("a column of PARTITION BY is not among the outputs.")
        keys.append(found)
    is_total = all(
        all(each.join is Join.LEFT or scan_item for each in block.items for scan_item in [_holds(each, path)])
        and all(_is_first(part, item, number) for part in conjuncts(block.condition))
        for block in path[:-1]
    )
    return tuple(dict.fromkeys(keys)), is_total


def _holds(item: Item, path: Sequence[Block]) -> bool:
    return any(item.relation is block for block in path)


def _is_first(part: exp.Expr, item: Item, number: str) -> bool:
    """``number = 1``"""
    if not isinstance(part, exp.EQ):
        return False
    sides = {type(side): side for side in (part.this, part.expression)}
    column, literal = sides.get(exp.Column), sides.get(exp.Literal)
    return (
        column is not None
        and literal is not None
        and (column.table, column.name, literal.name) == (f"#{item.number}", number, "1")
    )


def _over(path: Sequence[Block], name: str) -> exp.Expr | None:
    """An output as an expression over what the last block reads."""
    expression = path[0].outputs[name]
    for above, below in pairwise(path):
        item = next(item for item in above.items if item.relation is below)
        if any(column.table != f"#{item.number}" for column in expression.find_all(exp.Column)):
            return None
        outputs: Mapping[str, exp.Expr] = below.outputs
        expression = substituted(expression, lambda column, outputs=outputs: outputs[column.name])  # type: ignore[misc]
    return expression


def _unproven(reason: str) -> NotProven:
    return NotProven(Obstacle("append new keys", reason, ""))
