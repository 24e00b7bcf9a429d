"""Refreshes of declared tables for people: what one did, and what the next one would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted, size
from dalsegno.cli.tables import table
from dalsegno.cli.times import duration, when
from dalsegno.clock import utc_now

if TYPE_CHECKING:
    from dalsegno.model.refreshes import Cost, Refresh, SourceRead, TargetWrite
    from dalsegno.operations.refresh_plans import RefreshPlan, SourceChange


def refreshes(found: Sequence[Refresh]) -> str:
    now = utc_now()
    rows = [
        (
            f"{each.workflow_id}/{each.run_number}",
            when(each.at, now, seconds=True),
            each.strategy,
            size(each.cost.bytes_read),
            size(each.cost.bytes_written),
            each.rows_written,
            "" if each.full_cost is None else size(each.full_cost.bytes_read),
            None if each.cost.seconds is None else duration(each.cost.seconds),
            each.why,
        )
        for each in found
    ]
    headers = ("RUN", "COMMITTED", "STRATEGY", "READ", "WROTE", "ROWS", "FULL READS", "TOOK", "WHY")
    return table(headers, rows, empty="No run of a declared table has written to it.", right=(3, 4, 6, 7))


def refresh_lines(found: Refresh) -> Iterator[str]:
    """What a run did, below its step."""
    yield f"{found.strategy}: {found.why}"
    yield f"read {'; '.join(_read(each) for each in found.reads)}"
    writes = "; ".join(_write(each) for each in found.writes if each.snapshots) or "nothing"
    saved = ""
    if found.full_cost is not None and found.strategy != "full":
        full = f"{size(found.full_cost.bytes_read)} and {size(found.full_cost.bytes_written)}"
        saved = f"; read {size(found.cost.bytes_read)} and wrote {size(found.cost.bytes_written)}, full: {full}"
    yield f"wrote {writes}{saved}"


def _read(found: SourceRead) -> str:
    amount = f"{counted(found.rows, 'row')}, {size(found.bytes)}"
    ends = f"{found.after_snapshot or 'the beginning'} → {found.upto_snapshot or 'no snapshot'}"
    match found.read_as:
        case "pinned":
            return f"{found.table} as of {found.upto_snapshot}, where it is pinned"
        case "state":
            return f"{found.table} as of {found.upto_snapshot}"
        case _ if found.after_snapshot == found.upto_snapshot:
            return f"{found.table}, unchanged"
    return f"{found.table}, {ends}: {amount}"


def _write(found: TargetWrite) -> str:
    removed = f", removed {found.removed_rows:,}" if found.removed_rows else ""
    made = f" in {counted(len(found.snapshots), 'snapshot')}" if len(found.snapshots) != 1 else ""
    return f"{counted(found.added_rows, 'row')}{removed}, {size(found.added_bytes)} to {found.table}{made}"


def plans(found: Sequence[RefreshPlan]) -> str:
    return "\n\n".join("\n".join(_plan(each)) for each in found)


def _plan(plan: RefreshPlan) -> Iterator[str]:
    yield f"Plan for step {plan.step}, which refreshes {plan.target or 'a table'}. Nothing is created."
    probed = ", if its probe of the changed rows agrees" if plan.needs_probe else ""
    yield f"  strategy  {paint(plan.strategy or 'none', 'bold')}{probed}"
    yield f"  why       {plan.why}"
    if plan.pending_capture:
        yield f"  pending   the run resumes capture {plan.pending_capture}, and what was begun behind it"
    for source in plan.sources:
        yield f"  source    {_source(source)}"
    for each in plan.considered:
        if each.expected is not None and each.strategy in (plan.strategy, "full"):
            yield f"  cost      {each.strategy}: {_cost(each.expected)}"
    for check in plan.checks:
        yield f"  check     {check.fact}: reads {size(check.bytes_read)}"
    # What is behind the chosen one does not matter.
    for each in plan.considered:
        if each.strategy == plan.strategy:
            break
        yield f"  not       {each.strategy}: {'It costs more.' if each.is_possible else each.why}"


def _cost(cost: Cost) -> str:
    seconds = "" if cost.seconds is None else f", about {cost.seconds:.1f} s"
    return f"reads {size(cost.bytes_read)}, writes {size(cost.bytes_written)}{seconds}"


def _source(source: SourceChange) -> str:
    whole = "" if source.total_bytes is None else f" of {size(source.total_bytes)}"
    if source.changed == "nothing":
        return f"{source.table}: nothing has changed"
    rows = "unknown rows" if source.rows is None else counted(source.rows, "row")
    what = {"all": "all of it", "appended": "rows were added"}.get(source.changed, "rows were updated or deleted")
    return f"{source.table}: {what}, {rows}, {size(source.bytes)}{whole}"
