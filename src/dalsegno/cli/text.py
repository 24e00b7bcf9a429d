"""What people read. Every function takes what an operation returned and gives back text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted, size
from dalsegno.cli.tables import table
from dalsegno.cli.times import moment, when
from dalsegno.clock import from_millis, utc_now
from dalsegno.model.captures import Capture, CapturedTable, Checkpoint, Role
from dalsegno.model.snapshots import Position

if TYPE_CHECKING:
    from dalsegno.model.tables import TableName
    from dalsegno.operations.admin import CleanUp
    from dalsegno.operations.results import (
        CatalogReport,
        Changes,
        CheckpointPosition,
        Committed,
        Rebuilt,
        RebuiltCheckpoint,
    )

_MANY = 8
MORE = "; what came later waits for the next capture"
_STATE_COLOURS = {"preparing": "cyan", "ready": "yellow", "committed": "green", "abandoned": "dim"}


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
        yield f"{captured.table}: the pending capture of {consumer}, again; commit or abandon it."
    elif captured.is_full:
        yield f"{captured.table}: the whole table as of {place(captured.upto)}, for {consumer}."
    else:
        what = "changed" if captured.spec.compares_ends else "was added"
        yield f"{captured.table}: all that {what} after {place(captured.after)}, for {consumer}."
    if captured.is_first and start is None and captured.after.snapshot_id is None and not is_resumed:
        yield "  It is the first capture of this consumer, so it begins at the earliest; choose with --from."
    yield f"  {'view' if captured.is_view else 'change table':<14} {captured.change_table}"
    if Role.BEFORE in captured.tables:
        yield f"  before table   {captured.tables[Role.BEFORE]}"
    if captured.changes_view:
        yield f"  changed rows   {details.get('changes_view') or 'see dalsegno query'}"
    if Role.DELETED_KEYS in captured.tables:
        keys = " or ".join(", ".join(key) for key in details["deleted_keys"]["columns"])
        yield f"  deleted keys   {captured.tables[Role.DELETED_KEYS]} ({keys})"
    if not captured.is_full:
        yield f"  snapshots      {details['captured_snapshots']:,} captured" + _skipped(details)
        yield f"  up to          {place(captured.upto)}{MORE * bool(details.get('has_more'))}"
    yield f"  to read        {_amounts(details)}"
    if details["before"]:
        yield f"  and before     {_amounts(details['before'])}"
    yield from partition_lines(details["partitions"])
    for name, values in details["ranges"].items():
        yield f"  {name:<14} {_range(values)}"
    yield from exactness(details.get("inexact_because"), details.get("may_be_more"))
    if details["schema_changed"]:
        yield "  schema         changed inside the range; the change table has the newest"
    yield f"  history        {details['pin']}"


def exactness(inexact_because: str | None, may_be_more: str | None) -> Iterable[str]:
    if inexact_because:
        yield f"  {paint('NOT EXACT', 'red')}      {inexact_because}"
    if may_be_more:
        yield f"  may include    unchanged rows: {may_be_more}"


def _amounts(details: Mapping[str, Any]) -> str:
    # Captures of before their sizes were counted do not tell them.
    return f"{counted(details['files'], 'file')}, {counted(details['rows'], 'row')}, {size(details.get('bytes'))}"


def _skipped(details: Mapping[str, Any]) -> str:
    skipped = [snapshot for snapshot in details["snapshots"] if snapshot["treatment"] != "captured"]
    if not skipped:
        return ""
    said = "; ".join(f"{snapshot['id']} ({snapshot['treatment']})" for snapshot in skipped[:_MANY])
    return f", {len(skipped):,} skipped: {said}{' …' * (len(skipped) > _MANY)}"


def partition_lines(partitions: Sequence[Mapping[str, Any]] | None) -> Iterable[str]:
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
        skipped = (
            f"; {counted(len(increment.snapshots), 'snapshot')} without changed rows" if increment.snapshots else ""
        )
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
    return f"{said}{', its change tables are dropped' if capture.dropped_at else ''}."


def cleaned(made: CleanUp) -> str:
    lines = [f"Abandoned an expired capture: {each}" for each in made.abandoned]
    lines += [f"Kept an expired capture: {each}" for each in made.kept]
    lines += [f"Dropped the change tables of {each}" for each in made.dropped]
    lines += [f"Removed what an audit left in {each}" for each in made.scratch]
    lines += [f"Could not remove: {problem}" for problem in made.left_over]
    if made.runs:
        lines.append(f"Deleted {counted(made.runs, 'run')} that ended long ago.")
    if made.folders:
        lines.append(f"Removed the files of {counted(made.folders, 'run')}.")
    return "\n".join(lines) or "There is nothing to clean."


def captures(found: Sequence[Capture]) -> str:
    now = utc_now()
    rows = [
        (
            each.id,
            paint(each.state, _STATE_COLOURS.get(each.state)),
            each.consumer,
            ", ".join(str(captured.table) for captured in each.tables),
            when(each.created_at, now),
            each.created_by,
        )
        for each in found
    ]
    return table(("CAPTURE", "STATE", "CONSUMER", "TABLE", "CREATED", "BY"), rows, empty="There are no captures.")


# Checkpoints.


def marks(found: Sequence[CheckpointPosition]) -> str:
    rows = [(each.consumer, str(each.table), *_place_cells(each.position)) for each in found]
    empty = "There are no checkpoints. A consumer gets one with its first commit."
    return table(("CONSUMER", "TABLE", "SNAPSHOT", "COMMITTED"), rows, empty=empty)


def _place_cells(position: Position) -> tuple[str | None, str | None]:
    """A position's snapshot, and when it was committed."""
    if position.snapshot_id is None or position.timestamp_ms is None:
        return "the beginning", None
    return str(position.snapshot_id), moment(from_millis(position.timestamp_ms))


