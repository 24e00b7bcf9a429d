"""What changed + the SELECT → the statements that bring the target up to date, and why these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.refreshes import Considered, Cost
from dalsegno.model.tables import TableName
from dalsegno.plan.refresh_costs import fitted
from dalsegno.rewrite import attempts
from dalsegno.rewrite.analysis import Analysis, analyse, expanded
from dalsegno.rewrite.checks import Check
from dalsegno.rewrite.facts import FactKind
from dalsegno.rewrite.footprints import joins_of
from dalsegno.rewrite.ordering import ordering_columns
from dalsegno.rewrite.ranges import followed_columns
from dalsegno.rewrite.stated import with_facts
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Name, PartitionField, Reading, Table, quoted, quoted_list
from dalsegno.rewrite.writing import Writer
from dalsegno.spark.rewriting import literal
from dalsegno.steps.declared.changes import change_of, has_changed
from dalsegno.steps.declared.companions import COMPANION_PROPERTY, QUERY_PROPERTY, Companion, companion_of
from dalsegno.steps.declared.costs import CostEstimate, SourceState
from dalsegno.steps.declared.deciding import Costs, cheapest
from dalsegno.steps.declared.dimensions import Pinned
from dalsegno.steps.declared.facts import StatedFacts
from dalsegno.steps.declared.later_rows import with_later_columns
from dalsegno.steps.declared.params import DeclaredTable, Policy
from dalsegno.steps.declared.partitioning import derived_partitions, partition_field, written_partitions
from dalsegno.steps.declared.sources import (
    DescribeQuery,
    current_namespace,
    described,
    find,
    parts_of,
    state_at,
)

#: What a table without rows has for its current snapshot, if anything.
_NO_SNAPSHOT = -1
#: Settings of a session that change what a query returns.
SESSION_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")

#: Whether a query returns a row.
HasRows = Callable[[str], bool]


@dataclass(frozen=True)
class Refresh:
    """The work of one run."""

    strategy: StrategyName
    why: str
    #: What the strategy depends on.
    facts: tuple[str, ...]
    statements: tuple[str, ...]
    #: All strategies, the one that was taken included.
    considered: tuple[Considered, ...] = ()
    #: What it will cost; None if nobody has estimated it.
    expected: Cost | None = None
    #: What happened to the sources, as ``Changed`` says it; empty if all is computed anyway.
    changed: str = ""


@dataclass(frozen=True)
class Declared:
    """A declared table with its sources, ready to be refreshed."""

    table: DeclaredTable
    analysis: Analysis
    sources: Mapping[Name, LoadedTable]
    target_name: TableName
    #: None: it is to be created.
    target: LoadedTable | None
    digest: str
    #: The output columns, and their types as Spark writes them.
    columns: Mapping[str, str]
    facts: StatedFacts = field(default_factory=StatedFacts)
    #: Sources that are read as of a snapshot, whatever came since.
    pinned: Mapping[Name, Pinned] = field(default_factory=dict)
    #: Whether the namespace of the target is there.
    has_namespace: bool = True
    #: What keeps the state of its aggregates; None: the target does, or no change can be added to them.
    companion: Companion | None = None
    #: Of a companion table: what it is the companion of.
    companion_of: TableName | None = None

    @classmethod
    def of(
        cls,
        lake: Lake,
        table: DeclaredTable,
        sources: Mapping[Name, LoadedTable],
        describe: DescribeQuery,
        session: Mapping[str, str],
        capture: Capture | None = None,
        pinned: Mapping[Name, Pinned] | None = None,
    ) -> Declared:
        """``capture``: what this run is for; without, only facts that the author trusts are made use of."""
        tables, current = [described(each) for each in sources.values()], current_namespace(lake)
        target_name = lake.name(table.target)
        target = find(lake, target_name)
        facts = StatedFacts.of(table.facts, sources, tables, target, capture)
        tables = with_facts(tables, facts.usable)
        query = expanded(table.query, tables, current=current)
        first = analyse(query, tables, current=current, deterministic=table.deterministic)
        columns = describe(Writer(first, Table(("",), dict.fromkeys(first.outputs, "")), Reading({})).query())
        analysis = analyse(query, tables, current=current, deterministic=table.deterministic, kinds=columns)
        if parts_of(target_name) in sources:
            raise UserError(f"The query reads its own target, {target_name}.", hint="Give the result another name.")
        found = cls(
            table,
            analysis,
            sources,
            target_name,
            target,
            replace(table, query=query).digest(session),
            columns,
            facts,
            pinned or {},
            target is not None or target_name.namespace in lake.catalog(target_name.catalog).namespaces(),
        )
        return replace(found, companion=companion_of(lake, table, analysis, found._target_table(), sources, describe))

    def refuse_other_query(self, workflow_id: str) -> None:
        """Raise if the target holds what another SELECT gave, or somebody else wrote."""
        if self.target is None:
            return
        known = self.target.metadata.get("properties", {}).get(QUERY_PROPERTY)
        if known == self.digest:
            return
        if known is None:
            if self.target.metadata.get("current-snapshot-id") in (None, _NO_SNAPSHOT):
                return
            replace_rows = action(
                "Name another target, or replace what it holds",
                Verb.RUN,
                workflow=workflow_id,
                full_refresh=True,
                empty=str(self.target_name),
            )
            raise UserError(
                f"{self.target_name} has rows that no Incremental step has written.", actions=[replace_rows]
            )
        raise other_select(self.target_name, workflow_id)

    def refresh(self, capture: Capture, *, is_rebuild: bool, has_rows: HasRows, past: Sequence[Cost] = ()) -> Refresh:
        """The statements for what a capture holds; ``has_rows`` executes the probes that some strategies need.

        ``past``: what earlier refreshes cost, the newest first.
        """
        if self.companion is not None:
            return self._through(self.companion, capture, is_rebuild=is_rebuild, has_rows=has_rows, past=past)
        target = self._target_table()
        own = {parts_of(captured.table): captured for captured in capture.tables}
        reading = self.reading(capture, is_rebuild=is_rebuild)
        known_sizes = {name: self._state(name, each) for name, each in own.items()}
        known_sizes |= {
            name: SourceState(each.table, each.snapshot_id, each.snapshot_id, {}) for name, each in self.pinned.items()
        }
        estimate = CostEstimate(target, self.target, known_sizes)
        if is_rebuild or any(captured.is_full for captured in capture.tables):
            why, full = "The target is new, or all of it was asked for.", attempts.full(self.analysis, target)
            costs = Costs.of(estimate.costs([full], reading), fitted(past))
            return self._written(replace(full, why=why), reading, [full], costs)
        if not reading.changes:
            # What held still does, and the next run must know up to where.
            remembered = self._remembered() if self.facts.are_known else []
            return Refresh(StrategyName.APPEND, "No row of a source has changed.", (), (*remembered,))
        reading = with_later_columns(reading, known_sizes, ordering_columns(self.analysis))
        kinds = {name: Changed.ANY if change.removed else Changed.APPENDED for name, change in reading.changes.items()}
        known = strategies_for(self.analysis, target, kinds, Options(self.table.keys))
        changed = max(kinds.values(), key=lambda kind: kind is Changed.ANY)
        costs = Costs.of(estimate.costs(known, reading, joins_of(self.analysis)), fitted(past), changed)
        found = self._written(self._chosen(known, reading, has_rows, costs), reading, known, costs)
        return replace(found, changed=changed.value)

    def full_query(self, capture: Capture) -> str:
        """The SELECT over the sources as they are at the end of a capture."""
        return Writer(self.analysis, self._target_table(), self.reading(capture, is_rebuild=True)).query()

    def target_columns(self) -> Mapping[str, str]:
        """The columns of the target, and their types as Spark writes them."""
        return self._target_table().columns

    def reading(self, capture: Capture, *, is_rebuild: bool) -> Reading:
        """What a run reads: what changed, unless all is read, and the state of the others."""
        own = {parts_of(captured.table): captured for captured in capture.tables}
        states = {name: state_at(each.table, each.snapshot_id) for name, each in self.pinned.items()}
        states |= {name: state_at(self.sources[name], each.upto.snapshot_id) for name, each in own.items()}
        if is_rebuild or any(captured.is_full for captured in capture.tables):
            return Reading({}, states)
        changes = {
            name: change_of(each, self.sources[name], self._read_columns(name))
            for name, each in own.items()
            if has_changed(each)
        }
        return Reading(changes, states)

    def checks(self, capture: Capture, *, is_rebuild: bool) -> list[Check]:
        """What must return nothing before anything is written."""
        reading = self.reading(capture, is_rebuild=is_rebuild)
        is_full = is_rebuild or any(captured.is_full for captured in capture.tables)
        if not reading.changes and not is_full:
            return []
        return self.facts.checks(self.analysis, self._target_table(), reading)

    def _through(
        self, companion: Companion, capture: Capture, *, is_rebuild: bool, has_rows: HasRows, past: Sequence[Cost]
    ) -> Refresh:
        """Bring the companion table up to date, and compute the target from it."""
        is_usable = companion.is_current(self.target, capture.consumer)
        is_full = is_rebuild or any(captured.is_full for captured in capture.tables)
        if not (is_usable or is_full) and self.table.policy is Policy.STRICT:
            raise UserError(
                f"{companion.name}, which keeps the state of {self.target_name}, is not from the same run, so both "
                "can only be refreshed fully.",
                hint="Allow it: policy: prefer",
            )
        partitions = self.table.partitioned_by
        if partitions is not None:
            partitions = tuple(each for each in partitions if partition_field(each).column in companion.columns)
        state = replace(
            self,
            table=replace(self.table, partitioned_by=partitions, keys=()),
            analysis=companion.analysis,
            target_name=companion.name,
            target=companion.stored,
            columns=companion.columns,
            facts=StatedFacts(),
            companion=None,
            companion_of=self.target_name,
        )
        found = state.refresh(capture, is_rebuild=is_full or not is_usable, has_rows=has_rows, past=past)
        if not found.statements:
            return replace(found, statements=tuple(self._remembered() if self.facts.are_known else ()))
        listed = quoted_list(self._target_table().columns)
        written = (
            f"INSERT INTO {self.target_name.quoted} REPLACE WHERE true\nSELECT {listed} FROM (\n{companion.result()}\n)"
        )
        why = found.why if is_usable or is_full else f"{companion.name} is new, or not from the target's last run."
        return replace(found, why=why, statements=(*found.statements, *self._framed([written])))

    def _read_columns(self, name: Name) -> set[str]:
        """The columns of a source that the query reads, wherever it names it, and those that facts are about."""
        found = [each.columns for each in self.analysis.occurrences if each.name == name]
        found += [(*fact.columns, *fact.determined) for fact in self.facts.every if fact.table == name]
        return {column for columns in found for column in columns}

    def _state(self, name: Name, captured: CapturedTable) -> SourceState:
        is_changed = not captured.is_full and has_changed(captured)
        details = captured.details if is_changed else {}
        return SourceState(self.sources[name], captured.after.snapshot_id, captured.upto.snapshot_id, details)

    def _chosen(self, known: Sequence[Strategy], reading: Reading, has_rows: HasRows, costs: Costs) -> Strategy:
        """The cheapest that is right, also for the rows of this run."""
        if not any(each.is_possible for each in known):
            raise UserError(f"{self.target_name} cannot be declared by this SELECT: {known[0].why}")
        if self.table.policy is Policy.FULL:
            return known[-1]
        # A fact that nobody has checked is the author's to trust, by naming the strategy.
        wanted = [each for each in known if each.name is self.table.strategy] if self.table.strategy else known
        usable = [each for each in wanted if each.is_possible and (self.table.strategy or not needs_trust(each))]
        if self.table.strategy is StrategyName.FULL:
            return known[-1]

        def agrees(strategy: Strategy) -> bool:
            probe = strategy.probe(reading)
            return probe is None or not has_rows(probe)

        chosen = cheapest(usable, costs, agrees, may_be_full=self.table.policy is Policy.PREFER)
        if chosen is not None:
            return chosen
        reason = next((each.why for each in wanted if not each.is_possible), "A probe of this run's rows failed.")
        if self.table.strategy is not None:
            raise UserError(
                f"The strategy {self.table.strategy} is not possible: {reason}",
                hint="Leave out the strategy, and the best one is chosen.",
            )
        if self.table.policy is Policy.STRICT:
            raise UserError(
                f"{self.target_name} can only be refreshed fully: {reason}",
                hint="Change the SELECT, or allow it: policy: prefer",
            )
        return replace(known[-1], why=reason)

    def _written(self, chosen: Strategy, reading: Reading, known: Sequence[Strategy], costs: Costs) -> Refresh:
        return Refresh(
            chosen.name,
            chosen.why + self._open_ties(),
            tuple(map(str, chosen.facts)),
            self._framed(chosen.statements(reading)),
            costs.considered(known),
            costs.get(chosen.name),
        )

    def _framed(self, written: Sequence[str]) -> tuple[str, ...]:
        """With what creates the target, and what the next run must know of it."""
        if self.target is None:
            return (*self._namespace(), self._creation(self._new_table()), *written)
        if self.companion_of is not None and not self._has_own_query():
            # Another SELECT may need other columns; only a full refresh comes here, which needs none of its rows.
            return (self._creation(self._new_table(), "CREATE OR REPLACE TABLE"), *written)
        return (*written, *self._remembered())

    def _remembered(self) -> list[str]:
        """What tells the next run of which SELECT the rows are, and which facts hold for them."""
        known = {} if self.target is None else self.target.metadata.get("properties", {})
        if self.target is None or self._properties().items() <= known.items():
            return []
        return [f"ALTER TABLE {self.target_name.quoted} SET TBLPROPERTIES ({_listed(self._properties())})"]

    def _properties(self) -> dict[str, str]:
        known = {QUERY_PROPERTY: self.digest, **self.facts.properties()}
        return known if self.companion_of is None else {**known, COMPANION_PROPERTY: str(self.companion_of)}

    def _open_ties(self) -> str:
        """What to know of a result that depends on the order of rows that tie."""
        if self.facts.has_no_ties:
            return ""
        return "".join(
            f" Rows that tie in the ORDER BY of {tie.columns[0]} leave the result open; state 'no ties' to check it."
            for tie in self.analysis.ties
        )

    def _target_table(self) -> Table:
        is_kept = self.companion_of is None or self._has_own_query()
        return described(self.target) if self.target is not None and is_kept else self._new_table()

    def _has_own_query(self) -> bool:
        """Whether the target holds what this SELECT gave."""
        return self.target is not None and self.target.metadata.get("properties", {}).get(QUERY_PROPERTY) == self.digest

    def _new_table(self) -> Table:
        return Table(parts_of(self.target_name), dict(self.columns), self._partitions())

    def _partitions(self) -> tuple[PartitionField, ...]:
        """What was asked for, or the partition columns of the sources that the query hands through."""
        if self.table.partitioned_by is not None:
            return tuple(map(partition_field, self.table.partitioned_by))
        return derived_partitions(self.columns, [described(each) for each in self.sources.values()])

    def _namespace(self) -> list[str]:
        """Only if it is not there: a catalog may forbid it."""
        name = quoted(self.target_name.catalog, *self.target_name.namespace)
        return [] if self.has_namespace else [f"CREATE NAMESPACE IF NOT EXISTS {name}"]

    def _creation(self, target: Table, verb: str = "CREATE TABLE IF NOT EXISTS") -> str:
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns.items())
        return (
            f"{verb} {self.target_name.quoted} ({columns}) USING iceberg "
            f"{written_partitions(target)}TBLPROPERTIES ({_listed(self._properties())})"
        )


def range_columns(
    lake: Lake, table: DeclaredTable, sources: Mapping[Name, LoadedTable], captured: Collection[str]
) -> tuple[str, ...]:
    """The columns whose changed values are worth knowing: reads of other tables are restricted to their range."""
    tables = [described(each) for each in sources.values()]
    found = followed_columns(
        analyse(table.query, tables, current=current_namespace(lake), deterministic=table.deterministic)
    )
    columns = (column for name, each in found.items() if str(sources[name].name) in captured for column in each)
    # A dot leads into a struct.
    return tuple(dict.fromkeys(column for column in columns if "." not in column))


def other_select(target: TableName, workflow_id: str) -> UserError:
    return UserError(
        f"The SELECT of {target} has changed since its rows were written, or a setting of Spark that changes its "
        "result. Nothing was written.",
        actions=[action("Take the change back, or rebuild it", Verb.RUN, workflow=workflow_id, full_refresh=True)],
    )


def needs_trust(strategy: Strategy) -> bool:
    """Whether it depends on what nobody checks. Ties leave the result open, whatever the strategy."""
    return any(fact.kind is FactKind.SMALL_SUM for fact in strategy.facts)


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
