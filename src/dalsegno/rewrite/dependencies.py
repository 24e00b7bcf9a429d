"""Columns that are determined by others in every row of a relation, by what the author states of its sources.

Leaving out rows, repeating them and grouping them keeps such a dependency. A UNION does not: its sides may differ. Nor
does the nullable side of an outer join, where a missing row and a row of NULLs look alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from dalsegno.rewrite.expressions import is_made_of, substituted
from dalsegno.rewrite.facts import Fact, closure
from dalsegno.rewrite.relations import Block, Relation, Scan, column


def determined(block: Block, given: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Some expressions, and the columns of a block's items that have one value where all of these have one."""
    found = list(given)
    for item in block.items:
        if item.is_mandatory:
            own = frozenset(name for name in item.relation.names if column(item, name) in given)
            found += [column(item, name) for name in _closure(item.relation, own) - own]
    return found


def _closure(relation: Relation, names: frozenset[str]) -> frozenset[str]:
    """The columns of a relation that some of them determine."""
    match relation:
        case Scan():
            return closure(names, relation.table.facts, relation.names) if relation.table.facts else names
        case Block():
            # Only columns: COUNT(a) is not determined by what determines a.
            plain = {name: part for name, part in relation.outputs.items() if isinstance(part, exp.Column)}
            known = determined(relation, [plain[name] for name in names if name in plain])
            return names | {name for name, part in plain.items() if part in known}
        case _:
            return names


def facts_behind(relation: Relation, key: Sequence[exp.Expr]) -> tuple[Fact, ...]:
    """The facts that a key needs to pass through the window functions of a relation."""
    return tuple(dict.fromkeys(_behind(relation, key)))


def _behind(relation: Relation, key: Sequence[exp.Expr]) -> Iterator[Fact]:
    if not isinstance(relation, Block):
        return
    below = [substituted(part, lambda output: relation.outputs[output.name]) for part in key]
    if not all(is_made_of(part, partition) for part in below for partition, _ in relation.windows):
        yield from _facts_in(relation)
    for item in relation.items:
        place = f"#{item.number}"
        yield from _behind(item.relation, [part for part in below if _tables(part) == {place}])


def _tables(part: exp.Expr) -> set[str]:
    return {found.table for found in part.find_all(exp.Column)}


def _facts_in(relation: Relation) -> Iterator[Fact]:
    match relation:
        case Scan():
            yield from relation.table.facts
        case Block():
            for item in relation.items:
                if item.is_mandatory:
                    yield from _facts_in(item.relation)
        case _:
            return
