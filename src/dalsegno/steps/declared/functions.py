"""Tables that a Python function declares: DataFrames of the sources → a DataFrame.

A function is a black box. Its author promises that the rows of its result with a key depend only on the rows of the
sources with the same key: f(rows with k in K) = rows of f(all rows) with k in K. So a run calls the function with the
rows of the touched keys, and replaces these keys in the target.

A process of its own calls the function (``function_job``). It computes nothing: it leaves a temporary view in a
session, and the statements of the run read the view. So what they write is tracked in the same way as for a SELECT.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.captures import Capture
from dalsegno.model.refreshes import Cost
from dalsegno.rewrite import attempts
from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.partitions import EVERYTHING, renamed
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import (
    Change,
    Name,
    PartitionField,
    Reading,
    Table,
    is_comparable,
    is_exact,
    quoted,
    quoted_list,
)
from dalsegno.steps.declared.changes import change_of, has_changed
from dalsegno.steps.declared.deciding import Costs
from dalsegno.steps.declared.params import RESULT, DeclaredTable, Policy, PythonFunction
from dalsegno.steps.declared.refreshing import Declared, HasRows, Refresh
from dalsegno.steps.declared.sources import DescribeQuery, described, find, parts_of, sources_of, state_at

_VIEW: Name = (RESULT,)


def sources_of_table(lake: Lake, table: DeclaredTable) -> dict[Name, LoadedTable]:
    """What the SELECT reads, or what the function is called with; each once."""
    if table.function is None:
        return sources_of(lake, table.query)
    names = dict.fromkeys(lake.name(each) for each in table.function.sources)
    return {parts_of(name): lake.load(name) for name in names}


@dataclass(frozen=True)
class Given:
    """What a run calls the function with."""

    #: For each argument, in order.
    relations: tuple[str, ...]
    #: A query for the touched keys; None: the relations have all rows.
    keys: str | None
    #: What holds for all touched keys, as far as partitions say.
    pruning: str
    #: Why all rows are given.
    why: str


def given_for(
    lake: Lake, table: DeclaredTable, sources: Mapping[Name, LoadedTable], capture: Capture, *, is_rebuild: bool
) -> Given:
    """The sources as of the capture's end: the rows of the touched keys, or all if keys cannot restrict them."""
    own = {parts_of(captured.table): captured for captured in capture.tables}
    arguments = [parts_of(lake.name(each)) for each in _function(table).sources]
    states = {name: state_at(sources[name], captured.upto.snapshot_id) for name, captured in own.items()}

    def whole(why: str) -> Given:
        return Given(tuple(states[name] for name in arguments), None, EVERYTHING, why)

    if is_rebuild or any(captured.is_full for captured in capture.tables):
        return whole("The target is new, or all of it was asked for.")
    if table.policy is Policy.FULL or table.strategy is StrategyName.FULL:
        return whole("A full refresh was asked for.")
    known = {name: described(source) for name, source in sources.items()}
    changed = [name for name, captured in own.items() if has_changed(captured)]
    for name in changed:
        if not _has_keys(known[name], table.keys):
            return whole(f"{known[name]} has changed, and lacks a key column ({', '.join(table.keys)}).")
    changes = {name: change_of(own[name], sources[name], known[name].columns) for name in changed}
    if not changes:
        return whole("No row of a source has changed.")
    keys = _touched_keys(changes, known, table.keys)

    def restricted(name: Name) -> str:
        if not _has_keys(known[name], table.keys):
            return states[name]
        columns = {key: known[name].by_lower_name[key.lower()] for key in table.keys}
        compared = " AND ".join(f"s.{quoted(column)} <=> k.{quoted(key)}" for key, column in columns.items())
        pruning = _pruning(changes, {key.lower(): f"s.{quoted(column)}" for key, column in columns.items()})
        where = "" if pruning == EVERYTHING else f" WHERE {pruning}"
        return f"(SELECT s.* FROM {states[name]} s LEFT SEMI JOIN ({keys}) k ON {compared}{where})"

    pruning = _pruning(changes, {key.lower(): quoted(key) for key in table.keys})
    return Given(tuple(restricted(name) for name in arguments), keys, pruning, "")


def _touched_keys(changes: Mapping[Name, Change], known: Mapping[Name, Table], keys: Sequence[str]) -> str:
    """Each key of a row that came or went, once."""
    found = []
    for name, change in changes.items():
        columns = ", ".join(f"s.{quoted(known[name].by_lower_name[key.lower()])} AS {quoted(key)}" for key in keys)
        found += [f"SELECT {columns} FROM {each} s" for each in (change.added, change.removed) if each is not None]
    return f"SELECT DISTINCT * FROM ({' UNION ALL '.join(found)})"


