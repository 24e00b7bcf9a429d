"""Plans for people: what a capture would read, how late rows are, and what may expire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted, size
from dalsegno.cli.text import MORE, exactness, partition_lines, place
from dalsegno.cli.times import duration, moment
from dalsegno.model.captures import ChangeKind, Mode

if TYPE_CHECKING:
    from dalsegno.operations.results import Cost, Expiry, TablePlan

_BAR_WIDTH = 30


def number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def bar(amount: int, most: int) -> str:
    filled = round(_BAR_WIDTH * amount / most) if most else 0
    return "█" * max(filled, 1 if amount else 0)


def plans(found: Sequence[TablePlan]) -> str:
    return "\n\n".join("\n".join(_plan(each)) for each in found)


def _plan(plan: TablePlan) -> Iterable[str]:
    yield f"Plan for {plan.consumer} on {plan.table}, branch {plan.branch}. Nothing is created."
    if plan.checkpoint is None:
        yield f"  checkpoint     none yet: it would begin at {plan.start} (choose with --from)"
    else:
        yield f"  checkpoint     {place(plan.checkpoint)}"
    end = place(plan.upto) if plan.upto else "nothing was written yet"
    yield f"  up to          {end}{MORE * bool(plan.has_more)}"
    if plan.changes is not ChangeKind.ADDED:
        yield f"  changes        {plan.changes}"
    if plan.mode is Mode.VIEW:
        yield "  mode           view: no change table would be made"
    if plan.pending_capture:
        yield f"  pending        capture {plan.pending_capture} would be handed out again"
    if plan.refusal:
        yield f"  {paint('REFUSED', 'red')}        {plan.refusal['message']}"
        yield paint(f"                 → {plan.refusal['hint']}", "dim")
    yield from exactness(plan.inexact_because, plan.may_be_more)
    for kind, count in plan.snapshots.items():
        yield f"  snapshots      {count:,} {kind}"
    yield f"  behind         {_behind(plan)}"
    yield ""
    yield from _costs(plan)
    yield from _savings(plan)
    yield from _plan_partitions(plan)
    yield from _lateness(plan)
    if plan.expiry is not None:
        yield from _expiry(plan.expiry)


def _behind(plan: TablePlan) -> str:
    if plan.expiry is None:
        return "unknown: " + ("the capture is refused" if plan.refusal else "no line of snapshots leads to here")
    if plan.behind_seconds is None:
        return "not at all: everything is processed"
    amount = f", {number(plan.to_read.rows)} rows, {size(plan.to_read.bytes)}" if plan.to_read else ""
    return f"{duration(plan.behind_seconds)}{amount} (the oldest is of {moment(plan.behind_since)})"


def _costs(plan: TablePlan) -> Iterable[str]:
    costs: list[tuple[str, Cost | None]] = [
        ("this capture", plan.to_read),
        (f"lookback {plan.lookback_days} d", plan.lookback),
        ("full scan", plan.full_scan),
    ]
    most = max((cost.bytes or 0 for _, cost in costs if cost), default=0)
    yield "  to be read:"
    for name, cost in costs:
        if cost is None:
            why = plan.lookback_unknown_because if name.startswith("lookback") else "refused"
            yield f"    {name:<14} unknown: {why}"
        else:
            yield _cost(name, cost, most)
        if name == "this capture" and plan.before:
            yield _cost("  of it before", plan.before, most)


def _cost(name: str, cost: Cost, most: int) -> str:
    amounts = f"{number(cost.files):>10} files {number(cost.rows):>15} rows {size(cost.bytes):>12}"
    return f"    {name:<14} {amounts}  {bar(cost.bytes or 0, most)}"


def _plan_partitions(plan: TablePlan) -> Iterable[str]:
    if plan.partitions:
        listed = [{"values": each.values, "novelty": each.novelty} for each in plan.partitions]
        yield from partition_lines(listed)


def _savings(plan: TablePlan) -> Iterable[str]:
    """How much less this capture reads than the others, if it does."""
    costs = ((f"a lookback of {plan.lookback_days} days", plan.lookback), ("a full scan", plan.full_scan))
    saved = [
        f"{percent}% less than {name}"
        for name, cost in costs
        if plan.to_read and cost and (percent := _percent_saved(plan.to_read.bytes, cost.bytes))
    ]
    if saved:
        yield f"  saves          reads {', '.join(saved)}"


def _percent_saved(amount: int | None, whole: int | None) -> int:
    """Rounded down, so that 100 is everything; 0 if nothing is saved, or nobody knows."""
    return max(0, (whole - amount) * 100 // whole) if amount is not None and whole else 0


def _lateness(plan: TablePlan) -> Iterable[str]:
    if not plan.lateness:
        return
    yield f"  lateness of rows by {plan.event_time} (at most, by each file's oldest row):"
    most = max(each.rows for each in plan.lateness)
    for each in plan.lateness:
        if each.rows:
            yield f"    {each.label:<16} {counted(each.rows, 'row'):>20}  {bar(each.rows, most)}"
    if plan.missed_by_lookback:
        yield f"    a lookback of {plan.lookback_days} days would miss up to {plan.missed_by_lookback:,} of them"


def _expiry(found: Expiry) -> Iterable[str]:
    days = timedelta(days=found.table_keeps_days)
    if found.first_may_expire_at is None:
        yield "  expiry         nothing unprocessed can expire"
    else:
        yield (
            f"  expiry         the table keeps snapshots for {duration(days.total_seconds())}: the oldest unprocessed "
            f"one may go from {moment(found.first_may_expire_at)} on"
        )
        if found.pinned_snapshots:
            yield f"                 {found.pinned_snapshots:,} of them are pinned until {moment(found.pinned_until)}"
        else:
            yield "                 none is pinned; a capture pins them"
