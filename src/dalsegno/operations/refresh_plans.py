"""How the next run would refresh the tables that a workflow declares, from metadata. Nothing is created or executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.errors import DalsegnoError, UserError
from dalsegno.model.refreshes import Considered, Cost
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Workflow
from dalsegno.operations.resolving import work_behind
from dalsegno.operations.rewrite_costs import CheckCost, CostRequest, costs_now
from dalsegno.rewrite import Change, Changed, Options, Reading, Strategy, analyse, expanded
from dalsegno.rewrite.stated import stated_facts, with_facts
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.spec.captures import WrittenCapture, written_declarations
from dalsegno.steps.declared.dimensions import pinned_names
from dalsegno.steps.declared.params import STRATEGIES, Policy, dimensions_of
from dalsegno.steps.declared.refreshing import needs_trust
from dalsegno.steps.declared.sources import current_namespace, described, find, sources_of
from dalsegno.steps.declared.views import over_tables

if TYPE_CHECKING:
    from dalsegno.capture.planning import TablePlan


@dataclass(frozen=True)
class SourceChange:
    """What has changed in a source since the last run."""

    table: TableName
    #: ``nothing``, ``appended``, ``any`` kind of change, or ``all``: the whole table would be read.
    changed: str
    after_snapshot: str | None
    upto_snapshot: str | None
    #: Of what changed; None: not known.
    files: int | None
    rows: int | None
    bytes: int | None
    #: Of the whole table.
    total_bytes: int | None


@dataclass(frozen=True)
class RefreshPlan:
    """What the next run would do for one table."""

    step: str
    #: None: only a run decides.
    target: TableName | None
    #: None: nothing is to be done, or it cannot be told.
    strategy: str | None
    why: str
    #: Whether a query over the changed rows decides if the strategy is right; if not, the next one is taken.
    needs_probe: bool = False
    #: A capture that the run would resume instead of making one.
    pending_capture: str | None = None
    sources: tuple[SourceChange, ...] = ()
    considered: tuple[Considered, ...] = ()
    #: Of facts, before anything is written.
    checks: tuple[CheckCost, ...] = ()


def plans(lake: Lake, workflow: Workflow) -> Iterator[RefreshPlan]:
    declared = written_declarations(workflow)
    if not declared:
        raise UserError(
            f"{workflow.id} declares no table: it has no Incremental step.",
            hint="To plan a capture, name its tables and its consumer.",
        )
    return (_plan(lake, each) for each in declared)


def _plan(lake: Lake, declared: WrittenCapture) -> RefreshPlan:
    target, query = (declared.fields.get(name) for name in ("target", "query"))
    if not isinstance(target, str) or not isinstance(query, str):
        return RefreshPlan(declared.step_id, None, None, "Only a run decides about its target or its SELECT.")
    name = lake.name(target)
    try:
        return _Planner(lake, declared, name, query).plan()
    except DalsegnoError as error:
        return RefreshPlan(declared.step_id, name, None, error.message)


class _Planner:
    def __init__(self, lake: Lake, declared: WrittenCapture, name: TableName, query: str) -> None:
        self.lake, self.fields, self.step, self.name = lake, declared.fields, declared.step_id, name
        self.query = over_tables(lake, query)
        self.tables = sources_of(lake, self.query)
        dimensions = dimensions_of(self.fields.get("dimensions"))
        pinned = pinned_names(lake.name, dimensions, self.query, [each.name for each in self.tables.values()])
        self.sources = {each: table for each, table in self.tables.items() if table.name not in pinned}
        self.consumer = str(self.fields.get("consumer") or consumer_of_workflow(str(name)))

    def plan(self) -> RefreshPlan:
        target = find(self.lake, self.name)
        names = [str(each.name) for each in self.sources.values()]
        is_new = target is None or all(self.lake.position(self.consumer, each) is None for each in names)
        start = "full" if is_new else None
        found = self.lake.plan(*names, consumer=self.consumer, start=start, changes="before_after")
        pending = next((each.pending_capture for each in found if each.pending_capture), None)
        if (refused := next((each.refusal for each in found if each.refusal), None)) is not None:
            return RefreshPlan(self.step, self.name, None, f"The capture is refused: {refused['message']}")
        sources = tuple(
            _source(table.name, each, is_new=is_new) for table, each in zip(self.sources.values(), found, strict=True)
        )
        if pending is not None and (begun := self._begun(pending)) is not None:
            return RefreshPlan(self.step, self.name, *begun, False, pending, sources)
        if target is None or is_new:
            why = "The target is new."
            return RefreshPlan(self.step, self.name, StrategyName.FULL, why, False, pending, sources)
        kinds = {
            name: Changed(each.changed)
            for name, each in zip(self.sources, sources, strict=True)
            if each.changed != "nothing"
        }
        if not kinds:
            return RefreshPlan(self.step, self.name, None, "Nothing has changed.", False, pending, sources)
        tables, current = [described(each) for each in self.tables.values()], current_namespace(self.lake)
        facts = tuple(stated_facts(tuple(self.fields.get("facts") or ()), tables))
        tables = with_facts(tables, facts)
        analysis = analyse(expanded(self.query, tables, current=current), tables, current=current)
        options = Options(tuple(self.fields.get("keys") or ()))
        known = strategies_for(analysis, described(target), kinds, options)
        request = CostRequest(analysis, self.name, described(target), target, self.tables, options, facts)
        now = costs_now(self.lake, request, self.consumer)
        # The one that would be taken first.
        costs = {each.name: Cost(each.bytes_read, each.bytes_written or 0, each.seconds) for each in now.strategies}
        considered = tuple(
            Considered(each.name.value, each.is_possible, each.why, costs.get(each.name)) for each in known
        )
        chosen = self._chosen(known, list(costs))
        return RefreshPlan(
            self.step,
            self.name,
            chosen.name.value,
            chosen.why,
            chosen.probe(_reading(kinds)) is not None,
            pending,
            sources,
            considered,
            now.checks,
        )

    def _begun(self, capture_id: str) -> tuple[str, str] | None:
        """The strategy of a run that broke, and why it was taken: the next run resumes it, and decides nothing anew."""
        units = [each for each in work_behind(self.lake, capture_id) if each.is_begun and each.decision is not None]
        decision = units[0].decision if units else None
        return None if decision is None else (str(decision["strategy"]), str(decision["why"]))

    def _chosen(self, known: Sequence[Strategy], order: Sequence[str]) -> Strategy:
        """The cheapest that is right, as far as that is known before a run; a refusal if none is."""
        wanted, policy = STRATEGIES.get(str(self.fields.get("strategy") or "")), self.fields.get("policy")
        if not any(each.is_possible for each in known):
            raise UserError(f"The table cannot be declared by this SELECT: {known[0].why}")
        if policy == Policy.FULL.value:
            return known[-1]
        reason = next((each.why for each in known if not each.is_possible and wanted in (None, each.name)), "")
        usable = [each for each in known if each.is_possible and (wanted is each.name or not needs_trust(each))]
        usable.sort(key=lambda each: order.index(each.name) if each.name in order else len(order))
        if policy == Policy.STRICT.value:
            usable.sort(key=lambda each: each.name is StrategyName.FULL)
        chosen = next((each for each in usable if wanted in (None, each.name)), None)
        if chosen is None:
            raise UserError(f"The run is refused, because the strategy {wanted} is not possible: {reason}")
        if chosen.name is not StrategyName.FULL or wanted is not None:
            return chosen
        if len(usable) > 1:
            return replace(chosen, why="A full refresh is expected to be cheaper.")
        if policy == Policy.STRICT.value:
            raise UserError(f"The run is refused, because only a full refresh is possible: {reason}")
        return replace(chosen, why=reason or chosen.why)


def _source(table: TableName, found: TablePlan, *, is_new: bool) -> SourceChange:
    read, before = found.to_read, found.before
    if is_new:
        changed = "all"
    elif not (read and read.files):
        changed = "nothing"
    else:
        changed = (Changed.ANY if before and before.files else Changed.APPENDED).value
    ends = (found.checkpoint, found.upto)
    after, upto = (None if each is None or each.snapshot_id is None else str(each.snapshot_id) for each in ends)
    files, rows, size = (read.files, read.rows, read.bytes) if read else (None, None, None)
    return SourceChange(
        table, changed, after, upto, files, rows, size, found.full_scan.bytes if found.full_scan else None
    )


def _reading(kinds: Mapping[tuple[str, ...], Changed]) -> Reading:
    """Relations of no table: only whether there is a probe is asked."""
    return Reading(
        {
            name: Change("after", "added", None if kind is Changed.APPENDED else "removed", "before")
            for name, kind in kinds.items()
        }
    )
