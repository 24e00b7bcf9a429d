"""A query in two parts: the aggregates that it is made of, as a table of their own, and what it makes of them.

A delta needs more than some targets hold: the number of rows of a group, the number of values behind a sum, the sum
and the number behind an average. The first query has all of them as columns, so that a delta can bring it up to date;
the second reads its table row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite import functions
from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.relations import Block, Obstacle
from dalsegno.rewrite.slices import SelectSlices, Span, closing_parenthesis
from dalsegno.rewrite.tables import quoted

ROWS = "_state_rows"


@dataclass(frozen=True)
class States:
    """Both queries. ``result`` reads the first one's table, whose name stands for ``{states}``."""

    states: str
    result: str

    def result_from(self, table: str) -> str:
        return self.result.replace("{states}", table)


def states_of(analysis: Analysis) -> States:
    """The two parts of a grouped query; raises ``NotProven``."""
    block = analysis.root
    if not isinstance(block, Block) or block.groups is None or block.windows or block.is_distinct or block.having:
        raise _unproven("the query does not end in a plain GROUP BY.")
    slices = SelectSlices.of(analysis.text)
    nodes = [node for node in block.node.expressions if not node.is_star]
    if slices is None or len(slices.outputs) != len(nodes) or len(nodes) != len(analysis.outputs):
        raise _unproven("its output expressions cannot be located in the text.")
    text = analysis.text.text
    measures: dict[str, str] = {}
    keys, results = [], []
    for name, node, span in zip(analysis.outputs, nodes, slices.outputs, strict=True):
        found = functions.aggregates_in(node)
        if not found:
            if block.outputs[name.lower()] not in block.groups:
                raise _unproven(f"{name} is not a grouping column, and not made of aggregates alone.")
            keys.append((text[span.start : span.end], name))
            results.append(f"{quoted(name)}")
        else:
            results.append(f"{_over_measures(text, span, found, measures)} AS {quoted(name)}")
    grouped = [expression for expression, _ in keys]
    if len(keys) < len(block.groups):
        raise _unproven("a grouping column is not among the outputs.")
    listed = [f"{expression} AS {quoted(name)}" for expression, name in keys]
    listed += [f"{expression} AS {quoted(name)}" for expression, name in measures.items()]
    listed.append(f"COUNT(*) AS {quoted(ROWS)}")
    source = text[slices.source.start : slices.source.end].rstrip()
    by = f"\nGROUP BY {', '.join(grouped)}" if grouped else ""
    return States(
        f"{text[: slices.list_start]}{', '.join(listed)}\n{source}{by}", f"SELECT {', '.join(results)} FROM {{states}}"
    )


def _over_measures(text: str, span: Span, found: Sequence[exp.Expr], measures: dict[str, str]) -> str:
    """An output with its aggregates replaced by the columns that hold them; these are noted."""
    inside = {id(column) for node in found for column in node.find_all(exp.Column)}
    root = found[0]
    while root.parent is not None and not isinstance(root.parent, exp.Select):
        root = root.parent
    if any(id(column) not in inside for column in root.find_all(exp.Column)):
        raise _unproven("an output mixes columns and aggregates.")
    pieces, at = [], span.start
    for node in sorted(found, key=lambda node: int(node.meta.get("start", -1))):
        start = int(node.meta.get("start", -1))
        end = closing_parenthesis(text, start)
        if start < at or end is None or end > span.end or isinstance(node.parent, exp.Filter | exp.WithinGroup):
            raise _unproven("an aggregate is not written as a plain call.")
        pieces += [text[at:start], quoted(_noted(text[start:end], node, measures))]
        at = end
    return "".join([*pieces, text[at : span.end]])


def _noted(call: str, node: exp.Expr, measures: dict[str, str]) -> str:
    """The column that holds an aggregate; what a delta needs besides gets columns, too."""
    name = measures.setdefault(call, f"_state_{len(measures) + 1}")
    is_distinct = isinstance(node.this, exp.Distinct)
    if isinstance(node, exp.Sum | exp.Avg) and not is_distinct:
        argument = call[call.index("(") :]
        measures.setdefault(f"COUNT{argument}", f"_state_{len(measures) + 1}")
        if isinstance(node, exp.Avg):
            measures.setdefault(f"SUM{argument}", f"_state_{len(measures) + 1}")
    return name


def _unproven(reason: str) -> NotProven:
    return NotProven(Obstacle("states", reason, ""))
