"""What is remembered of a refresh: what it decided, before it begins; what it wrote and cost, when it is done.

Both are stored with the step's work unit, and the second is read from there, from the capture and from the stamps in
the target. So whoever resumes a refresh records what whoever began it would have recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.iceberg import evidence
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN, branch_heads
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.refreshes import Cost, Decision, ReadAs, Refresh, SourceRead, TargetWrite
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, WorkUnit
from dalsegno.plan.refresh_costs import MOST_SAMPLES, PastCost
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.steps.contract import Work
from dalsegno.steps.declared.refreshing import Declared
from dalsegno.steps.declared.refreshing import Refresh as Planned
from dalsegno.steps.declared.sources import find, parts_of
from dalsegno.steps.spark.params import Concluded
from dalsegno.store.refresh_queries import decision_of


def past_costs(lake: Lake, target: TableName, digest: str | None = None) -> list[Cost]:
    """What earlier refreshes of a table cost, the newest first; those by the same SELECT, if that is given.

    Those of its proof come last.
    """
    known = lake.store.refreshes(target, limit=MOST_SAMPLES)
    own = [(each.strategy, each.changed, each.cost) for each in known if digest in (None, each.query_digest)]
    proven = [(strategy, "", cost) for strategy, cost in lake.store.proof_costs(target)]
    return [
        PastCost(cost.bytes_read, cost.bytes_written, cost.seconds, strategy, changed)
        for strategy, changed, cost in (*own, *proven)
    ]


def decided(declared: Declared, planned: Planned, capture: Capture, masked: Callable[[str], str]) -> Decision:
    """What a refresh is going to do, and what a full one would read instead. ``masked`` hides secrets in a text."""
    is_full = planned.strategy is StrategyName.FULL
    return Decision(
        target=declared.target_name,
        query_digest=declared.digest,
        strategy=planned.strategy.value,
        why=masked(planned.why),
        changed=planned.changed,
        facts=tuple(map(masked, planned.facts)),
        considered=tuple(replace(each, why=masked(each.why)) for each in planned.considered),
        reads=(
            *(_read(captured, is_full=is_full or captured.is_full) for captured in capture.tables),
            *(SourceRead(each.table.name, ReadAs.PINNED, None, each.snapshot_id) for each in declared.pinned.values()),
        ),
        expected_cost=planned.expected,
        full_cost=_full_cost(declared, capture),
    )


def concluded(work: Work, unit: WorkUnit) -> Concluded:
    """What a refresh did, of which every statement is done, and what its step returns."""
    if unit.decision is None or work.log_of_work is None:
        return Concluded({}, None)
    decision = decision_of(unit.decision)
    (capture,) = work.captures
    with Lake.open(work.settings) as lake:
        written_to = (TableName.of_quoted(each.target) for each in unit.statements if each.target)
        names = dict.fromkeys((decision.target, *written_to))
        tables = {name: table for name in names if (table := find(lake, name)) is not None}
    writes = tuple(_write(table, unit, is_companion=name != decision.target) for name, table in tables.items())
    written = sum(each.added_bytes for each in writes)
    done: dict[str, Any] = {field.name: getattr(decision, field.name) for field in fields(decision)}
    refresh = Refresh(
        **{**done, "full_cost": _with_target(decision, tables.get(decision.target))},
        unit_id=unit.id,
        capture_id=capture.id,
        workflow_id=work.workflow_id,
        workflow_version=work.log_of_work.workflow_version,
        run_number=work.run_number,
        step_id=work.step_id,
        writes=writes,
        cost=Cost(_bytes_read(decision), written, _seconds(unit, tables)),
        at=work.log_of_work.now(),
        statements=tuple(each.text for each in unit.statements),
    )
    return Concluded(_outputs(refresh), refresh)


def _outputs(refresh: Refresh) -> dict[str, Any]:
    outputs = {
        "strategy": refresh.strategy,
        "why": refresh.why,
        "target_table": str(refresh.target),
        "source_tables": [str(each.table) for each in refresh.reads],
        "rows_written": refresh.rows_written,
        "saved_bytes": refresh.saved_bytes,
    }
    # What is not known has no type that an output can have.
    return {name: value for name, value in outputs.items() if value is not None}


def _read(captured: CapturedTable, *, is_full: bool) -> SourceRead:
    found = [captured.details, captured.details.get("before") or {}]
    files, rows, size = (sum(each.get(what) or 0 for each in found) for what in ("files", "rows", "bytes"))
    read_as = ReadAs.STATE if is_full else ReadAs.CHANGES
    after = None if captured.is_full else captured.after.snapshot_id
    return SourceRead(captured.table, read_as, after, captured.upto.snapshot_id, files, rows, size)


def _full_cost(declared: Declared, capture: Capture) -> Cost | None:
    """The bytes of all sources at the end of the range; None if a writer did not say how large a table is."""
    sizes = [
        _size(declared.sources[parts_of(captured.table)].metadata, captured.upto.snapshot_id)
        for captured in capture.tables
    ]
    sizes += [_size(each.table.metadata, each.snapshot_id) for each in declared.pinned.values()]
    return None if None in sizes else Cost(sum(size or 0 for size in sizes), 0)


def _with_target(decision: Decision, target: LoadedTable | None) -> Cost | None:
    """What a full refresh would have cost: it would have written all that the target holds now."""
    size = None if target is None else _size(target.metadata, branch_heads(target.metadata).get(MAIN))
    if decision.full_cost is None or size is None:
        return None
    return replace(decision.full_cost, bytes_written=size)


def _size(metadata: Mapping[str, Any], snapshot_id: int | None) -> int | None:
    if snapshot_id is None:
        return 0
    for raw in metadata.get("snapshots", ()):
        if raw["snapshot-id"] == snapshot_id:
            found = (raw.get("summary") or {}).get("total-files-size")
            return None if found is None else int(found)
    return None


def _bytes_read(decision: Decision) -> int:
    if decision.expected_cost is not None:
        return decision.expected_cost.bytes_read
    if decision.strategy == StrategyName.FULL.value and decision.full_cost is not None:
        return decision.full_cost.bytes_read
    return sum(each.bytes for each in decision.reads)


def _write(table: LoadedTable, unit: WorkUnit, *, is_companion: bool) -> TargetWrite:
    """What the statements of a unit have added to a table, as its snapshots tell."""
    states = [each.before for each in unit.statements if each.target == table.name.quoted and each.before]
    heads = states[0].heads if states else branch_heads(table.metadata)
    summaries = _snapshots(table, unit)
    counts = [{name: int(value) for name, value in each.items() if value.isdecimal()} for each in summaries.values()]

    def total(name: str) -> int:
        return sum(each.get(name, 0) for each in counts)

    return TargetWrite(
        table.name,
        heads.get(MAIN),
        tuple(summaries),
        total("added-records"),
        # Rows that a delete file had marked before are in the file that was removed, but nobody saw them.
        total("deleted-records") + total("added-position-deletes") - total("removed-position-deletes"),
        total("added-files-size"),
        is_companion,
    )


def _snapshots(table: LoadedTable, unit: WorkUnit) -> dict[int, Mapping[str, str]]:
    """Those that a unit made in a table, oldest first, with their summaries; what has expired is known by its id."""
    stamped = evidence.stamped(table.metadata, unit.id)
    line = [raw["snapshot-id"] for raw in evidence.line(table.metadata, branch_heads(table.metadata).get(MAIN))]
    known = [each.after for each in unit.statements if each.target == table.name.quoted and each.after is not None]
    expired: dict[int, Mapping[str, str]] = {each: {} for each in known if each not in stamped}
    return expired | {each: stamped[each] for each in reversed(line) if each in stamped}


def _seconds(unit: WorkUnit, tables: Mapping[TableName, LoadedTable]) -> float | None:
    """From the start of each statement to its end: a snapshot knows better when that was than who resumed the step."""
    found = [
        (end - each.begun_at).total_seconds()
        for each in unit.statements
        if each.begun_at is not None and (end := _end(each, unit, tables)) is not None
    ]
    return sum(max(each, 0.0) for each in found) if found else None


def _end(statement: Statement, unit: WorkUnit, tables: Mapping[TableName, LoadedTable]) -> datetime | None:
    """None: nobody knows, as where a person has said that it was executed."""
    table = tables.get(TableName.of_quoted(statement.target)) if statement.target else None
    made = [] if table is None else evidence.stamped(table.metadata, unit.id, statement.number)
    moments = [
        datetime.fromtimestamp(raw["timestamp-ms"] / 1000, UTC)
        for raw in (table.metadata.get("snapshots", ()) if table else ())
        if raw["snapshot-id"] in made
    ]
    return min([*moments, *([statement.done_at] if statement.done_at else [])], default=None)
