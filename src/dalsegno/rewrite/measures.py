"""Aggregates that can be brought up to date from what they were and from what changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.relations import Block, Item, Obstacle, Relation, Scan, Union
from dalsegno.rewrite.tables import is_exact, quoted


class MeasureKind(StrEnum):
    SUM = "sum"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    AVERAGE = "avg"
    DISTINCT = "distinct"


@dataclass(frozen=True)
class Measure:
    """One aggregate of the output."""

    name: str
    kind: MeasureKind
    #: The type of the output.
    type: str
    #: Of a sum and an average: the output that counts its values, if there is one; empty: there is never a NULL.
    counted_by: str | None = None
    #: Of an average: the output that is the sum.
    summed_by: str | None = None

    @property
    def _is_sum(self) -> bool:
        return self.kind in (MeasureKind.SUM, MeasureKind.COUNT, MeasureKind.DISTINCT)

    def signed(self, alias: str, *, is_removed: bool) -> str:
        """What one term adds."""
        column = f"{alias}{quoted(self.name)}"
        if self.kind is MeasureKind.DISTINCT:
            return f"0 AS {quoted(self.name)}"
        if self.kind is MeasureKind.AVERAGE:
            return f"CAST(NULL AS {self.type}) AS {quoted(self.name)}"
        return f"-{column} AS {quoted(self.name)}" if is_removed else column

    def total(self) -> str:
        """What all terms add to a group."""
        column = quoted(self.name)
        if self._is_sum:
            return f"SUM({column})"
        return f"ANY_VALUE({column})" if self.kind is MeasureKind.AVERAGE else f"{self.kind.upper()}({column})"

    def value(self, *, removes: bool, total: Callable[[str], str]) -> str:
        """The new value; ``total`` gives all that is known of an output: its old value, and what was added to it."""
        match self.kind:
            case MeasureKind.SUM if removes and self.counted_by:
                found = f"CASE WHEN {total(self.counted_by)} > 0 THEN {total(self.name)} END"
            case MeasureKind.AVERAGE:
                counted, summed = total(self.counted_by or ""), total(self.summed_by or "")
                divided = f"CAST({summed} AS DOUBLE) / {counted}" if self.type == "double" else f"{summed} / {counted}"
                found = f"CASE WHEN {counted} > 0 THEN {divided} END"
            case _:
                found = total(self.name)
        return f"CAST({found} AS {self.type})"

    def both(self, one: str, other: str) -> str:
        """Two totals of one group as one."""
        columns = [f"{alias}{quoted(self.name)}" for alias in (one, other)]
        if self.kind in (MeasureKind.MIN, MeasureKind.MAX):
            return f"{'LEAST' if self.kind is MeasureKind.MIN else 'GREATEST'}({', '.join(columns)})"
        return f"COALESCE({' + '.join(columns)}, {', '.join(columns)})"


def measures_of(analysis: Analysis, block: Block, keys: set[str], *, removes: bool) -> tuple[list[Measure], str | None]:
    """The measures among the outputs, and the one that counts the rows of a group; raises ``NotProven``."""
    nodes = {name: block.outputs[name.lower()] for name in analysis.outputs if name not in keys}
    counts = {
        _argument(node): name
        for name, node in nodes.items()
        if isinstance(node, exp.Count) and not isinstance(node.this, exp.Distinct)
    }
    rows = next((name for argument, name in counts.items() if argument is None or is_never_null(argument, block)), None)
    sums = {_argument(node): name for name, node in nodes.items() if isinstance(node, exp.Sum)}
    if removes and rows is None and block.groups:
        raise _unproven(
            "rows are removed, and nothing tells when a group has none left.", "Add COUNT(*) to the outputs."
        )
    found = []
    for name, node in nodes.items():
        measure = _measure(name, node, analysis.kind(name), block, counts, sums)
        if removes and measure.kind in (MeasureKind.MIN, MeasureKind.MAX, MeasureKind.DISTINCT):
            raise _unproven(f"rows are removed, and {name} may have come from one of them.", "")
        is_open = measure.counted_by is None or (not measure.counted_by and not block.groups)
        if removes and measure.kind is MeasureKind.SUM and is_open:
            raise _unproven(
                f"rows are removed, and nothing tells when {name} becomes NULL.", "Add the COUNT of the same values."
            )
        found.append(measure)
    return found, rows


def _measure(
    name: str,
    node: exp.Expr,
    kind: str | None,
    block: Block,
    counts: dict[exp.Expr | None, str],
    sums: dict[exp.Expr | None, str],
) -> Measure:
    argument = _argument(node)
    is_full = argument is not None and is_never_null(argument, block)
    # All rows count where no value is ever NULL.
    counted_by = counts.get(argument) or (counts.get(None) if is_full else None)
    if is_full and counted_by is None:
        counted_by = ""
    match node:
        case exp.Count(this=exp.Distinct()):
            return Measure(name, MeasureKind.DISTINCT, "bigint")
        case exp.Count() | exp.CountIf():
            return Measure(name, MeasureKind.COUNT, "bigint")
        case exp.Min() | exp.Max() if is_exact(kind):
            return Measure(name, MeasureKind(node.key), str(kind))
        case exp.Sum() if not isinstance(node.this, exp.Distinct):
            if kind != "bigint" and not str(kind).startswith("decimal"):
                raise _unproven(f"{name} is not a sum of exact numbers, or its type is not known.", "")
            return Measure(name, MeasureKind.SUM, str(kind), counted_by)
        case exp.Avg() if argument in sums and counted_by and kind is not None:
            return Measure(name, MeasureKind.AVERAGE, kind, counted_by, sums[argument])
        case _:
            raise _unproven(f"{name} cannot be brought up to date from its old value.", "")


def _argument(node: exp.Expr) -> exp.Expr | None:
    """What is counted or summed; None for all rows."""
    inner = node.this if isinstance(node.this, exp.Expr) else None
    return None if isinstance(inner, exp.Star | exp.Literal) else inner


def is_never_null(expression: exp.Expr, block: Block) -> bool:
    """Whether an expression has a value in every row of a block."""
    items = {item.number: item for item in block.items}
    match expression:
        case exp.Column():
            item = items.get(int(expression.table[1:]))
            return item is not None and item.is_mandatory and _is_required(item, expression.name)
        case exp.Literal():
            return True
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Neg() | exp.Paren():
            return all(is_never_null(part, block) for part in expression.iter_expressions())
        case exp.Case(this=None):
            otherwise = expression.args.get("default")
            values = [branch.args["true"] for branch in expression.args["ifs"]]
            return otherwise is not None and all(is_never_null(value, block) for value in (*values, otherwise))
        case _:
            return False


def _is_required(item: Item, name: str) -> bool:
    relation: Relation = item.relation
    match relation:
        case Scan():
            return relation.table.by_lower_name[name] in relation.table.required
        case Block():
            return relation.groups is None and is_never_null(relation.outputs[name], relation)
        case Union():
            at = relation.names.index(name)
            return all(_is_required(Item(0, child, ("",)), child.names[at]) for child in relation.children)
        case _:
            return False


def _unproven(reason: str, hint: str) -> NotProven:
    return NotProven(Obstacle("delta", reason, hint))
