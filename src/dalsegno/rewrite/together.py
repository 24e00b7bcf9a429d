"""New rows of several tables that join with each other alone, such as new orders and their lines.

A query that is linear in several reads changes by every mixture of old and new rows of them. If the new rows of one
find no old rows of another that it is joined with, in either direction, only the mixture of new rows is left. A probe
tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.expressions import sql_of
from dalsegno.rewrite.keys import NotProven, carriers
from dalsegno.rewrite.relations import Item, Relation, Scan, blocks_in
from dalsegno.rewrite.tables import Reading


@dataclass(frozen=True)
class Pair:
    """Two reads that are joined by equal columns."""

    one: Scan
    one_side: exp.Expr
    other: Scan
    other_side: exp.Expr


def pairs_of(root: Relation, scans: Sequence[Scan]) -> list[Pair] | None:
    """The joins that connect all of several reads; None if they do not."""
    found = [pair for pair in _pairs(root) if pair.one in scans and pair.other in scans]
    connected = {scans[0]}
    chosen = []
    while pair := next((pair for pair in found if (pair.one in connected) != (pair.other in connected)), None):
        connected |= {pair.one, pair.other}
        chosen.append(pair)
    return chosen if len(scans) > 1 and connected == set(scans) else None


def _pairs(root: Relation) -> list[Pair]:
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
        for new, new_side, old, old_side in (
            (pair.one, pair.one_side, pair.other, pair.other_side),
            (pair.other, pair.other_side, pair.one, pair.one_side),
        ):
            before = reading.changes[old.table.name].before
            if before is not None:
                added = reading.changes[new.table.name].added
                found.append(
                    f"SELECT 1 AS found FROM (SELECT {sql_of(new_side, 's.')} AS k FROM {added} s) n "
                    f"LEFT SEMI JOIN (SELECT {sql_of(old_side, 's.')} AS k FROM {before} s) o ON n.k <=> o.k"
                )
    return " UNION ALL ".join(found) + " LIMIT 1" if found else "SELECT 1 AS found WHERE false"
