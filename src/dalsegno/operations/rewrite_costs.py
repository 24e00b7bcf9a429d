"""What a refresh of a declared table would cost now, under each strategy. Nothing is captured or executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.details import contents_of, look_into
from dalsegno.capture.lake import Lake
from dalsegno.errors import DalsegnoError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.sizes import TableSizes
from dalsegno.model.capture_requests import DetailOptions
from dalsegno.model.captures import Role, capture_spec_of
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import increment_between
from dalsegno.plan.refresh_costs import fitted
from dalsegno.rewrite import Analysis, Change, Changed, Options, Reading, Table
from dalsegno.rewrite.checks import Check, checks_for
from dalsegno.rewrite.facts import Fact
from dalsegno.rewrite.footprints import joins_of
from dalsegno.rewrite.ordering import ordering_columns
from dalsegno.rewrite.ranges import followed_columns
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.tables import Name
from dalsegno.steps.declared.changes import partition_columns
from dalsegno.steps.declared.costs import CostEstimate, SourceState
from dalsegno.steps.declared.deciding import Costs
from dalsegno.steps.declared.later_rows import with_later_columns
from dalsegno.steps.declared.records import past_costs
from dalsegno.steps.declared.refreshing import needs_trust
from dalsegno.steps.declared.sources import described

_SPEC = capture_spec_of("before_after", None, ())


@dataclass(frozen=True)
class SourceChange:
    """What changed in one source."""

    table: TableName
    #: ``appended``, or ``any`` kind of change.
    changed: str
    #: None: the table was empty. Ids have 64 bits, and many readers of JSON keep 53.
    after_snapshot: str | None
    upto_snapshot: str | None
    rows: int
    bytes: int


@dataclass(frozen=True)
class StrategyCost:
    """What a strategy would cost."""

    name: str
    bytes_read: int
    #: None: there is no target yet.
    bytes_written: int | None
    #: None: no refresh of the table has shown yet what bytes cost.
    seconds: float | None


@dataclass(frozen=True)
class CheckCost:
    """What it would cost to check a stated fact before anything is written."""

    fact: str
    bytes_read: int


@dataclass(frozen=True)
class RewriteCosts:
    """What the strategies would cost for one change of the sources."""

    #: Whether it is what changed since the last run; otherwise the last snapshot of each source is the example.
    is_since_checkpoint: bool
    changes: tuple[SourceChange, ...]
    #: The one that would be taken first.
    strategies: tuple[StrategyCost, ...]
    #: Why there are none.
    unknown_because: str | None = None
    #: They come before any strategy.
    checks: tuple[CheckCost, ...] = ()


@dataclass(frozen=True)
class CostRequest:
    """A SELECT and the tables that it is about."""

    analysis: Analysis
    name: TableName
    target: Table
    #: None: there is no target yet.
    stored: LoadedTable | None
    sources: Mapping[Name, LoadedTable]
    options: Options
    #: What the author states.
    facts: tuple[Fact, ...] = ()


def costs_now(lake: Lake, request: CostRequest, consumer: str | None = None) -> RewriteCosts:
    """The costs for what changed since the last run, or for the last snapshot of each source if there was none."""
    consumer = consumer or consumer_of_workflow(str(request.name))
    positions = {name: lake.position(consumer, str(each.name)) for name, each in request.sources.items()}
    is_since = request.stored is not None and all(position is not None for position in positions.values())
    columns = followed_columns(request.analysis)
    try:
        states = {
            name: _state(
                lake, each, positions[name] if is_since else _before_last(each), consumer, columns.get(name, ())
            )
            for name, each in request.sources.items()
        }
        return _costs(lake, request, states, is_since=is_since)
    except DalsegnoError as error:
        return RewriteCosts(is_since, (), (), error.message)


def _costs(lake: Lake, request: CostRequest, states: Mapping[Name, SourceState], *, is_since: bool) -> RewriteCosts:
    changes = {name: _change(state) for name, state in states.items() if state.details}
    if not changes:
        return RewriteCosts(is_since, (), (), "No row of a source has changed.")
    kinds = {name: Changed.ANY if change.removed else Changed.APPENDED for name, change in changes.items()}
    known = strategies_for(request.analysis, request.target, kinds, request.options)
    estimate, joins = CostEstimate(request.target, request.stored, states), joins_of(request.analysis)
    reading = with_later_columns(Reading(changes), states, ordering_columns(request.analysis))
    found = estimate.costs(known, reading, joins)
    changed = max(kinds.values(), key=lambda kind: kind is Changed.ANY)
    costs = Costs.of(found, fitted(past_costs(lake, request.name)), changed)
    shown = []
    for each in costs.ordered([each for each in known if each.is_possible and not needs_trust(each)]):
        cost = costs.by_strategy[each.name]
        written = None if request.stored is None else cost.bytes_written
        shown.append(StrategyCost(each.name.value, cost.bytes_read, written, cost.seconds))
    checks = checks_for(request.analysis, request.target, request.facts, reading, known=frozenset(request.facts))
    return RewriteCosts(
        is_since,
        tuple(_shown(states[name], kind) for name, kind in kinds.items()),
        tuple(shown),
        checks=tuple(CheckCost(str(each.fact), _bytes_of(each, request, states)) for each in checks),
    )


def _bytes_of(check: Check, request: CostRequest, states: Mapping[Name, SourceState]) -> int:
    """What a check reads: some columns of whole tables, and what was added to its source."""
    total = 0 if check.fact.table is None else states[check.fact.table].added_bytes
    for name, columns in check.reads:
        if name in states:
            size, every = states[name].now.total, described(request.sources[name]).columns
        else:
            head = request.stored.history().head if request.stored else None
            size = TableSizes(request.stored, head.id).total if request.stored and head else 0
            every = request.target.columns
        # Columns are taken to be of one size.
        total += size * len(set(columns)) // max(len(every), 1)
    return total


def _before_last(table: LoadedTable) -> Position:
    history = table.history()
    parent = history.head.parent_id if history.head else None
    return history.position(history.snapshots.get(parent) if parent is not None else None)


def _state(
    lake: Lake, table: LoadedTable, after: Position | None, consumer: str, columns: Sequence[str]
) -> SourceState:
    """What lies between a place and the end of a table, as a capture would describe it."""
    history = table.history()
    after = after or history.position(None)
    increment = increment_between(table.name, consumer, history, after, history.head, is_first=False, spec=_SPEC)
    upto = history.head.id if history.head else None
    details: dict[str, Any] = {}
    if increment.has_news:
        contents = contents_of(table, history, increment, lake.settings.io_threads)
        ends = [contents[role] for role in (Role.AFTER, Role.BEFORE)]
        if any(each.cost.files for each in ends):
            takes = [take for each in ends for take in each.data]
            options = DetailOptions(tuple(name for name in columns if "." not in name), partitions=True)
            looked = look_into(table, history, increment, takes, options)
            details = {**asdict(ends[0].cost), "before": asdict(ends[1].cost), **looked}
    return SourceState(table, after.snapshot_id, upto, details)


def _change(state: SourceState) -> Change:
    """Only which relations there are counts."""
    removed = "removed" if (state.details["before"] or {}).get("files") else None
    before = None if state.after_snapshot is None else "before"
    filters = state.details["partition_filter"], state.details["reopened_partition_filter"]
    ranges = {name.lower(): each["filter"] for name, each in state.details["ranges"].items()}
    return Change(
        "after",
        "added",
        removed,
        before,
        *filters,
        removed and "changed",
        ranges,
        partitioned_by=partition_columns(state.details, state.table),
    )


def _shown(state: SourceState, kind: Changed) -> SourceChange:
    found = [state.details, state.details["before"]]
    rows = sum(each["rows"] or 0 for each in found)
    size = state.added_bytes + state.removed_bytes
    after, upto = (None if each is None else str(each) for each in (state.after_snapshot, state.upto_snapshot))
    return SourceChange(state.table.name, kind.value, after, upto, rows, size)
