"""The columns by which rows are numbered first: rows that are larger there than all others come after them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.functions import window_function
from dalsegno.rewrite.relations import Block, Scan, blocks_in
from dalsegno.rewrite.tables import Name


def ordering_columns(analysis: Analysis) -> dict[Name, set[str]]:
    """Source → its columns by which ROW_NUMBER counts first, in lower case."""
    found: dict[Name, set[str]] = {}
    for scan, column in orderings(analysis):
        found.setdefault(scan.table.name, set()).add(column.name.lower())
    return found


def orderings(analysis: Analysis) -> Iterator[tuple[Scan, exp.Column]]:
    """Each read whose rows are numbered, and the column by which they are first."""
    for block in blocks_in(analysis.root):
        for _, window in block.windows:
            if (found := first_in_order(block, window)) is not None:
                yield found


def first_in_order(block: Block, window: exp.Expr) -> tuple[Scan, exp.Column] | None:
    """The column of a read by which a block numbers rows, if NULL comes first, and small values before large ones."""
    if not isinstance(window, exp.Window) or not isinstance(window_function(window), exp.RowNumber):
        return None
    order = window.args.get("order")
    first = order.expressions[0] if order is not None else None
    is_ascending = isinstance(first, exp.Ordered) and not first.args.get("desc") and first.args.get("nulls_first")
    return _read(block, first.this) if is_ascending and first is not None else None


def _read(block: Block, expression: exp.Expr) -> tuple[Scan, exp.Column] | None:
    """The column of a table that an expression hands on unchanged."""
    if not isinstance(expression, exp.Column):
        return None
    below = next((item.relation for item in block.items if expression.table == f"#{item.number}"), None)
    match below:
        case Scan():
            return below, expression
        case Block():
            return _read(below, below.outputs[expression.name])
        case _:
            return None
