"""Expressions that may be keys: of what they are made, of which type they are, and how they are written as SQL.

Only these are ever written by us; everything else stays in the user's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from dalsegno.rewrite.relations import Barrier, Block, Constant, Item, Relation, Scan, Union
from dalsegno.rewrite.tables import is_comparable, quoted, type_of
from dalsegno.spark.statements import tokens_of

_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_TEXTS = frozenset({"string"})
#: Functions of one argument that may make a key: their name, what they take, and what they make.
_FUNCTIONS: Mapping[type[exp.Expr], tuple[str, frozenset[str], str]] = {
    exp.Upper: ("UPPER", _TEXTS, "string"),
    exp.Lower: ("LOWER", _TEXTS, "string"),
    exp.Year: ("YEAR", _TIMES, "int"),
    exp.Month: ("MONTH", _TIMES, "int"),
    exp.Quarter: ("QUARTER", _TIMES, "int"),
}
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"})


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """What holds if the condition holds."""
    waiting = [condition] if condition is not None else []
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.And):
            waiting += [part.right, part.left]
        else:
            yield part


def is_made_of(expression: exp.Expr, parts: Sequence[exp.Expr]) -> bool:
    """Whether an expression has one value where all the parts have one: it is made of them and of constants alone."""
    if any(expression == part for part in parts):
        return True
    if isinstance(expression, exp.Column | exp.Anonymous | exp.Placeholder | exp.Parameter):
        return False
    children = list(expression.iter_expressions())
    return bool(children) and all(isinstance(child, _CONSTANTS) or is_made_of(child, parts) for child in children)


_CONSTANTS = (exp.Literal, exp.Var, exp.DataType, exp.Identifier, exp.Null, exp.Boolean)


def substituted(expression: exp.Expr, replace: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """The expression with each column replaced."""
    if isinstance(expression, exp.Column):
        return replace(expression).copy()
    copy = expression.copy()
    for found in list(copy.find_all(exp.Column)):
        found.replace(replace(found).copy())
    return copy


def sql_of(expression: exp.Expr, alias: str = "") -> str | None:
    """A key over the columns of a scan as SQL; None if it is not one of those that we write."""
    if isinstance(expression, exp.Column):
        return f"{alias}{quoted(expression.name)}"
    if isinstance(expression, exp.Dot):
        inner = sql_of(expression.this, alias)
        return None if inner is None else f"{inner}.{quoted(expression.expression.name)}"
    inner = sql_of(_argument(expression), alias) if _argument(expression) is not expression else None
    return None if inner is None else _call(expression, inner)


_COMPARISONS: Mapping[type[exp.Expr], str] = {
    **{exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>"},
    **{exp.And: "AND", exp.Or: "OR", exp.Is: "IS"},
}


def condition_sql(condition: exp.Expr, alias: str, text: str) -> str | None:
    """A simple condition over the columns of a scan as SQL; None if it is not. ``text``: the query that it is of."""
    if type(condition) in _COMPARISONS:
        sides = [condition_sql(side, alias, text) for side in (condition.this, condition.expression)]
        return None if None in sides else f"({sides[0]} {_COMPARISONS[type(condition)]} {sides[1]})"
    match condition:
        case exp.Not():
            inner = condition_sql(condition.this, alias, text)
            return None if inner is None else f"(NOT {inner})"
        case exp.Null() | exp.Boolean():
            return condition.sql("spark")
        case exp.Literal() if condition.is_string:
            # The tree has other words for strings with quotes in them.
            written = f"'{condition.name}'"
            return written if written in {token.text for token in tokens_of(text)} else None
        case exp.Literal():
            return condition.name
        case _:
            return sql_of(condition, alias)


def _call(expression: exp.Expr, inner: str) -> str | None:
    if _is_date(expression):
        return f"CAST({inner} AS DATE)"
    if type(expression) in _FUNCTIONS:
        return f"{_FUNCTIONS[type(expression)][0]}({inner})"
    if isinstance(expression, exp.TimestampTrunc) and (unit := expression.text("unit").upper()) in _UNITS:
        return f"DATE_TRUNC('{unit}', {inner})"
    return None


def _argument(expression: exp.Expr) -> exp.Expr:
    found = expression.this if isinstance(expression.this, exp.Expr) else expression
    # sqlglot reads YEAR(x) as YEAR(TO_DATE(x)).
    if isinstance(expression, exp.Year | exp.Month | exp.Quarter) and isinstance(found, exp.TsOrDsToDate):
        return found.this if isinstance(found.this, exp.Expr) else found
    return found


def _is_date(expression: exp.Expr) -> bool:
    if isinstance(expression, exp.Cast):
        return expression.to.this is exp.DataType.Type.DATE and not expression.args.get("format")
    return isinstance(expression, exp.TsOrDsToDate) and not expression.args.get("format")


def kind_of(expression: exp.Expr, items: Mapping[int, Item]) -> str | None:
    """The type of an expression; None if it is not known."""
    if isinstance(expression, exp.Column):
        return kind_in(items[int(expression.table[1:])].relation, expression.name)
    if isinstance(expression, exp.Dot):
        return _field_kind(kind_of(expression.this, items), expression.expression.name)
    if isinstance(expression, exp.Cast) and not _is_date(expression):
        return type_of(expression.to.sql("spark"))
    if isinstance(expression, exp.Literal):
        return "string" if expression.is_string else None
    argument = _argument(expression)
    inner = kind_of(argument, items) if argument is not expression else None
    return None if inner is None else _made_kind(expression, inner)


def _made_kind(expression: exp.Expr, inner: str) -> str | None:
    """The type of a function of something."""
    if _is_date(expression):
        return "date" if inner in _TIMES else None
    if type(expression) in _FUNCTIONS:
        _, taken, made = _FUNCTIONS[type(expression)]
        return made if inner in taken else None
    if isinstance(expression, exp.TimestampTrunc):
        # Of a date Spark makes a timestamp.
        return {"timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz", "date": "timestamp"}.get(inner)
    return None


def kind_in(relation: Relation, name: str) -> str | None:
    """The type of a column of a relation; None if it is not known."""
    match relation:
        case Scan():
            return relation.table.type_of(name)
        case Block():
            items = {item.number: item for item in relation.items}
            return kind_of(relation.outputs[name], items) if name in relation.outputs else None
        case Union():
            at = relation.names.index(name)
            kinds = [kind_in(child, child.names[at]) for child in relation.children]
            # Spark may cast one side to the type of the other.
            return kinds[0] if all(is_comparable(kinds[0], kind) for kind in kinds) else None
        case Barrier() | Constant():
            return None


def _field_kind(struct: str | None, name: str) -> str | None:
    """The type of a field of ``struct<a:int,b:string>``."""
    if struct is None or not (struct.startswith("struct<") and struct.endswith(">")):
        return None
    depth, begin, inner = 0, 0, struct[len("struct<") : -1] + ","
    for at, character in enumerate(inner):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            written, _, kind = inner[begin:at].partition(":")
            if written.strip("`").lower() == name.lower():
                return type_of(kind)
            begin = at + 1
    return None
