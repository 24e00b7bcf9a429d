"""New rows of several tables that join with each other alone, such as new orders and their lines.

A query that is linear in several reads changes by every mixture of old and new rows of them. If the new rows of one
find no old rows of another that it is joined with, in either direction, only the mixture of new rows is left. A probe
tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.expressions import sql_of
from dalsegno.rewrite.keys import NotProven, carriers
from dalsegno.rewrite.partitions import EVERYTHING
from dalsegno.rewrite.ranges import changed_range, where_all
from dalsegno.rewrite.relations import Item, Relation, Scan, blocks_in
from dalsegno.rewrite.tables import Reading, quoted


@dataclass(frozen=True)
class Pair:
    """Two reads that are joined by equal columns."""

    one: Scan
    one_side: exp.Expr
    other: Scan
    other_side: exp.Expr

    @property
    def both_ways(self) -> Iterator[tuple[Scan, exp.Expr, Scan, exp.Expr]]:
        yield self.one, self.one_side, self.other, self.other_side
        yield self.other, self.other_side, self.one, self.one_side


def pairs_of(root: Relation, scans: Sequence[Scan]) -> list[Pair] | None:
    """The joins that connect all of several reads; None if they do not."""
    found = [pair for pair in joined_pairs(root) if pair.one in scans and pair.other in scans]
    connected = {scans[0]}
    chosen = []
    while pair := next((pair for pair in found if (pair.one in connected) != (pair.other in connected)), None):
        connected |= {pair.one, pair.other}
        chosen.append(pair)
    return chosen if len(scans) > 1 and connected == set(scans) else None


def joined_pairs(root: Relation) -> list[Pair]:
    """All pairs of reads that are joined by equal columns."""
    found = []
    for block in blocks_in(root):
        for edge in block.edges:
            ends = [_end(edge.one, edge.one_side), _end(edge.other, edge.other_side)]
            if ends[0] is not None and ends[1] is not None:
                found.append(Pair(*ends[0], *ends[1]))
    return found


def _end(item: Item, side: exp.Expr) -> tuple[Scan, exp.Expr] | None:
    """The read that one side of an equality comes from."""
    if not item.is_mandatory:
        return None
    try:
        found = carriers(item.relation, (side,))
    except NotProven:
        return None
    return (found[0].scan, found[0].key[0]) if len(found) == 1 else None


def probe(pairs: Sequence[Pair], reading: Reading) -> str:
    """Returns a row if new rows of one table find old rows of another."""
    found = []
    for pair in pairs:
        for new, new_side, old, old_side in pair.both_ways:
            before = reading.changes[old.table.name].before
            if before is not None:
                added = reading.changes[new.table.name].added
                near = EVERYTHING
                if isinstance(old_side, exp.Column):
                    near = changed_range(reading, new, new_side, f"s.{quoted(old_side.name)}")
                found.append(
                    f"SELECT 1 AS found FROM (SELECT {sql_of(new_side, 's.')} AS k FROM {added} s) n "
                    f"LEFT SEMI JOIN (SELECT {sql_of(old_side, 's.')} AS k FROM {before} s{where_all([near])}) o "
                    "ON n.k <=> o.k"
                )
    return " UNION ALL ".join(found) + " LIMIT 1" if found else "SELECT 1 AS found WHERE false"
