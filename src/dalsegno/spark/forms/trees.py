"""Statements as trees: sqlglot in its Spark dialect, and what of its answers can be relied upon."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from dalsegno.spark.forms.form import Doubt, Name

# It says as a warning what it cannot parse, and a tree says it, too.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

#: What gives another value each time.
_RANDOM = frozenset(["rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"])
_TIME = frozenset(
    ["now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp", "unix_timestamp"]
)
#: Of Spark's own functions that sqlglot has no class for, those whose value depends on their arguments alone.
_DETERMINISTIC = frozenset(
    [
        "array_size",
        "bround",
        "conv",
        "date_from_unix_date",
        "date_part",
        "elt",
        "find_in_set",
        "hash",
        "isnotnull",
        "luhn_check",
        "make_date",
        "make_dt_interval",
        "make_interval",
        "make_timestamp",
        "make_ym_interval",
        "named_struct",
        "negative",
        "next_day",
        "pmod",
        "positive",
        "timestamp_micros",
        "timestamp_millis",
        "timestamp_seconds",
        "to_number",
        "to_timestamp_ltz",
        "to_timestamp_ntz",
        "try_add",
        "try_divide",
        "try_multiply",
        "try_subtract",
        "try_to_number",
        "typeof",
        "unix_date",
        "unix_micros",
        "unix_millis",
        "unix_seconds",
        "url_decode",
        "weekday",
        "xxhash64",
    ]
)


def tree_of(text: str) -> exp.Expr:
    """What ``for_parser`` gave, as a tree."""
    try:
        found = parse(text, read="spark")
    except SqlglotError as error:
        raise Doubt("the parser does not know its grammar") from error
    if len(found) != 1 or not isinstance(found[0], exp.Expr) or isinstance(found[0], exp.Command):
        raise Doubt("the parser does not know its grammar")
    return found[0]


def name_of(node: object) -> Name:
    """The parts of a table's name."""
    if isinstance(node, exp.Schema):
        node = node.this
    if not isinstance(node, exp.Table):
        raise Doubt("its target is not a table's name")
    parts = node.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise Doubt("its target is not a table's name")
    return tuple(part.name for part in parts)


def is_constant(node: exp.Expr) -> bool:
    """Whether an expression has one value, whenever and wherever it is evaluated."""
    return is_deterministic(node) and not any(node.find_all(exp.Column, exp.Query, exp.Placeholder, exp.Parameter))


def is_deterministic(node: exp.Expr) -> bool:
    """Whether the same rows give the same value, today and tomorrow."""
    return all(_depends_on_arguments(function) for function in functions_in(node))


def functions_in(node: exp.Expr) -> Iterator[exp.Expr]:
    yield from node.find_all(exp.Func)
    # Some go without parentheses, and ``date'today'`` is one, too.
    yield from (leaf for leaf in node.find_all(exp.Column, exp.Literal) if is_now(leaf) or _says_who(leaf))


def is_now(node: exp.Expr) -> bool:
    """Whether a function gives the moment, or the day, of its evaluation."""
    if isinstance(node, exp.Column):
        return not node.table and node.name.lower() in _TIME
    if isinstance(node, exp.Literal):
        return node.is_string and node.name == "now"
    if isinstance(node, exp.Anonymous):
        return not node.expressions and node.name.lower() in _TIME
    return isinstance(node, exp.CurrentDate | exp.CurrentTimestamp) and not node.this


def _says_who(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Column)
        and not node.table
        and node.name.lower() in ("current_user", "session_user", "user")
    )


def _depends_on_arguments(function: exp.Expr) -> bool:
    if isinstance(function, exp.Column | exp.Literal | exp.AnonymousAggFunc | exp.UserDefinedFunction):
        return False
    if isinstance(function, exp.Anonymous):
        return function.name.lower() in _DETERMINISTIC and isinstance(function.this, str)
    names = {name.lower() for name in getattr(type(function), "sql_names", list)()}
    is_session = type(function).__name__.startswith(("Current", "Session", "Localtime"))
    return not (names & (_RANDOM | _TIME) or is_session)
