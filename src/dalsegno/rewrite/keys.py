"""Where the values of a key stand in the sources, and which of them a change touches.

A *key* is a tuple of expressions over the columns of a relation. Three questions are answered, each by going down the
tree, and "not proven" is always an answer:

- ``restrictions``: which reads may be reduced to the rows that have certain values of the key, without any change of
  the output rows that have these values.
- ``carriers``: which reads together show every value of the key that the output has.
- ``touched``: for a read that changed, a query for the values of the key whose output rows may have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.dependencies import determined
from dalsegno.rewrite.expressions import is_made_of, kind_in, sql_of, substituted
from dalsegno.rewrite.relations import (
    Barrier,
    Block,
    Constant,
    Edge,
    Item,
    Join,
    Obstacle,
    Relation,
    Scan,
    Union,
    column,
    items_of,
    scans_in,
)

#: An expression for each part of a key; None where a part has none here.
Parts = tuple[exp.Expr | None, ...]
Whole = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Carrier:
    """A read of a table, and the key as expressions over its columns."""

    scan: Scan
    key: Whole


@dataclass(frozen=True)
class Direct:
    """The key's values are in the changed rows themselves."""

    carrier: Carrier


@dataclass(frozen=True)
class Joined:
    """The key's values are in the rows that join with what was touched."""

    carriers: tuple[Carrier, ...]
    #: How many expressions of each carrier are the key; the others are compared with what ``by`` gives.
    size: int
    by: Touch


Touch = Direct | Joined


def joins_in(touch: Touch) -> int:
    """How many joins it takes to find what was touched."""
    return 0 if isinstance(touch, Direct) else 1 + joins_in(touch.by)


class NotProven(Exception):
    """A change cannot be followed to the output."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(str(obstacle))
        self.obstacle = obstacle


def key_of(root: Relation, names: Sequence[str]) -> Whole:
    """A key of output columns, ready for the questions."""
    item = Item(0, root, ("",))
    return tuple(column(item, name) for name in names)


# From a relation to what it is made of.


def _below(block: Block, expression: exp.Expr) -> exp.Expr | Obstacle:
    """An expression over a block's outputs as one over its items, if all rows that a row comes from agree in it."""
    found = substituted(expression, lambda output: block.outputs[output.name])
    if block.groups is not None and not is_made_of(found, block.groups):
        return Obstacle("GROUP BY", "the column is not one of the grouping columns.", "Add it to GROUP BY.")
    for partition, window in block.windows:
        if not is_made_of(found, partition) and not is_made_of(found, determined(block, partition)):
            return Obstacle(
                f"window {window.this.key}", "its PARTITION BY does not have the column.", "Add it to PARTITION BY."
            )
    return found


def _child_names(union: Union, child: Relation) -> Mapping[str, str]:
    return dict(zip(union.names, child.names, strict=True))


def _placed(block: Block, expression: exp.Expr) -> dict[Item, exp.Expr]:
    """The items over whose columns an expression can be written, in every row of the block that has the item."""
    by_number = {item.number: item for item in block.items}
    first = items_of(expression, by_number)
    if len(first) != 1 or not next(iter(first)).is_mandatory:
        return {}
    found = {next(iter(first)): expression}
    waiting = [next(iter(first))]
    while waiting:
        at = waiting.pop()
        for edge in _from(block, at):
            if edge.one_side == found[at] and edge.other not in found:
                found[edge.other] = edge.other_side
                waiting.append(edge.other)
    return found


def _from(block: Block, item: Item) -> list[Edge]:
    """The equalities of an item with others, seen from it."""
    found = [edge for edge in block.edges if edge.one is item]
    turned = [edge for edge in block.edges if edge.other is item and not edge.is_one_way]
    return found + [Edge(edge.other, edge.other_side, edge.one, edge.one_side, False) for edge in turned]


# The three questions.


def restrictions(relation: Relation, key: Parts) -> list[tuple[Scan, Parts]]:
    """Every read, and by which parts of the key it may be restricted."""
    match relation:
        case Scan():
            return [(relation, tuple(part if part is not None and sql_of(part) else None for part in key))]
        case Constant():
            return []
        case Barrier():
            return [(scan, (None,) * len(key)) for scan in scans_in(relation)]
        case Union():
            return [
                found
                for child in relation.children
                for found in restrictions(child, tuple(_renamed(part, relation, child) for part in key))
            ]
        case Block():
            below = [None if part is None else _below(relation, part) for part in key]
            placed = [_placed(relation, part) if isinstance(part, exp.Expr) else {} for part in below]
            found = [
                each
                for item in relation.items
                for each in restrictions(item.relation, tuple(places.get(item) for places in placed))
            ]
            hidden = [scan for subquery, _ in relation.subqueries for scan in scans_in(subquery)]
            return found + [(scan, (None,) * len(key)) for scan in hidden]


def _renamed(part: exp.Expr | None, union: Union, child: Relation) -> exp.Expr | None:
    """A part of a key over one side of a union; None if the sides may be cast to one type."""
    if part is None or any(kind_in(union, found.name) is None for found in part.find_all(exp.Column)):
        return None
    names = _child_names(union, child)
    item = Item(0, child, ("",))
    return substituted(part, lambda output: column(item, names[output.name]))


