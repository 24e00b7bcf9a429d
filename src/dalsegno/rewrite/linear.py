"""Reads in which a query is linear: the rows that it makes of both parts of a table are those that it makes of the
whole.

Filters, projections, generators, UNION ALL, inner joins, and the left side of outer, semi and anti joins keep this
property. Grouping, DISTINCT, windows, and the other side of these joins do not. The other sides of a UNION ALL add
rows of their own, so they have to be read as if they were empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dalsegno.rewrite.relations import Block, Relation, Scan, Union, scans_in

#: The occurrences on other sides of the unions above a read.
Siblings = frozenset[int]


def linear_scans(root: Relation) -> Mapping[Scan, Siblings]:
    """The reads in which a query is linear, each the only read of its place in the text, and their siblings."""
    return _distinguishable(root, _linear(root, frozenset()))


def linear_below(block: Block) -> Mapping[Scan, Siblings]:
    """The same for what a block groups."""
    return _distinguishable(block, _linear_items(block, frozenset()))


def _distinguishable(root: Relation, found: Iterator[tuple[Scan, Siblings]]) -> Mapping[Scan, Siblings]:
    """Without reads that cannot be replaced alone in the text, and those with siblings that are read elsewhere, too."""
    times = Counter(scan.occurrence for scan in scans_in(root))
    return {
        scan: siblings
        for scan, siblings in found
        if times[scan.occurrence] == 1 and all(times[sibling] == 1 for sibling in siblings)
    }


def _linear(relation: Relation, siblings: Siblings) -> Iterator[tuple[Scan, Siblings]]:
    match relation:
        case Scan():
            yield relation, siblings
        case Union(is_distinct=False):
            for child in relation.children:
                others = [other for other in relation.children if other is not child]
                if all(_is_emptied(other) for other in others):
                    beside = {scan.occurrence for other in others for scan in scans_in(other)}
                    yield from _linear(child, siblings | beside)
        case Block(groups=None, windows=[], is_distinct=False):
            yield from _linear_items(relation, siblings)
        case _:
            return


def _linear_items(block: Block, siblings: Siblings) -> Iterator[tuple[Scan, Siblings]]:
    for item in block.items:
        if item.is_mandatory:
            yield from _linear(item.relation, siblings)


def _is_emptied(relation: Relation) -> bool:
    """Whether a relation has no rows if its tables have none."""
    match relation:
        case Scan():
            return True
        case Union():
            return all(_is_emptied(child) for child in relation.children)
        case Block():
            return relation.groups != [] and any(
                item.is_mandatory and _is_emptied(item.relation) for item in relation.items
            )
        case _:
            return False
