"""Which columns of the sources an output column is made of."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.relations import Barrier, Block, Join, Relation, Scan, Union
from dalsegno.rewrite.tables import Name


@dataclass(frozen=True, order=True)
class Origin:
    """A column of a source."""

    table: Name
    column: str

    def __str__(self) -> str:
        return ".".join((*self.table, self.column))


def origins_in(relation: Relation, name: str) -> frozenset[Origin] | None:
    """The columns that the values of an output are computed from; None if that is not known.

    Columns that only decide which rows there are, in filters and joins, are not among them.
    """
    match relation:
        case Scan():
            return frozenset({Origin(relation.table.name, relation.table.by_lower_name[name])})
        case Block():
            items = {item.number: item for item in relation.items}
            expression = relation.outputs[name]
            # A subquery, a column of a query around this one, or what a generator makes.
            is_open = any(str(found.this).startswith("#") for found in expression.find_all(exp.Anonymous))
            columns = [(items[int(column.table[1:])], column.name) for column in expression.find_all(exp.Column)]
            is_open |= any(item.join is Join.GENERATOR for item, _ in columns)
            return None if is_open else _together([origins_in(item.relation, column) for item, column in columns])
        case Union():
            at = relation.names.index(name)
            return _together([origins_in(child, child.names[at]) for child in relation.children])
        case Barrier():
            return None
        case _:
            return frozenset()


def _together(found: list[frozenset[Origin] | None]) -> frozenset[Origin] | None:
    known = [each for each in found if each is not None]
    return frozenset().union(*known) if len(known) == len(found) else None
