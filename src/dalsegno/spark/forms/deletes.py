"""Conditions of DELETE: whether files or rows are deleted, and whether deleting twice deletes more.

Where Iceberg can delete whole files, it does so by their metadata, and the new snapshot carries none of the session's
snapshot properties. Spark lets it do so only if there is no subquery in the condition.
"""

from __future__ import annotations

from sqlglot import exp

from dalsegno.spark.forms.trees import is_deterministic, is_now

#: What makes of a moment another one that gets later, or earlier, as it does.
_MONOTONIC: tuple[type[exp.Expr], ...] = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Interval, exp.Literal, exp.Var),
    *(exp.TsOrDsAdd, exp.DateAdd, exp.DateSub, exp.AddMonths, exp.TimestampTrunc, exp.TimestampAdd),
)
_MOMENTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})


def is_by_rows(condition: exp.Expr, table: str) -> bool:
    """Whether a condition surely has a subquery left when Spark decides.

    Spark replaces ``(SELECT 1)`` and ``EXISTS (SELECT 1)`` by their values before, and leaves ``column IN (SELECT …)``
    and an EXISTS that looks at the deleted row.
    """
    return any(_is_subquery_about_row(part, table) for part in _conjuncts(condition))


def _is_subquery_about_row(part: exp.Expr, table: str) -> bool:
    if isinstance(part, exp.Not):
        part = part.this
    if isinstance(part, exp.In) and part.args.get("query") is not None:
        compared = part.this.expressions if isinstance(part.this, exp.Tuple) else [part.this]
        return all(isinstance(column, exp.Column) for column in compared)
    return isinstance(part, exp.Exists) and _looks_at(part, table.lower())


def _looks_at(subquery: exp.Expr, table: str) -> bool:
    """Whether a subquery names columns of a table that is not its own."""
    own = {inner.alias_or_name.lower() for inner in subquery.find_all(exp.Table)}
    own |= {alias.name.lower() for alias in subquery.find_all(exp.TableAlias)}
    return table not in own and any(column.table.lower() == table for column in subquery.find_all(exp.Column))


def is_idempotent(condition: exp.Expr) -> bool:
    """Whether deleting a second time finds nothing more."""
    # A subquery may read the table itself, perhaps by a view, and give something else when rows are gone.
    if condition.find(exp.Query) is not None:
        return False
    varying = [part for part in _conjuncts(condition) if not is_deterministic(part)]
    # What is older than a moment now, is so later: one of both executions deletes all that both delete.
    return not varying or (len(varying) == 1 and _is_before_or_after_now(varying[0]))


def _is_before_or_after_now(part: exp.Expr) -> bool:
    """``at < now() - INTERVAL 30 DAYS`` and the like."""
    if not isinstance(part, exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    moments = [side for side in (part.left, part.right) if not is_deterministic(side)]
    if len(moments) != 1:
        return False
    nodes = list(moments[0].walk())
    return sum(map(is_now, nodes)) == 1 and all(is_now(node) or _is_monotonic(node) for node in nodes)


def _is_monotonic(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.this.value in _MOMENTS
    return isinstance(node, _MONOTONIC) or (isinstance(node, exp.DataType) and node.this.value in _MOMENTS)


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Paren):
            waiting.append(part.this)
        elif isinstance(part, exp.And):
            waiting += [part.left, part.right]
        else:
            found.append(part)
    return found