def mark(found: CheckpointPosition) -> str:
    position = found.position
    lines = {
        "consumer": found.consumer,
        "table": found.table,
        "table uuid": position.table_uuid,
        "branch": position.branch,
        "snapshot": position.snapshot_id or "before the first",
        "sequence": position.sequence_number,
        "committed": moment(from_millis(position.timestamp_ms) if position.timestamp_ms else None),
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
    rows = [
        (
            moment(each.moved_at, seconds=True),
            str(moved_table),
            *_place_cells(position),
            each.capture_id,
            each.moved_by,
            each.reason,
        )
        for each in found
        for moved_table, position in each.positions.items()
    ]
    headers = ("MOVED", "TABLE", "SNAPSHOT", "COMMITTED", "CAPTURE", "BY", "REASON")
    return table(headers, rows, empty="The checkpoint was never moved.")


def rebuilt(found: Rebuilt) -> str:
    lines = [f"{target}: {counted(count, 'snapshot')} written for captures" for target, count in found.targets.items()]
    for each in found.checkpoints:
        lines += _rebuilt(each, is_dry_run=found.is_dry_run)
    return "\n".join(lines if found.checkpoints else [*lines, "There is nothing to rebuild checkpoints from."])


def _rebuilt(each: RebuiltCheckpoint, *, is_dry_run: bool) -> Iterable[str]:
    from dalsegno.operations.results import Action  # noqa: PLC0415 - slow import

    whose = f"{each.consumer} on {each.table}"
    source = f"capture {each.capture_id}, the newest of {each.captures:,}, in {', '.join(map(str, each.targets))}"
    match each.action:
        case Action.SET:
            yield f"{whose}: {'would be' if is_dry_run else 'is'} set to {place(each.position)}"
        case Action.KEPT:
            yield f"{whose}: stays at {place(each.stored)}"
        case Action.REFUSED:
            yield f"{whose}: {paint('REFUSED', 'red')}"
    yield f"  from {source}"
    if each.action is Action.SET and each.captures == 1:
        yield "  It is the only capture known, so nothing shows whether its run wrote everything."
    if each.action is Action.SET and each.stored is not None:
        yield f"  it was at {place(each.stored)}"
    if each.refusal:
        yield f"  {each.refusal['message']}"
        if each.refusal["hint"]:
            yield paint(f"  → {each.refusal['hint']}", "dim")


# Catalogs.


def catalog_reports(found: Sequence[CatalogReport]) -> str:
    lines = []
    for report in found:
        lines.append(f"{report.catalog} ({report.type}): {'works' if report.works else 'does not work'}")
        lines += [f"  {_tried(each.works)}  {each.name:<11} {each.says}" for each in report.abilities]
    return "\n".join(lines)


def _tried(works: bool | None) -> str:
    if works is None:
        return "not tried"
    return paint(f"{'yes':<9}", "green") if works else paint(f"{'NO':<9}", "red")


def catalog_tables(found: Sequence[TableName]) -> str:
    return table(("TABLE",), [(str(each),) for each in found], empty="There are no tables.")
