"""What becomes of a SELECT that declares a table: the strategies that are right, and their SQL. Nothing is executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.operations.rewrite_costs import CostRequest, RewriteCosts, costs_now
from dalsegno.rewrite import Analysis, Change, Changed, Options, Reading, Strategy, Table, analyse, expanded
from dalsegno.rewrite.checks import checks_for
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.stated import stated_facts, with_facts
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.tables import quoted
from dalsegno.steps.declared.partitioning import derived_partitions
from dalsegno.steps.declared.sources import current_namespace, described, find, parts_of, sources_of
from dalsegno.steps.declared.views import over_tables


@dataclass(frozen=True)
class RewrittenStrategy:
    """A way to bring the table up to date, or why it is not one."""

    name: str
    is_possible: bool
    why: str
    #: What it depends on.
    facts: tuple[str, ...]
    key: tuple[str, ...]
    #: What of the SELECT stands in its way, where, and what would help.
    operator: str | None
    line: int | None
    column: int | None
    help: str | None


@dataclass(frozen=True)
class Rewriting:
    """For one kind of change."""

    #: ``appended``, or ``any`` kind of change.
    changed: str
    #: The best first.
    strategies: tuple[RewrittenStrategy, ...]
    #: Of the first that is possible. ``${…}`` stands for what a capture gives.
    statements: tuple[str, ...]
    #: What must return nothing before: queries for the facts that the author states.
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewrittenTable:
    """What ``Incremental`` would do for a target and its SELECT."""

    target: TableName
    sources: tuple[TableName, ...]
    #: Filters that move with time, which the table does not need.
    lookbacks: tuple[str, ...]
    rewritings: tuple[Rewriting, ...]
    costs: RewriteCosts


def rewrite(
    lake: Lake, query: str, target: str, *, keys: Sequence[str] = (), facts: Sequence[str] = ()
) -> RewrittenTable:
    """All sources change at once; where only some do, better strategies may be right."""
    query = over_tables(lake, query)
    sources = sources_of(lake, query)
    tables, current = [described(each) for each in sources.values()], current_namespace(lake)
    stated = stated_facts(facts, tables)
    tables = with_facts(tables, stated)
    analysis = analyse(expanded(query, tables, current=current), tables, current=current)
    name = lake.name(target)
    if parts_of(name) in sources:
        raise UserError(f"The query reads its own target, {name}.", hint="Give the result another name.")
    known = find(lake, name)
    declared = described(known) if known else _declared(name, analysis, tables)
    lookbacks = tuple(map(str, analysis.lookbacks))
    kinds = (Changed.APPENDED, Changed.ANY)
    options = Options(tuple(keys))
    rewritings = tuple(_rewriting(analysis, declared, tables, kind, options, stated) for kind in kinds)
    costs = costs_now(lake, CostRequest(analysis, name, declared, known, sources, options, tuple(stated)))
    return RewrittenTable(name, tuple(each.name for each in sources.values()), lookbacks, rewritings, costs)


def _declared(name: TableName, analysis: Analysis, tables: Sequence[Table]) -> Table:
    """The target as the first run would create it; the types of expressions are known to Spark alone."""
    columns = {output: analysis.kind(output) or "unknown" for output in analysis.outputs}
    return Table(parts_of(name), columns, derived_partitions(columns, tables))


def _rewriting(
    analysis: Analysis, target: Table, tables: Sequence[Table], kind: Changed, options: Options, facts: Sequence[Fact]
) -> Rewriting:
    found = strategies_for(analysis, target, {table.name: kind for table in tables}, options)
    best = next((each for each in found if each.is_possible), None)
    reading = Reading({table.name: _change(table, kind, len(tables) == 1) for table in tables})
    checks = checks_for(analysis, target, facts, reading, known=frozenset(facts))
    has_no_ties = any(fact.kind is FactKind.NO_TIES for fact in facts)
    return Rewriting(
        kind.value,
        tuple(_shown(each, has_no_ties=has_no_ties) for each in found),
        tuple(best.statements(reading)) if best is not None else (),
        tuple(f"-- {check.fact}\n{check.sql}" for check in checks),
    )


def _shown(strategy: Strategy, *, has_no_ties: bool) -> RewrittenStrategy:
    obstacle = strategy.obstacle
    place = obstacle.place if obstacle else None
    return RewrittenStrategy(
        strategy.name.value,
        strategy.is_possible,
        strategy.why,
        tuple(
            f"{fact}; ties leave the result open" if fact.kind is FactKind.NO_TIES and not has_no_ties else str(fact)
            for fact in strategy.facts
        ),
        strategy.key,
        obstacle.operator if obstacle else None,
        place.line if place else None,
        place.column if place else None,
        (obstacle.hint or None) if obstacle else None,
    )


def _change(table: Table, kind: Changed, is_alone: bool) -> Change:
    """A change as the outputs of a capture step name it: ``changes: before_after`` for any kind of change."""
    suffix = "" if is_alone else f"_{table.name[-1]}"
    whole = f"{quoted(*table.name)} VERSION AS OF"
    columns = [field.column for field in table.partitions if field.transform == "identity"]
    touched = f"{quoted(columns[0])} IN (${{touched}})" if columns else "true"
    after, before = f"{whole} ${{capture.upto_snapshot{suffix}}}", f"{whole} ${{capture.after_snapshot{suffix}}}"
    if kind is Changed.APPENDED:
        return Change(after, f"${{capture.change_table{suffix}}}", None, before, touched)
    view = f"${{capture.changes_view{suffix}}}"
    added, removed = (f"(SELECT * FROM {view} WHERE _change_type = '{word}')" for word in ("insert", "delete"))  # noqa: S608 - nothing of it is executed
    return Change(after, added, removed, before, touched)