def carriers(relation: Relation, key: Whole) -> tuple[Carrier, ...]:
    """Reads that together have every value of the key that the relation has."""
    match relation:
        case Scan():
            if any(sql_of(part) is None for part in key):
                raise NotProven(Obstacle("key", "an expression in it is not supported.", "Use plain columns as keys."))
            return (Carrier(relation, key),)
        case Union():
            found = [
                carriers(child, tuple(_whole(_renamed(part, relation, child)) for part in key))
                for child in relation.children
            ]
            return tuple(each for some in found for each in some)
        case Block():
            placed = [_placed(relation, _whole(_below(relation, part))) for part in key]
            last: NotProven | None = None
            for item in relation.items:
                if item.is_mandatory and all(item in places for places in placed):
                    try:
                        return carriers(item.relation, tuple(places[item] for places in placed))
                    except NotProven as error:
                        last = error
            raise last or NotProven(
                Obstacle(
                    "JOIN", "no single table has all columns of the key and of the join.", "Choose a key of one table."
                )
            )
        case Barrier():
            raise NotProven(relation.obstacle)
        case Constant():
            raise NotProven(Obstacle("VALUES", "it has no source.", ""))


def _whole(part: exp.Expr | Obstacle | None) -> exp.Expr:
    if isinstance(part, exp.Expr):
        return part
    raise NotProven(part or Obstacle("key", "the column is not passed through.", ""))


def touched(relation: Relation, key: Whole, scan: Scan) -> Touch:
    """The values of the key whose rows may have changed, because a read did."""
    match relation:
        case Scan():
            if any(sql_of(part) is None for part in key):
                raise NotProven(Obstacle("key", "an expression in it is not supported.", "Use plain columns as keys."))
            return Direct(Carrier(relation, key))
        case Union():
            child = next(child for child in relation.children if scan in set(scans_in(child)))
            return touched(child, tuple(_whole(_renamed(part, relation, child)) for part in key), scan)
        case Block():
            return _touched_in(relation, key, scan)
        case Barrier():
            raise NotProven(relation.obstacle)
        case Constant():
            raise NotProven(Obstacle("VALUES", "it has no source.", ""))


def _touched_in(block: Block, key: Whole, scan: Scan) -> Touch:
    for subquery, obstacle in block.subqueries:
        if scan in set(scans_in(subquery)):
            raise NotProven(obstacle)
    below = [_below(block, part) for part in key]
    if reason := next((part for part in below if isinstance(part, Obstacle)), None):
        raise NotProven(reason)
    placed = [_placed(block, part) for part in below if isinstance(part, exp.Expr)]
    changed = next(item for item in block.items if scan in set(scans_in(item.relation)))
    if all(changed in places for places in placed):
        return touched(changed.relation, tuple(places[changed] for places in placed), scan)
    owners = [item for item in block.items if item.is_mandatory and all(item in places for places in placed)]
    if not owners:
        raise NotProven(_no_owner(block, below))
    paths = sorted((_path(block, owner, changed) for owner in owners), key=len)
    last: NotProven | None = None
    for path in paths:
        try:
            return _touched_along(block, path, tuple(places[path[0]] for places in placed), scan)
        except NotProven as error:
            last = last or error
    raise last or AssertionError


def _no_owner(block: Block, below: Sequence[exp.Expr | Obstacle]) -> Obstacle:
    by_number = {item.number: item for item in block.items}
    for part in below:
        for item in items_of(part, by_number) if isinstance(part, exp.Expr) else ():
            if item.join is Join.LEFT:
                return Obstacle(
                    "LEFT JOIN",
                    "the key comes from its nullable side, where a missing row is NULL.",
                    "Take the key from the left side.",
                )
    return Obstacle("JOIN", "the key is made of columns of several tables.", "Choose a key of one table.")


def _path(block: Block, owner: Item, changed: Item) -> list[Item]:
    """The items from the one that has the key to the one that changed, each joined with the next."""
    before: dict[Item, Item] = {}
    waiting = [owner]
    while waiting:
        at = waiting.pop(0)
        for edge in _from(block, at):
            if edge.other is not owner and edge.other not in before:
                before[edge.other] = at
                waiting.append(edge.other)
    if changed not in before:
        raise NotProven(
            Obstacle(
                "JOIN",
                "its condition has no equality of columns of one type.",
                "Join by equal columns of the same type.",
            )
        )
    path = [changed]
    while path[-1] is not owner:
        path.append(before[path[-1]])
    return path[::-1]


def _touched_along(block: Block, path: Sequence[Item], key: Whole, scan: Scan) -> Touch:
    """What was touched at the end of a path of joins, followed back to its beginning."""
    at, following = path[0], path[1:]
    if not following:
        return touched(at.relation, key, scan)
    last: NotProven | None = None
    edges = [edge for edge in _from(block, at) if edge.other is following[0]]
    # All equalities together touch the fewest rows; a single one will do where not all can be followed.
    for some in [edges, *([edge] for edge in edges)]:
        try:
            by = _touched_along(block, following, tuple(edge.other_side for edge in some), scan)
            found = carriers(at.relation, (*key, *(edge.one_side for edge in some)))
            return Joined(found, len(key), by)
        except NotProven as error:
            last = last or error
    raise last or AssertionError
