"""The table that a query is about: the first of its outermost FROM. What it joins are dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dalsegno.rewrite.tables import Name
from dalsegno.rewrite.texts import QueryText


def leading_table(query: str) -> Name | None:
    """Its name as the query writes it; None if there is none, or the sides of a UNION begin with different ones."""
    return _leading(QueryText.of(query).parsed(), {})


def _leading(node: exp.Expr, ctes: Mapping[str, Name | None]) -> Name | None:
    if (with_ := node.args.get("with_")) is not None:
        for cte in with_.expressions:
            ctes = {**ctes, cte.alias.lower(): _leading(cte.this, ctes)}
    match node:
        case exp.Select():
            from_ = node.args.get("from_")
            return None if from_ is None else _leading(from_.this, ctes)
        case exp.Subquery():
            return _leading(node.this, ctes)
        case exp.SetOperation():
            sides = {_leading(side, ctes) for side in (node.this, node.expression)}
            return sides.pop() if len(sides) == 1 else None
        case exp.Table():
            if not all(isinstance(part, exp.Identifier) for part in node.parts):
                return None
            name = tuple(part.name for part in node.parts)
            return ctes[name[0].lower()] if len(name) == 1 and name[0].lower() in ctes else name
        case _:
            return None
