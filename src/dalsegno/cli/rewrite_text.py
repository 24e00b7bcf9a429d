"""How a SELECT is made incremental, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dalsegno.cli.colours import paint

if TYPE_CHECKING:
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
    for statement in found.statements:
        yield ""
        yield statement.rstrip() + ";"


def _where(each: RewrittenStrategy) -> str:
    return f" (line {each.line}, column {each.column})" if each.line and f"line {each.line}" not in each.why else ""
