"""What changed + the SELECT → the statements that bring the target up to date, and why these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.capture.queries import query_of
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.tables import TableName
from dalsegno.rewrite.analysis import Analysis, analyse, expanded
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Change, Name, PartitionField, Reading, Table, quoted
from dalsegno.rewrite.writing import Writer
from dalsegno.steps.declared.params import DeclaredTable, Policy
from dalsegno.steps.declared.sources import as_now, current_namespace, described, find, parts_of, state_at

#: The property of the target that says which SELECT its rows are of.
QUERY_PROPERTY = "dalsegno.query"
#: What a table without rows has for its current snapshot, if anything.
_NO_SNAPSHOT = -1
#: Settings of a session that change what a query returns.
SESSION_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")

#: The columns of a query, and their types as Spark writes them.
DescribeQuery = Callable[[str], Mapping[str, str]]
#: Whether a query returns a row.
HasRows = Callable[[str], bool]


@dataclass(frozen=True)
class Refresh:
    """The work of one run."""

    strategy: StrategyName
    why: str
    #: What the strategy depends on, and nobody has checked.
    facts: tuple[str, ...]
    statements: tuple[str, ...]

    def as_outputs(self, target: TableName, capture: Capture) -> dict[str, Any]:
        return {
            "strategy": self.strategy.value,
            "why": self.why,
            "target_table": str(target),
            "source_tables": [str(each.table) for each in capture.tables],
        }


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

    @classmethod
    def of(
        cls,
        lake: Lake,
        table: DeclaredTable,
        sources: Mapping[Name, LoadedTable],
        describe: DescribeQuery,
        session: Mapping[str, str],
    ) -> Declared:
        tables, current = [described(each) for each in sources.values()], current_namespace(lake)
        query = expanded(table.query, tables, current=current)
        first = analyse(query, tables, current=current, deterministic=table.deterministic)
        columns = describe(Writer(first, Table(("",), dict.fromkeys(first.outputs, "")), Reading({})).query())
        analysis = analyse(query, tables, current=current, deterministic=table.deterministic, kinds=columns)
        target_name = lake.name(table.target)
        if parts_of(target_name) in sources:
            raise UserError(f"The query reads its own target, {target_name}.", hint="Give the result another name.")
        return cls(
            table,
            analysis,
            sources,
            target_name,
            find(lake, target_name),
            replace(table, query=query).digest(session),
            columns,
        )

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
        raise UserError(
            f"The SELECT of {self.target_name} has changed since its rows were written, or a setting of Spark that "
            "changes its result. Nothing was written.",
            actions=[action("Take the change back, or rebuild it", Verb.RUN, workflow=workflow_id, full_refresh=True)],
        )

    def refresh(self, capture: Capture, *, is_rebuild: bool, has_rows: HasRows) -> Refresh:
        """The statements for what a capture holds; ``has_rows`` executes the probes that some strategies need."""
        target = self._target_table()
        own = {parts_of(captured.table): captured for captured in capture.tables}
        states = {name: state_at(self.sources[name], each.upto.snapshot_id) for name, each in own.items()}
        if is_rebuild or any(captured.is_full for captured in capture.tables):
            why = "The target is new, or all of it was asked for."
            return self._written(StrategyName.FULL, why, (), self._full(target, Reading({}, states)))
        changes = {name: _change(each, self.sources[name]) for name, each in own.items() if _is_changed(each)}
        if not changes:
            return Refresh(StrategyName.APPEND, "No row of a source has changed.", (), ())
        reading = Reading(changes, states)
        kinds = {name: Changed.ANY if change.removed else Changed.APPENDED for name, change in changes.items()}
        chosen = self._chosen(strategies_for(self.analysis, target, kinds, Options(self.table.keys)), reading, has_rows)
        if chosen.name is StrategyName.FULL:
            return self._written(chosen.name, chosen.why, (), self._full(target, reading))
        return self._written(chosen.name, chosen.why, chosen.facts, chosen.statements(reading))

    def _full(self, target: Table, reading: Reading) -> list[str]:
        return [Writer(self.analysis, target, reading).full()]

    def _chosen(self, known: Sequence[Strategy], reading: Reading, has_rows: HasRows) -> Strategy:
        """The first that is right, also for the rows of this run."""
        if not any(each.is_possible for each in known):
            raise UserError(f"{self.target_name} cannot be declared by this SELECT: {known[0].why}")
        if self.table.policy is Policy.FULL:
            return known[-1]
        # A fact that nobody has checked is the author's to trust, by naming the strategy.
        wanted = [each for each in known if each.name is self.table.strategy] if self.table.strategy else known
        usable = [each for each in wanted if each.is_possible and (self.table.strategy or not _needs_trust(each))]
        for each in usable:
            probe = each.probe(reading)
            if probe is None or not has_rows(probe):
                if each.name is not StrategyName.FULL or self.table.strategy:
                    return each
                break
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

    def _written(self, name: StrategyName, why: str, facts: tuple[str, ...], written: Sequence[str]) -> Refresh:
        before = [] if self.target is not None else [self._creation(self._target_table())]
        known = {} if self.target is None else self.target.metadata.get("properties", {})
        after = []
        if self.target is not None and known.get(QUERY_PROPERTY) != self.digest:
            after = [f"ALTER TABLE {self.target_name.quoted} SET TBLPROPERTIES ('{QUERY_PROPERTY}' = '{self.digest}')"]
        return Refresh(name, why, facts, (*before, *written, *after))

    def _target_table(self) -> Table:
        if self.target is not None:
            return described(self.target)
        return Table(parts_of(self.target_name), dict(self.columns), self._partitions())

    def _partitions(self) -> tuple[PartitionField, ...]:
        """What was asked for, or the partition columns of the sources that the query hands through."""
        if self.table.partitioned_by is not None:
            return tuple(map(_partition_field, self.table.partitioned_by))
        return derived_partitions(self.columns, [described(each) for each in self.sources.values()])

    def _creation(self, target: Table) -> str:
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns.items())
        spec = ", ".join(_written_field(each) for each in target.partitions)
        partitioned = f" PARTITIONED BY ({spec})" if spec else ""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.target_name.quoted} ({columns}) USING iceberg{partitioned} "
            f"TBLPROPERTIES ('{QUERY_PROPERTY}' = '{self.digest}')"
        )


def derived_partitions(outputs: Iterable[str], sources: Iterable[Table]) -> tuple[PartitionField, ...]:
    """Those of the first source whose partition columns are among the outputs."""
    by_lower = {name.lower(): name for name in outputs}
    for source in sources:
        if found := [each for each in source.partitions if each.column.lower() in by_lower and not _is_bucket(each)]:
            return tuple(PartitionField(by_lower[each.column.lower()], each.transform) for each in found)
    return ()


def _needs_trust(strategy: Strategy) -> bool:
    """Whether it depends on facts that hold for a full refresh alike: ties leave the result open either way."""
    return any(not fact.endswith("has no ties") for fact in strategy.facts)


def _is_changed(captured: CapturedTable) -> bool:
    before = captured.details.get("before") or {}
    return bool(captured.details.get("files") or before.get("files"))


def _change(captured: CapturedTable, table: LoadedTable) -> Change:
    """What changed in a source, as relations. Rows were only appended if no file of the old end is touched."""
    details = captured.details
    after, started = state_at(table, captured.upto.snapshot_id), captured.after.snapshot_id
    before = None if started is None else state_at(table, started)
    filters = details["partition_filter"], details["reopened_partition_filter"]

    def as_it_is_now(relation: str) -> str:
        return as_now(relation, table, captured.upto.schema_id)

    if not (details.get("before") or {}).get("files"):
        return Change(after, as_it_is_now(captured.change_table.quoted), None, before, *filters)
    changed = query_of(captured, "spark", lambda _: "")
    added, removed = (
        as_it_is_now(f"(SELECT * FROM ({changed}) WHERE _change_type = '{kind}')") for kind in ("insert", "delete")
    )
    return Change(after, added, removed, before, *filters)


def _is_bucket(field: PartitionField) -> bool:
    return field.transform.startswith(("bucket", "truncate"))


def _partition_field(text: str) -> PartitionField:
    """``event_day``, ``days(event_time)`` or ``bucket(16, id)``."""
    function, bracket, rest = text.strip().rstrip(")").partition("(")
    if not bracket:
        return PartitionField(function.strip("` "))
    *width, column = (part.strip("` ") for part in rest.split(","))
    unit = function.strip().lower().removesuffix("s")
    return PartitionField(column, f"{unit}[{width[0]}]" if width else unit)


def _written_field(field: PartitionField) -> str:
    transform, bracket, width = field.transform.rstrip("]").partition("[")
    column = quoted(field.column)
    if transform == "identity":
        return column
    return f"{transform}({width}, {column})" if bracket else f"{transform}s({column})"
