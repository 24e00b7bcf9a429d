"""Which strategies are right for a query and a kind of change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dalsegno.errors import UserError
from dalsegno.rewrite import attempts
from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Name, Table

_RESERVED = "_dalsegno_"
_ATTEMPTS: Mapping[StrategyName, Callable[..., Strategy]] = {
    StrategyName.APPEND_JOINED: attempts.append_joined,
    StrategyName.APPEND: attempts.append,
    StrategyName.NEW_KEYS: attempts.append_new_keys,
    StrategyName.DELTA_JOINED: attempts.delta_of_new_joins,
    StrategyName.DELTA: attempts.delta,
    StrategyName.DELTA_KEYS: attempts.delta_of_touched_keys,
    StrategyName.PARTITIONS: attempts.touched_partitions,
    StrategyName.KEYS: attempts.by_touched_keys,
}


def strategies_for(
    analysis: Analysis, target: Table, changed: Mapping[Name, Changed], options: Options | None = None
) -> list[Strategy]:
    """Every strategy, the one that reads and writes least first; ``full`` is possible unless all are refused.

    A dimension that is pinned is not among ``changed``, and ``Reading.others`` has the state that it is pinned to.
    """
    _check(analysis, target)
    if refusals := analysis.refusals:
        return [Strategy(name, str(refusals[0]), obstacle=refusals[0]) for name in StrategyName]
    chosen = options or Options()
    scans = analysis.scans(changed)
    if not scans:
        nothing = Strategy(StrategyName.APPEND, "No row of the result comes from what changed.", _write=lambda _: [])
        return [nothing, attempts.full(analysis, target)]
    blocking = next(iter([*analysis.blocking(scans), *analysis.everywhere]), None)
    found = []
    if blocking is None:
        for name, attempt in _ATTEMPTS.items():
            try:
                found.append(_trusted(attempt(analysis, target, changed, scans, chosen), chosen))
            except NotProven as error:
                found.append(Strategy(name, str(error.obstacle), obstacle=error.obstacle))
    else:
        found = [Strategy(name, str(blocking), obstacle=blocking) for name in _ATTEMPTS]
    return [*found, attempts.full(analysis, target)]


def _trusted(strategy: Strategy, options: Options) -> Strategy:
    if strategy.name not in options.trusted or strategy.is_always_correct:
        return strategy
    return replace(strategy, facts=(*strategy.facts, Fact(FactKind.PROBE, is_trusted=True)), _probe=None)


def _check(analysis: Analysis, target: Table) -> None:
    tables = (target, *(occurrence.table for occurrence in analysis.occurrences))
    for table in tables:
        if len(table.by_lower_name) < len(table.columns):
            raise UserError(f"Columns of {table} differ by upper and lower case alone.", hint="Rename one of them.")
        if reserved := next((name for name in table.columns if name.lower().startswith(_RESERVED)), None):
            raise UserError(
                f"Column {reserved!r} of {table} begins with {_RESERVED!r}, as the columns of our own statements do.",
                hint="Rename the column.",
            )
    ours, theirs = ({name.lower() for name in names} for names in (analysis.outputs, target.columns))
    if ours != theirs:
        lacking = ", ".join(sorted(theirs - ours)) or "none"
        extra = ", ".join(sorted(ours - theirs)) or "none"
        raise UserError(
            f"The query and {target} have different columns: the query lacks {lacking}; the table lacks {extra}.",
            hint="Name each column of the query as the table does: … AS name.",
        )
