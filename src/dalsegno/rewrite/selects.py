"""Parts of a SELECT: grouping, windows, stars, and conditions as equalities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from dalsegno.rewrite import functions
from dalsegno.rewrite.expressions import conjuncts, kind_of, sql_of
from dalsegno.rewrite.relations import Edge, Item, Join, items_of
from dalsegno.rewrite.scopes import Columns, Scope, outside_column
from dalsegno.rewrite.tables import is_comparable

#: Resolves an expression of the SELECT.
Resolve = Callable[[exp.Expr], exp.Expr]


def equalities(condition: exp.Expr, scope: Scope, joined: Item | None) -> Iterator[Edge]:
    """The equalities that a condition asks for; ``joined``: it is the ON of this item."""
    items = scope.by_number
    for one_side, other_side, is_null_safe in _equal(condition):
        looked_at = [items_of(side, items) for side in (one_side, other_side)]
        if any(len(found) != 1 for found in looked_at) or looked_at[0] == looked_at[1]:
            continue
        (one,), (other,) = looked_at
        is_one_way = joined is not None and joined.join is not Join.INNER
        edge = Edge(one, one_side, other, other_side, is_one_way)
        if is_one_way and one is joined:
            edge = Edge(other, other_side, one, one_side, is_one_way)
        # A missing row of an outer join has NULLs, which ``<=>`` may find elsewhere, and which no row shows.
        missing = {edge.one} if is_one_way else {edge.one, edge.other}
        if is_null_safe and any(item.join is Join.LEFT for item in missing):
            continue
        if (not is_one_way or edge.other is joined) and _is_usable(edge, items):
            yield edge


def correlations(condition: exp.Expr | None, scope: Scope) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Columns of the query around this one, and what they must equal here."""
    for one, other, is_null_safe in _equal(condition):
        for outer, inner in ((one, other), (other, one)):
            found = None if is_null_safe else outside_column(outer)
            if found is not None and len(items_of(inner, scope.by_number)) == 1:
                yield found, inner


def _equal(condition: exp.Expr | None) -> Iterator[tuple[exp.Expr, exp.Expr, bool]]:
    """Both sides of each equality, and whether NULL equals NULL in it."""
    for part in conjuncts(condition):
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            yield part.this, part.expression, isinstance(part, exp.NullSafeEQ)


def _is_usable(edge: Edge, items: Mapping[int, Item]) -> bool:
    sides = (edge.one_side, edge.other_side)
    return all(sql_of(side) for side in sides) and is_comparable(*(kind_of(side, items) for side in sides))


def groups_of(
    select: exp.Select, outputs: Sequence[exp.Expr], resolve: Resolve, columns: Columns
) -> list[exp.Expr] | None:
    """The grouping expressions of a SELECT; None if it does not aggregate."""
    group = select.args.get("group")
    aggregated = [output for output in outputs if functions.aggregates_in(output)]
    if group is None:
        having = select.args.get("having")
        return [] if aggregated or (having is not None and functions.aggregates_in(having)) else None
    sets = [key for key in ("rollup", "cube", "grouping_sets", "totals") if group.args.get(key)]
    kinds = (exp.Rollup, exp.Cube, exp.GroupingSets)
    sets += [type(node).__name__ for node in group.expressions if isinstance(node, kinds)]
    if sets:
        operator = sets[0].upper().replace("GROUPINGSETS", "GROUPING SETS").replace("_", " ")
        raise columns.unclear(group, operator, "its totals are groups without the key.", "Make one table per grouping.")
    if group.args.get("all"):
        if not all(_is_all_aggregates(output) for output in aggregated):
            raise columns.unclear(
                group, "GROUP BY ALL", "an output mixes columns and aggregates.", "Name the grouping columns."
            )
        return [output for output in outputs if not functions.aggregates_in(output)]
    return [_group(node, outputs, resolve, columns) for node in group.expressions]


def _group(node: exp.Expr, outputs: Sequence[exp.Expr], resolve: Resolve, columns: Columns) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string:
        if not 1 <= int(node.name) <= len(outputs):
            raise columns.unclear(node, "GROUP BY", f"there is no output {node.name}.", "")
        return outputs[int(node.name) - 1]
    return resolve(node)


def _is_all_aggregates(output: exp.Expr) -> bool:
    """Whether each column of an output stands inside an aggregate."""
    inside = {id(found) for node in functions.aggregates_in(output) for found in node.find_all(exp.Column)}
    return all(id(found) in inside for found in output.find_all(exp.Column))


def windows_of(
    select: exp.Select, outputs: Sequence[exp.Expr], resolve: Resolve, columns: Columns
) -> list[tuple[list[exp.Expr], exp.Expr]]:
    """Each window function of the outputs, with its PARTITION BY."""
    named = {node.this.name.lower(): node for node in select.args.get("windows") or ()}
    found: list[tuple[list[exp.Expr], exp.Expr]] = []
    for window in (window for output in outputs for window in output.find_all(exp.Window)):
        function = functions.window_function(window)
        if not functions.is_known_window(function):
            raise columns.unclear(window, functions.name_of(function), "this window function is not followed.", "")
        partition = list(window.args.get("partition_by") or ())
        if (alias := window.args.get("alias")) is not None:
            if alias.name.lower() not in named or partition:
                raise columns.unclear(window, "OVER", f"window {alias.name!r} is not known.", "Write it out.")
            partition = [resolve(part) for part in named[alias.name.lower()].args.get("partition_by") or ()]
        found.append((partition, window))
    return found


def star_of(projection: exp.Expr, scope: Scope, columns: Columns) -> list[tuple[str, exp.Expr]]:
    """What ``*`` or ``t.*`` stands for."""
    star = projection.this if isinstance(projection, exp.Column) else projection
    if any(star.args.values()):
        raise columns.unclear(projection, "SELECT *", "EXCEPT is not expanded.", "Name the columns.")
    if scope.merged:
        raise columns.unclear(projection, "SELECT *", "it is not expanded over USING.", "Name the columns.")
    qualifiers = projection.parts[:-1] if isinstance(projection, exp.Column) else []
    wanted = tuple(part.name.lower() for part in qualifiers)
    found = [
        (name, columns.read(item, name))
        for item in scope.visible
        if not wanted or item.qualifier[-len(wanted) :] == wanted
        for name in item.relation.names
    ]
    if not found:
        raise columns.unclear(projection, "SELECT *", "its columns are not known.", "Name the columns.")
    return found
