"""How a SELECT is made incremental, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted, size
from dalsegno.cli.tables import table

if TYPE_CHECKING:
    from dalsegno.operations.rewrite_costs import RewriteCosts
    from dalsegno.operations.rewriting import Rewriting, RewrittenStrategy, RewrittenTable

_CHANGES = {"appended": "If rows were only added", "any": "If rows were updated or deleted"}


def rewritten(found: RewrittenTable) -> str:
    return "\n".join(_lines(found))


def _lines(found: RewrittenTable) -> Iterator[str]:
    yield f"target    {found.target}"
    yield f"sources   {', '.join(map(str, found.sources))}"
    for lookback in found.lookbacks:
        yield f"lookback  {lookback}"
    for each in found.rewritings:
        yield ""
        yield from _rewriting(each)
    yield ""
    yield from _costs(found.costs)


def _rewriting(found: Rewriting) -> Iterator[str]:
    best = next((each for each in found.strategies if each.is_possible), None)
    yield paint(f"{_CHANGES[found.changed]}: {best.name if best else 'refused'}", "bold")
    if best is not None:
        yield f"  {best.why}"
        yield from (f"  depends on: {fact}" for fact in best.facts)
    # What is behind the best one does not matter.
    for each in found.strategies if best is None else found.strategies[: found.strategies.index(best)]:
        yield f"  not {each.name}: {each.why}{_where(each)}"
        if best is None:
            break
    for check in found.checks:
        yield ""
        yield paint("Must return nothing:", "bold")
        yield check + ";"
    for statement in found.statements:
        yield ""
        yield statement.rstrip() + ";"


def _where(each: RewrittenStrategy) -> str:
    return f" (line {each.line}, column {each.column})" if each.line and f"line {each.line}" not in each.why else ""


def _costs(found: RewriteCosts) -> Iterator[str]:
    what = "what changed since the last run" if found.is_since_checkpoint else "the last snapshot of each source"
    yield paint(f"Cost of a run now, for {what}", "bold")
    if found.unknown_because is not None:
        yield f"  unknown: {found.unknown_because}"
        return
    for each in found.changes:
        kind = "added" if each.changed == "appended" else "changed"
        yield f"  {each.table}: {counted(each.rows, 'row')} {kind}, in files of {size(each.bytes)}"
    for check in found.checks:
        yield f"  check of {check.fact}: reads {size(check.bytes_read)}"
    rows = [
        (
            each.name,
            size(each.bytes_read),
            "" if each.bytes_written is None else size(each.bytes_written),
            "" if each.seconds is None else f"{each.seconds:.1f} s",
        )
        for each in found.strategies
    ]
    yield table(("strategy", "reads", "writes", "takes"), rows, right=(1, 2, 3), indent="  ")
