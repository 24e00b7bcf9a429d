"""What people read. Every function takes what an operation returned and gives back text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dalsegno.cli.output import counted, size
from dalsegno.clock import from_millis
from dalsegno.model.captures import Capture, CapturedTable, ChangeKind, Checkpoint, Mode, Role
from dalsegno.model.snapshots import Position

if TYPE_CHECKING:
    from dalsegno.capture.changes import Changes
    from dalsegno.capture.checking import CatalogReport
    from dalsegno.capture.lake import Cleaned, Committed
    from dalsegno.capture.planning import TablePlan
    from dalsegno.capture.rebuilding import Rebuilt, RebuiltCheckpoint
    from dalsegno.plan.forecast import Cost, Expiry
    from dalsegno.store import CheckpointPosition

_BAR_WIDTH = 30
_MANY = 8
_MORE = "; what came later waits for the next capture"


def moment(value: datetime | None) -> str:
    return f"{value:%Y-%m-%d %H:%M} UTC" if value else "never"


def number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def duration(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    parts = [f"{days} d"] * bool(days) + [f"{hours} h"] * bool(hours) + [f"{rest // 60} min"] * bool(rest // 60)
    return " ".join(parts[:2]) or f"{int(seconds)} s"


def bar(amount: int, most: int) -> str:
    filled = round(_BAR_WIDTH * amount / most) if most else 0
    return "█" * max(filled, 1 if amount else 0)


def place(position: Position | None) -> str:
    if position is None:
        return "nowhere yet"
    if position.snapshot_id is None:
        return "the beginning"
    assert position.timestamp_ms is not None  # noqa: S101 - a snapshot has a time
    return f"snapshot {position.snapshot_id} of {moment(from_millis(position.timestamp_ms))}"


# Captures.


def changes(made: Changes, start: str | None) -> str:
    if made.capture is None:
        return "\n".join(_nothing_new(made))
    capture = made.capture
    lines = []
    for captured in capture.tables:
        lines += [*_captured(captured, capture.consumer, start, is_resumed=made.is_resumed), ""]
    lines.append(f"  capture        {capture.id}, kept until {moment(capture.expires_at)}")
    what = "view" if capture.tables[0].is_view else "change table"
    lines.append(f"Read the {what}{'s' * (len(capture.tables) > 1)}, then: dalsegno commit {capture.id}")
    return "\n".join(lines)


def _captured(captured: CapturedTable, consumer: str, start: str | None, *, is_resumed: bool) -> Iterable[str]:
    details = captured.details
    if is_resumed:
        yield f"{captured.table}: handed out again for {consumer}; it was neither committed nor abandoned."
    elif captured.is_full:
        yield f"{captured.table}: the whole table as of {place(captured.upto)}, for {consumer}."
    else:
        what = "changed" if captured.spec.compares_ends else "was added"
        yield f"{captured.table}: all that {what} after {place(captured.after)}, for {consumer}."
    if captured.is_first and start is None and captured.after.snapshot_id is None and not is_resumed:
        yield "  It is the first capture of this consumer, so it begins at the earliest; choose with --from."
    yield f"  {'view' if captured.is_view else 'change table':<14} {captured.change_table}"
    if Role.BEFORE in captured.tables:
        yield f"  as it was      {captured.tables[Role.BEFORE]}"
    if captured.changes_view:
        yield f"  changed rows   {details.get('changes_view') or 'see dalsegno query'}"
    if Role.DELETED_KEYS in captured.tables:
        keys = " or ".join(", ".join(key) for key in details["deleted_keys"]["columns"])
        yield f"  deleted keys   {captured.tables[Role.DELETED_KEYS]} ({keys})"
    if not captured.is_full:
        yield f"  snapshots      {details['captured_snapshots']:,} captured" + _skipped(details)
        yield f"  up to          {place(captured.upto)}{_MORE * bool(details.get('has_more'))}"
    yield f"  to read        {_amounts(details)}"
    if details["before"]:
        yield f"  and as it was  {_amounts(details['before'])}"
    yield from _partition_lines(details["partitions"])
    for name, values in details["ranges"].items():
        yield f"  {name:<14} {_range(values)}"
    yield from _exactness(details.get("inexact_because"), details.get("may_be_more"))
    if details["schema_changed"]:
        yield "  schema         changed inside the range; the change table has the newest"
    yield f"  history        {details['pin']}"


def _exactness(inexact_because: str | None, may_be_more: str | None) -> Iterable[str]:
    if inexact_because:
        yield f"  NOT EXACT      {inexact_because}"
    if may_be_more:
        yield f"  may be more    {may_be_more}"


def _amounts(details: Mapping[str, Any]) -> str:
    # Captures of before their sizes were counted do not tell them.
    return f"{counted(details['files'], 'file')}, {counted(details['rows'], 'row')}, {size(details.get('bytes'))}"


def _skipped(details: Mapping[str, Any]) -> str:
    skipped = [snapshot for snapshot in details["snapshots"] if snapshot["treatment"] != "captured"]
    if not skipped:
        return ""
    said = "; ".join(f"{snapshot['id']} ({snapshot['treatment']})" for snapshot in skipped[:_MANY])
    return f", {len(skipped):,} skipped: {said}{' …' * (len(skipped) > _MANY)}"


def _partition_lines(partitions: Sequence[Mapping[str, Any]] | None) -> Iterable[str]:
    if partitions is None:
        yield "  partitions     not listed, there are many files; ask with --partitions"
        return
    for novelty, title in (("new", "new"), ("reopened", "re-opened"), ("unknown", "perhaps new")):
        found = [_partition(each["values"]) for each in partitions if each["novelty"] == novelty]
        if found:
            more = f" and {len(found) - _MANY:,} more" if len(found) > _MANY else ""
            yield f"  partitions     {len(found):,} {title}: {', '.join(found[:_MANY])}{more}"


def _partition(values: Mapping[str, Any]) -> str:
    from dalsegno.iceberg.values import partition_path  # noqa: PLC0415 - slow import

    return partition_path(values) or "the table is not partitioned"


def _range(values: Mapping[str, Any]) -> str:
    if values["unknown_because"]:
        return f"range unknown: {values['unknown_because']}"
    return "holds no value" if values["min"] is None else f"{values['min']} … {values['max']}"


def _nothing_new(made: Changes) -> Iterable[str]:
    for increment in made.increments:
        skipped = f", {len(increment.snapshots)} skipped (no rows changed)" if increment.snapshots else ""
        yield f"{increment.table}: nothing new for {made.consumer} since {place(increment.after)}{skipped}."
        if increment.is_first:
            yield f"  The consumer begins at {place(increment.upto)}: what comes after it is captured."


def committed(made: Committed) -> str:
    lines = [
        f"{made.checkpoint.consumer} has processed {table} up to {place(position)}."
        for table, position in made.checkpoint.positions.items()
    ]
    if not made.is_new:
        lines.append(f"It was committed before, by {made.checkpoint.moved_by} on {moment(made.checkpoint.moved_at)}.")
    lines += [f"Left for dalsegno clean: {problem}" for problem in made.left_over]
    return "\n".join(lines)


def settled(capture: Capture) -> str:
    said = f"Capture {capture.id} of {capture.consumer} is {capture.state}"
    return f"{said}{', its change tables are gone' if capture.dropped_at else ''}."


def cleaned(made: Cleaned, runs: int = 0, folders: int = 0) -> str:
    lines = [f"Given up, its time was over: {each}" for each in made.abandoned]
    lines += [f"Kept, though its time is over: {each}" for each in made.kept]
    lines += [f"Removed the change tables of {each}" for each in made.dropped]
    lines += [f"Removed what an audit left in {each}" for each in made.scratch]
    lines += [f"Could not be removed: {problem}" for problem in made.left_over]
    if runs:
        lines.append(f"Deleted {counted(runs, 'run')} that ended long ago.")
    if folders:
        lines.append(f"Removed the files of {counted(folders, 'run')}.")
    return "\n".join(lines) or "There is nothing to clean."


def captures(found: Sequence[Capture]) -> str:
    if not found:
        return "No captures."
    return "\n".join(
        f"{each.id}  {each.state:<9}  {each.consumer}  {', '.join(str(c.table) for c in each.tables)}"
        f"  made {moment(each.created_at)} by {each.created_by}"
        for each in found
    )


# Checkpoints.


def marks(found: Sequence[CheckpointPosition]) -> str:
    if not found:
        return "No checkpoints yet: a consumer has one from its first commit on."
    return "\n".join(f"{each.consumer}  {each.table}  {place(each.position)}" for each in found)


def mark(found: CheckpointPosition) -> str:
    position = found.position
    lines = {
        "consumer": found.consumer,
        "table": found.table,
        "table uuid": position.table_uuid,
        "branch": position.branch,
        "snapshot": position.snapshot_id or "before the first",
        "sequence": position.sequence_number,
        "of": moment(from_millis(position.timestamp_ms) if position.timestamp_ms else None),
        "schema": position.schema_id,
        "moved": f"{moment(found.moved_at)} by {found.moved_by}: {found.reason}",
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())


def moved(checkpoint: Checkpoint) -> str:
    return "\n".join(
        f"The checkpoint of {checkpoint.consumer} on {table} is at {place(position)}."
        for table, position in checkpoint.positions.items()
    )


def history(found: Sequence[Checkpoint]) -> str:
    if not found:
        return "No checkpoint was ever moved."
    return "\n".join(
        f"{moment(each.moved_at)}  {each.moved_by}  {each.reason}{f' ({each.capture_id})' * bool(each.capture_id)}"
        + "".join(f"\n    {table}  {place(position)}" for table, position in each.positions.items())
        for each in found
    )


def rebuilt(found: Rebuilt) -> str:
    lines = [f"{target}: {counted(count, 'snapshot')} written for captures" for target, count in found.targets.items()]
    for each in found.checkpoints:
        lines += _rebuilt(each, is_dry_run=found.is_dry_run)
    return "\n".join(lines if found.checkpoints else [*lines, "There is nothing to rebuild checkpoints from."])


def _rebuilt(each: RebuiltCheckpoint, *, is_dry_run: bool) -> Iterable[str]:
    from dalsegno.capture.rebuilding import Action  # noqa: PLC0415 - whoever has one has loaded it

    whose = f"{each.consumer} on {each.table}"
    told = f"capture {each.capture_id}, the newest of {each.captures:,}, in {', '.join(map(str, each.targets))}"
    match each.action:
        case Action.SET:
            yield f"{whose}: {'would be' if is_dry_run else 'is'} set to {place(each.position)}"
        case Action.KEPT:
            yield f"{whose}: stays at {place(each.stored)}"
        case Action.REFUSED:
            yield f"{whose}: REFUSED"
    yield f"  by {told}"
    if each.action is Action.SET and each.captures == 1:
        yield "  It is the only one known, so there is nothing to tell whether its run wrote all that it should."
    if each.action is Action.SET and each.stored is not None:
        yield f"  it was at {place(each.stored)}"
    if each.refusal:
        yield f"  {each.refusal['message']}"
        if each.refusal["hint"]:
            yield f"  → {each.refusal['hint']}"


# Catalogs.


def catalog_reports(found: Sequence[CatalogReport]) -> str:
    lines = []
    for report in found:
        lines.append(f"{report.catalog} ({report.type}): {'works' if report.works else 'does not work'}")
        lines += [f"  {'yes' if each.works else 'NO ':<3}  {each.name:<9} {each.says}" for each in report.abilities]
    return "\n".join(lines)


# Plans.


def plans(found: Sequence[TablePlan]) -> str:
    return "\n\n".join("\n".join(_plan(each)) for each in found)


def _plan(plan: TablePlan) -> Iterable[str]:
    yield f"Plan for {plan.consumer} on {plan.table}, branch {plan.branch}. Nothing is created."
    if plan.checkpoint is None:
        yield f"  checkpoint     none yet: it would begin at {plan.start} (choose with --from)"
    else:
        yield f"  checkpoint     {place(plan.checkpoint)}"
    end = place(plan.upto) if plan.upto else "nothing was written yet"
    yield f"  up to          {end}{_MORE * bool(plan.has_more)}"
    if plan.changes is not ChangeKind.ADDED:
        yield f"  changes        {plan.changes}"
    if plan.mode is Mode.VIEW:
        yield "  mode           view: no change table would be made"
    if plan.pending_capture:
        yield f"  pending        capture {plan.pending_capture} would be handed out again"
    if plan.refusal:
        yield f"  REFUSED        {plan.refusal['message']}"
        yield f"                 → {plan.refusal['hint']}"
    yield from _exactness(plan.inexact_because, plan.may_be_more)
    for kind, count in plan.snapshots.items():
        yield f"  snapshots      {count:,} {kind}"
    yield f"  behind         {_behind(plan)}"
    yield ""
    yield from _costs(plan)
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
            yield _cost("  as it was", plan.before, most)


def _cost(name: str, cost: Cost, most: int) -> str:
    amounts = f"{number(cost.files):>10} files {number(cost.rows):>15} rows {size(cost.bytes):>12}"
    return f"    {name:<14} {amounts}  {bar(cost.bytes or 0, most)}"


def _plan_partitions(plan: TablePlan) -> Iterable[str]:
    if plan.partitions:
        listed = [{"values": each.values, "novelty": each.novelty} for each in plan.partitions]
        yield from _partition_lines(listed)


def _lateness(plan: TablePlan) -> Iterable[str]:
    if not plan.lateness:
        return
    yield f"  lateness of rows by {plan.event_time} (at most, by each file's oldest row):"
    most = max(each.rows for each in plan.lateness)
    for each in plan.lateness:
        if each.rows:
            yield f"    {each.label:<16} {each.rows:>15,} rows  {bar(each.rows, most)}"
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
