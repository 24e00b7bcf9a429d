"""The keys that a run touches: how they are found for every source that changed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.keys import NotProven, Parts, Touch, carriers, joins_in, key_of, restrictions, touched
from dalsegno.rewrite.linear import linear_scans
from dalsegno.rewrite.relations import Block, Obstacle, Relation, Scan, column
from dalsegno.rewrite.tables import Table, is_comparable, is_exact

_REPLAY = 4
#: More columns make a key no more exact, in practice.
_MOST_COLUMNS = 12


@dataclass(frozen=True)
class Replayed:
    """The key's values are in the rows that the query makes of the changed rows: it is linear in them."""

    scan: Scan


@dataclass(frozen=True)
class TouchedKeys:
    """A key of output columns, and where the touched values of it are found."""

    names: tuple[str, ...]
    touches: tuple[Touch | Replayed, ...]
    #: Occurrence → by which parts of the key it may be restricted.
    restrictions: dict[int, Parts]
    #: Whether restricting the reads leaves touched rows alone, so that the output need not be filtered.
    is_exact: bool

    @property
    def joins(self) -> int:
        """How many joins it takes to find what was touched; a replay of the whole query counts as several."""
        return sum(_REPLAY if isinstance(touch, Replayed) else joins_in(touch) for touch in self.touches)


def candidates(analysis: Analysis, target: Table) -> list[str]:
    """The output columns that may be part of a key: their values are stored unchanged, and are exact."""
    found = []
    for name in analysis.outputs:
        kind, stored = analysis.kind(name), target.type_of(name)
        if is_exact(kind) and (stored is None or is_comparable(kind, stored)):
            found.append(name)
    return found


def touched_keys(
    analysis: Analysis, names: Sequence[str], changed: Sequence[Scan], *, replays: bool = True
) -> TouchedKeys:
    """How the touched values of a key are found; raises ``NotProven``.

    ``replays``: the query itself may be asked which keys the changed rows make.
    """
    lowered = [name.lower() for name in names]
    key = key_of(analysis.root, lowered)
    linear = linear_scans(analysis.root) if replays else ()
    touches = tuple(_touch(analysis, key, scan, linear) for scan in changed)
    found = _restrictions(analysis, key)
    return TouchedKeys(tuple(names), touches, found, _is_exact(analysis, key, found))


def best_key(analysis: Analysis, target: Table, changed: Sequence[Scan], *, replays: bool = True) -> TouchedKeys:
    """The key that takes the fewest joins to find, as large as it can be with no more of them.

    It is proven for every read that changed; raises ``NotProven`` if there is none.
    """
    found: list[TouchedKeys] = []
    why: NotProven | None = None
    for name in candidates(analysis, target):
        try:
            found.append(touched_keys(analysis, [name], changed, replays=replays))
        except NotProven as error:
            why = why or error
    if not found:
        reason = "no output column is a column of a source with an exact type."
        raise why or NotProven(Obstacle("SELECT", reason, "Add a key column to the SELECT."))
    best = min(found, key=lambda keys: keys.joins)
    for single in found:
        if single.names[0] not in best.names and len(best.names) < _MOST_COLUMNS:
            try:
                larger = touched_keys(analysis, [*best.names, *single.names], changed, replays=replays)
            except NotProven:
                continue
            if larger.joins <= best.joins:
                best = larger
    return best


def inner_key(analysis: Analysis, block: Block, changed: Sequence[Scan]) -> TouchedKeys:
    """A key of the rows that a block groups, by which all of them can be restricted; raises ``NotProven``."""
    rows: dict[str, exp.Expr] = {
        f"_dalsegno_{item.number}_{name}": column(item, name)
        for item in block.items
        if item.is_mandatory
        for name in _read_names(analysis, item.relation)
    }
    ungrouped = replace(block, groups=None, having=None, outputs=rows)
    inside = replace(analysis, root=ungrouped, outputs=tuple(rows), kinds={})
    keys = best_key(inside, Table((), {}), changed, replays=False)
    if not keys.is_exact:
        raise NotProven(Obstacle("key", "not all rows of a group can be restricted by it.", ""))
    return keys


def _read_names(analysis: Analysis, relation: Relation) -> Iterable[str]:
    """The columns of an item that the query reads: changes may come without others."""
    if not isinstance(relation, Scan):
        return relation.names
    read = (name.lower() for name in analysis.occurrences[relation.occurrence].columns)
    return [name for name in read if name in relation.names]


def _touch(analysis: Analysis, key: tuple[exp.Expr, ...], scan: Scan, linear: Container[Scan]) -> Touch | Replayed:
    try:
        return touched(analysis.root, key, scan)
    except NotProven:
        if scan in linear:
            return Replayed(scan)
        raise


def _restrictions(analysis: Analysis, key: tuple[exp.Expr, ...]) -> dict[int, Parts]:
    """What holds for every read that one place in the text makes."""
    found: dict[int, Parts] = {}
    for scan, parts in restrictions(analysis.root, key):
        known = found.setdefault(scan.occurrence, parts)
        found[scan.occurrence] = tuple(
            one if one is not None and other is not None and _same(one, other) else None
            for one, other in zip(known, parts, strict=True)
        )
    return found


def _same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two expressions over the columns of one table are the same, whatever the read is called."""
    bare = [each.copy() for each in (one, other)]
    for each in bare:
        for found in each.find_all(exp.Column):
            found.set("table", None)
    return bare[0] == bare[1]


def _is_exact(analysis: Analysis, key: tuple[exp.Expr, ...], found: dict[int, Parts]) -> bool:
    try:
        carrying = carriers(analysis.root, key)
    except NotProven:
        return False
    return all(
        all(
            part is not None and _same(part, own)
            for part, own in zip(found[carrier.scan.occurrence], carrier.key, strict=True)
        )
        for carrier in carrying
    )