def _pruning(changes: Mapping[Name, Change], columns: Mapping[str, str]) -> str:
    found = list(dict.fromkeys(renamed(change.partition_filter, columns) for change in changes.values()))
    if EVERYTHING in found:
        return EVERYTHING
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


@dataclass(frozen=True)
class DeclaredFunction(Declared):
    """A table that a function declares, once the function has been called."""

    given: Given = field(kw_only=True)

    @classmethod
    def called_with(
        cls,
        given: Given,
        lake: Lake,
        table: DeclaredTable,
        sources: Mapping[Name, LoadedTable],
        describe: DescribeQuery,
        session: Mapping[str, str],
    ) -> DeclaredFunction:
        target_name = lake.name(table.target)
        if parts_of(target_name) in sources:
            raise UserError(f"The function reads its own target, {target_name}.", hint="Give the result another name.")
        columns = dict(describe(f"SELECT * FROM {RESULT}"))
        view = Table(_VIEW, columns, tuple(PartitionField(key) for key in table.keys))
        _check_keys(table.keys, view, [described(each) for each in sources.values()])
        analysis = analyse(f"SELECT {quoted_list(columns)} FROM {RESULT}", [view], kinds=columns)
        target = find(lake, target_name)
        return cls(table, analysis, sources, target_name, target, _digest(table, session), columns, given=given)

    def reading(self, capture: Capture, *, is_rebuild: bool) -> Reading:
        if self.given.keys is None:
            return Reading({}, {_VIEW: RESULT})
        keys = f"({self.given.keys})"
        return Reading({_VIEW: Change(RESULT, keys, keys, partition_filter=self.given.pruning, changed=keys)})

    def refresh(self, capture: Capture, *, is_rebuild: bool, has_rows: HasRows, past: Sequence[Cost] = ()) -> Refresh:
        target, reading = self._target_table(), self.reading(capture, is_rebuild=is_rebuild)
        # Nobody can tell what a function reads.
        costs = Costs({})
        full = attempts.full(self.analysis, target)
        if is_rebuild or any(captured.is_full for captured in capture.tables):
            return self._written(replace(full, why=self.given.why), reading, [full], costs)
        if not any(map(has_changed, capture.tables)):
            return Refresh(StrategyName.APPEND, "No row of a source has changed.", (), ())
        known = strategies_for(self.analysis, target, {_VIEW: Changed.ANY}, Options(self.table.keys))
        by_keys = next(each for each in known if each.name is StrategyName.KEYS)
        if self.given.keys is None:
            known = [Strategy(StrategyName.KEYS, self.given.why), full]
            return self._written(self._chosen(known, reading, has_rows, costs), reading, known, costs)
        # The view has the rows of the touched keys only: nothing but these keys may be replaced.
        if not by_keys.is_possible:
            raise UserError(f"{self.target_name} cannot be refreshed by its keys: {by_keys.why}")
        if self.table.strategy not in (None, StrategyName.KEYS):
            raise UserError(
                f"The strategy {self.table.strategy} is not possible: the table is declared by a function.",
                hint="Leave out the strategy, or choose touched_keys or full.",
            )
        named = ", ".join(self.table.keys)
        why = f"Rows with the same key ({named}) depend only on each other, as its author declares."
        return self._written(replace(by_keys, why=why), reading, [by_keys, full], costs)


def _function(table: DeclaredTable) -> PythonFunction:
    if table.function is None:
        raise AssertionError("a table that a SELECT declares")
    return table.function


def _has_keys(table: Table, keys: Sequence[str]) -> bool:
    return all(key.lower() in table.by_lower_name for key in keys)


def _check_keys(keys: Sequence[str], result: Table, sources: Sequence[Table]) -> None:
    """Raise if a key is not a column of the result, or its values cannot be compared with those of a source."""
    for key in keys:
        kind = result.type_of(key)
        if kind is None:
            raise UserError(
                f"The key {key!r} is not a column of what the function returns: {', '.join(result.columns)}.",
                hint="Return the key columns, or declare others.",
            )
        if not is_exact(kind):
            raise UserError(f"The key {key!r} has the type {kind}, which cannot identify rows.", hint="Choose another.")
        for source in (each for each in sources if _has_keys(each, keys)):
            other = source.type_of(key)
            if not is_comparable(kind, other):
                raise UserError(
                    f"The key {key!r} has the type {kind} in what the function returns, but {other} in {source}.",
                    hint="Return the key as it is in the source.",
                )
    if not any(_has_keys(each, keys) for each in sources):
        raise UserError(f"No source has all of the key columns {', '.join(keys)}.", hint="Choose other keys.")


def _digest(table: DeclaredTable, session: Mapping[str, str]) -> str:
    """What the table means: the code of the function, its sources, and settings of Spark that change its result."""
    function = _function(table)
    settings = (f"{name}={session[name]}" for name in sorted(session))
    said = [function.digest(), function.name, *function.sources, *settings]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()[:32]
