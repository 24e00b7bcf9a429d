"""Companion tables: the state of a declared table's aggregates, where the table itself does not hold enough of it.

``SELECT country, avg(amount)`` shows neither how many values there are nor their sum, so no change can be added to it.
The companion table of ``lake.media.by_country`` is ``lake.media.by_country__state``: each group with its sums and
counts. A run first brings it up to date, and then computes the declared table from it. Both are written for the same
capture. Where their last captures differ, the companion is computed again from the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dalsegno.capture.lake import Lake
from dalsegno.errors import UserError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.tables import TableName
from dalsegno.rewrite.analysis import Analysis, analyse
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.ranges import is_ordered
from dalsegno.rewrite.states import States, states_of
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, StrategyName
from dalsegno.rewrite.tables import Name, Reading, Table
from dalsegno.rewrite.touching import best_key
from dalsegno.rewrite.writing import Writer
from dalsegno.steps.declared.params import DeclaredTable
from dalsegno.steps.declared.sources import DescribeQuery, current_namespace, described, find, parts_of
from dalsegno.steps.declared.targets import last_captures

#: The property of a table that says which SELECT its rows are of.
QUERY_PROPERTY = "dalsegno.query"
_SUFFIX = "__state"
#: The property of a companion table that names its declared table.
COMPANION_PROPERTY = "dalsegno.companion-of"
_DELTAS = frozenset({StrategyName.DELTA_JOINED, StrategyName.DELTA, StrategyName.DELTA_KEYS})
_SLOW = frozenset({StrategyName.KEYS, StrategyName.FULL})


@dataclass(frozen=True)
class Companion:
    """The table that keeps the state, and what the declared table is in terms of it."""

    name: TableName
    #: None: it is to be created.
    stored: LoadedTable | None
    #: Of the query for the state.
    analysis: Analysis
    columns: Mapping[str, str]
    _states: States

    def result(self) -> str:
        """The declared table's rows, computed from the state."""
        return self._states.result_from(self.name.quoted)

    def is_current(self, target: LoadedTable | None, consumer: str) -> bool:
        """Whether it was last written for the capture that the target was last written for."""
        if self.stored is None or target is None:
            return False
        if self.stored.metadata["properties"].get(QUERY_PROPERTY) != target.metadata["properties"].get(QUERY_PROPERTY):
            return False
        captures = last_captures(self.stored.metadata, consumer)
        return bool(captures) and captures == last_captures(target.metadata, consumer)


def companion_of(
    lake: Lake,
    table: DeclaredTable,
    analysis: Analysis,
    target: Table,
    sources: Mapping[Name, LoadedTable],
    describe: DescribeQuery,
) -> Companion | None:
    """The companion of a declared table, if it is allowed, and if changes can be added to it but not to the table."""
    if not table.companion:
        return None
    try:
        states = states_of(analysis)
    except NotProven:
        return None
    tables, current = [described(each) for each in sources.values()], current_namespace(lake)
    first = analyse(states.states, tables, current=current, deterministic=table.deterministic)
    columns = describe(Writer(first, Table(("",), dict.fromkeys(first.outputs, "")), Reading({})).query())
    found = analyse(states.states, tables, current=current, deterministic=table.deterministic, kinds=columns)
    name = companion_name(lake.name(table.target))
    if not any(_pays(analysis, target, found, Table(parts_of(name), columns), each) for each in sources):
        return None
    stored = find(lake, name)
    _refuse_foreign_table(name, stored, lake.name(table.target))
    return Companion(name, stored, found, columns, states)


def companion_name(target: TableName) -> TableName:
    return replace(target, name=target.name + _SUFFIX)


def _pays(analysis: Analysis, target: Table, states: Analysis, companion: Table, source: Name) -> bool:
    """Whether removed rows of a source are cheap to follow with the state alone."""
    own, theirs = (
        next((each.name for each in strategies_for(query, table, {source: Changed.ANY}) if each.is_possible), None)
        for query, table in ((analysis, target), (states, companion))
    )
    return own in _SLOW and theirs in _DELTAS and not _has_narrow_key(analysis, target, source)


def _has_narrow_key(analysis: Analysis, target: Table, source: Name) -> bool:
    """Whether changed rows show the keys that they touch, and one of their columns is likely to have many values."""
    try:
        keys = best_key(analysis, target, analysis.scans([source]))
    except NotProven:
        return False
    return keys.joins == 0 and any(is_ordered(target.type_of(name)) for name in keys.names)


def _refuse_foreign_table(name: TableName, stored: LoadedTable | None, target: TableName) -> None:
    if stored is None or stored.metadata.get("properties", {}).get(COMPANION_PROPERTY) == str(target):
        return
    raise UserError(
        f"{name} is where the state of {target} would be kept, but it is another table.",
        hint="Rename that table, or do without a companion table: companion: false",
    )
