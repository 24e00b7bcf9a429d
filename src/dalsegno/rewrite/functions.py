"""Functions by what they do to incremental computation: which aggregates are exact, and what is a matter of chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from dalsegno.rewrite.relations import Obstacle, Verdict
from dalsegno.rewrite.texts import Place
from dalsegno.spark.forms.trees import functions_in, is_deterministic, is_now

#: Aggregates with one value for one set of rows, whatever their order.
_EXACT: tuple[type[exp.Expr], ...] = (
    *(exp.Sum, exp.Count, exp.CountIf, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp),
)
_EXACT_NAMES = frozenset({"every", "some", "bool_or", "mean", "std"})
_AGGREGATE_NAMES = _EXACT_NAMES | {
    *("any_value", "array_agg", "collect_list", "collect_set", "count_min_sketch", "histogram_numeric", "kurtosis"),
    *("listagg", "string_agg", "percentile_approx", "approx_percentile", "percentile", "mode", "median", "skewness"),
    *("hll_sketch_agg", "hll_union_agg", "regr_avgx", "regr_avgy", "regr_count", "regr_slope", "regr_intercept"),
    *("max_by", "min_by", "first", "last", "try_sum", "try_avg", "bitmap_construct_agg", "bitmap_or_agg"),
    *("bit_and", "bit_or", "bit_xor", "schema_of_variant_agg", "theta_sketch_agg", "theta_union_agg", "measure"),
}
#: Window functions whose value depends on the order of rows.
_ORDERED: tuple[type[exp.Expr], ...] = (
    *(exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.First, exp.Last, exp.Ntile),
)
_RANKS: tuple[type[exp.Expr], ...] = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)

_MOMENTS = frozenset({"now", "today", "yesterday", "tomorrow"})

#: Where a part of the tree stands in the text.
Locate = Callable[[exp.Expr], Place | None]


def name_of(function: exp.Expr) -> str:
    """As people call it."""
    if isinstance(function, exp.Anonymous):
        return function.name.lower()
    names = getattr(type(function), "sql_names", None)
    return names()[0].lower() if names else type(function).__name__.lower()


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node makes one value of many rows. That it stands in a window, it does not know."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _AGGREGATE_NAMES
    return isinstance(node, exp.AggFunc) and not isinstance(
        node, (exp.RowNumber, *_RANKS, exp.Lag, exp.Lead, exp.Ntile)
    )


def is_exact_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, _EXACT) or (isinstance(node, exp.Anonymous) and node.name.lower() in _EXACT_NAMES)


def aggregates_in(expression: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression that GROUP BY is for, not those that are window functions."""
    return [
        node
        for node in expression.find_all(exp.AggFunc, exp.Anonymous)
        if is_aggregate(node) and not _is_windowed(node)
    ]


def _is_windowed(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def window_function(window: exp.Window) -> exp.Expr:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    found: exp.Expr = function
    return found


def needs_order(function: exp.Expr) -> bool:
    """Whether rows that tie in ORDER BY leave its value open."""
    return isinstance(function, _ORDERED)


def is_known_window(function: exp.Expr) -> bool:
    return isinstance(function, (*_ORDERED, *_RANKS)) or is_exact_aggregate(function)


def _moving(name: str, place: Place | None) -> Obstacle:
    reason = "its value changes with time, so the result changes without any change of a source."
    return Obstacle(name, reason, "Filter where the table is read.", place, Verdict.REFUSED)


def doubts(expression: exp.Expr, declared: frozenset[str], locate: Locate) -> Iterator[Obstacle]:
    """What keeps the value of an expression from depending on its rows alone."""
    for function in functions_in(expression):
        if isinstance(function, exp.Anonymous) and function.name.lower() in declared | _AGGREGATE_NAMES:
            continue
        if is_deterministic(function) or any(not is_deterministic(inner) for inner in function.iter_expressions()):
            continue
        name, place = name_of(function), locate(function)
        if is_now(function) or name.startswith(("current_", "now", "local")):
            yield _moving(name, place)
        elif isinstance(function, exp.Anonymous):
            yield Obstacle(
                name,
                "it is not known to be deterministic.",
                f"If it depends on its arguments alone, declare it: deterministic: [{name}].",
                place,
            )
        else:
            yield Obstacle(
                name,
                "its value is random, so no two runs agree.",
                "Use a hash of the row's columns.",
                place,
                Verdict.REFUSED,
            )
    for found in expression.find_all(exp.Any, exp.All):
        # The parser takes the aggregate ANY(x) for a comparison.
        if not isinstance(found.parent, exp.Like | exp.ILike):
            yield Obstacle("any", "it is not known whether it aggregates.", "Use BOOL_OR or BOOL_AND.", locate(found))
    for literal in expression.find_all(exp.Literal):
        if isinstance(literal.parent, exp.Cast) and literal.name.strip().lower() in _MOMENTS:
            yield _moving(f"'{literal.name}'", locate(literal))
    for node in aggregates_in(expression):
        if not is_exact_aggregate(node):
            yield Obstacle(
                name_of(node),
                "its value depends on the order of rows, or is approximate.",
                "Use min, max, sum, count, avg or COUNT(DISTINCT …).",
                locate(node),
            )
