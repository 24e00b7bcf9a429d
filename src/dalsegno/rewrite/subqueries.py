"""Subqueries in expressions: joins by equal columns, if each row looks at the rows with equal columns alone.

``x IN (SELECT y …)`` as a condition, and any subquery with ``inner.y = outer.x`` in its WHERE, see of what they read
only the rows with y = x, whatever they make of them. NOT IN does not: a NULL concerns every row.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dalsegno.rewrite.expressions import kind_of, sql_of
from dalsegno.rewrite.relations import Block, Edge, Item, Obstacle, Relation, column, items_of
from dalsegno.rewrite.scopes import Scope
from dalsegno.rewrite.tables import is_comparable
from dalsegno.rewrite.texts import Place


def looked_at(relation: Relation) -> Relation:
    """The rows that a correlated subquery looks at, with the columns that must equal outer ones."""
    if not isinstance(relation, Block) or not relation.correlations:
        return relation
    outputs = {f"#{at}": inner for at, (_, inner) in enumerate(relation.correlations)}
    return replace(relation, outputs=outputs, groups=None, windows=[], is_distinct=False, having=None)


def subquery_edges(item: Item, compared: exp.Expr | None, scope: Scope) -> list[Edge]:
    """The equalities of a subquery with the query around it; ``compared``: what must be IN it, resolved."""
    relation = item.relation
    pairs = []
    if isinstance(relation, Block) and relation.correlations:
        pairs = [(outer, column(item, f"#{at}")) for at, (outer, _) in enumerate(relation.correlations)]
    elif compared is not None and len(relation.names) == 1:
        pairs = [(compared, column(item, relation.names[0]))]
    items = scope.by_number | {item.number: item}
    edges = []
    for outer, inner in pairs:
        owners = items_of(outer, items)
        is_usable = sql_of(outer) is not None and is_comparable(kind_of(outer, items), kind_of(inner, items))
        if len(owners) == 1 and is_usable:
            edges.append(Edge(next(iter(owners)), outer, item, inner, is_one_way=True))
    return edges


def any_row_depends(place: Place | None) -> Obstacle:
    reason = "a change of what it reads may change every row."
    return Obstacle("subquery", reason, "Write it as a join on the key.", place)
