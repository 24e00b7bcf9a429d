"""The straight path of a capture: range → record → pin → change table → ready.

Recording comes first: from then on the range is fixed, and whoever calls again, after a crash or at the same time,
goes on with the same capture. Everything after it may be repeated.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalsegno.capture import chosen_names, renames, views
from dalsegno.capture.details import DetailOptions, check_columns, contents_of, describe, look_into, refuse_unreadable
from dalsegno.clock import to_millis
from dalsegno.errors import CapturePending, CaptureSettled, CheckpointMoved, HistoryLost
from dalsegno.iceberg import change_table, pins
from dalsegno.iceberg import views as view_files
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.history import history_of
from dalsegno.iceberg.manifests import adds_everything
from dalsegno.iceberg.partitions import Novelty
from dalsegno.model.captures import Capture, CapturedTable, CaptureSpec, CaptureState, Mode, Role
from dalsegno.model.snapshots import History
from dalsegno.model.starts import AfterSnapshot, Bound, Earliest, Full, Since, Start
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment, goes_on, increment_between, next_increment, unproven_beginning
from dalsegno.settings import CatalogSettings, CatalogType
from dalsegno.store.refusals import give_up, settle_first

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

_ATTEMPTS = 5
#: Letters and digits that can be told apart, and that need no quotes in SQL.
_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_ID_LENGTH = 10


@dataclass(frozen=True)
class Request:
    """Which tables to capture, for whom, and from where if it is the first time."""

    tables: tuple[TableName, ...]
    consumer: str
    branch: str
    start: Start | None
    end: AfterSnapshot | Since | None
    bound: Bound
    spec: CaptureSpec
    options: DetailOptions
    #: What the change table is to be called, if that is not left to us.
    target: TableName | None = None
    #: The key columns of tables that have others than the spec says.
    keys: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)

    def spec_for(self, table: TableName) -> CaptureSpec:
        return replace(self.spec, keys=self.keys[table]) if table in self.keys else self.spec


@dataclass(frozen=True)
class NothingNew:
    """There is nothing to process; the increments say what was looked at."""

    consumer: str
    increments: tuple[Increment, ...]


@dataclass(frozen=True)
class Captured:
    """A capture whose change tables can be read."""

    capture: Capture
    #: Whether it was made by an earlier call that was neither committed nor abandoned.
    is_resumed: bool


def capture(lake: Lake, request: Request) -> Captured | NothingNew:
    """The pending capture of these tables if there is one, or a new one, or nothing."""
    for attempt in range(_ATTEMPTS):
        pending = _pending(lake, request)
        if pending is not None:
            check_columns([lake.load(table) for table in request.tables], request.options, request.spec_for)
            if request.target is not None:
                chosen_names.make_room(lake, pending)
            return Captured(_finish(lake, pending, request.options), is_resumed=True)
        loaded, increments = _increments(lake, request)
        try:
            if not any(increment.has_news for increment in increments):
                return _step_over(lake, request, loaded, increments)
            recorded = _record(lake, request, loaded, increments)
            return Captured(_finish(lake, recorded, request.options, loaded), is_resumed=False)
        except (CheckpointMoved, CapturePending):
            # Somebody else captured or committed in between: look again, and go on from there.
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _pending(lake: Lake, request: Request) -> Capture | None:
    for table in request.tables:
        found = lake.store.pending(request.consumer, table)
        if found is None:
            continue
        if not _answers(found, request):
            tables = ", ".join(str(captured.table) for captured in found.tables)
            raise CapturePending(
                f"Consumer {request.consumer!r} has another capture pending, {found.id} of {tables} up to "
                f"{found.tables[0].upto}, by {found.created_by}; a consumer has one at a time.",
                capture_id=found.id,
                actions=settle_first(found.id),
            )
        return found
    return None


def _answers(pending: Capture, request: Request) -> bool:
    """Whether a pending capture is what was asked for: the same tables, branch and kind of start."""
    return {captured.table for captured in pending.tables} == set(request.tables) and all(
        captured.upto.branch == request.branch
        and captured.spec.asks_like(request.spec_for(captured.table))
        and request.target in (None, captured.change_table)
        and (not isinstance(request.end, AfterSnapshot) or captured.upto.snapshot_id == request.end.snapshot_id)
        and (request.start is None or captured.is_full == isinstance(request.start, Full))
        and (request.start is None or captured.is_full or captured.is_first)
        for captured in pending.tables
    )


def _increments(lake: Lake, request: Request) -> tuple[list[LoadedTable], tuple[Increment, ...]]:
    # One moment for all tables, taken before the first is loaded: each then has all it held at that moment.
    end = request.end or (Since(to_millis(lake.clock())) if len(request.tables) > 1 else None)
    loaded = [lake.load(table) for table in request.tables]
    check_columns(loaded, request.options, request.spec_for)
    increments = []
    for table in loaded:
        history = history_of(table.metadata, request.branch, table=table.name)
        start = request.start or start_of_abandoned(lake, request.consumer, table)
        checkpoint = renames.followed(lake, request.consumer, table, is_start_chosen=start is not None)
        increment = next_increment(
            table.name,
            request.consumer,
            history,
            checkpoint,
            start=start,
            end=end,
            bound=request.bound,
            spec=request.spec_for(table.name),
        )
        if increment.root is not None and not adds_everything(table.files, increment.root):
            raise unproven_beginning(table.name, request.consumer, increment.root)
        refuse_unreadable(table, history, increment, request.consumer)
        if increment.spec.mode is Mode.VIEW:
            views.refuse_view(lake.catalog(table.name.catalog), table, history, increment)
        increments.append(increment)
    return loaded, tuple(increments)


def start_of_abandoned(lake: Lake, consumer: str, table: LoadedTable) -> Start | None:
    """Where a first capture that was given up began: its range is taken again, unless another start is chosen."""
    uuid = table.metadata["table-uuid"]
    if lake.store.position(consumer, table.name) is not None or lake.store.last_position(consumer, uuid) is not None:
        return None
    for earlier in lake.store.captures(consumer):
        for captured in earlier.tables:
            is_meant = captured.table == table.name or captured.upto.table_uuid == uuid
            if is_meant and captured.is_first and earlier.state is CaptureState.ABANDONED:
                after = captured.after.snapshot_id
                return Full() if captured.is_full else Earliest() if after is None else AfterSnapshot(after)
    return None


def _step_over(
    lake: Lake, request: Request, loaded: Sequence[LoadedTable], increments: Sequence[Increment]
) -> NothingNew:
    """Remember a chosen start, and move past snapshots that changed no row, so that they need not be kept."""
    moves = {
        increment.table: (None if increment.is_first else increment.after, increment.upto)
        for increment in increments
        if increment.is_first or increment.moved
    }
    if moves:
        lake.store.move_checkpoint(
            request.consumer, moves, by=lake.actor, now=lake.clock(), reason="nothing to process up to here"
        )
    for table, increment in zip(loaded, increments, strict=True):
        lake.pin(table, request.consumer, increment.upto)
    return NothingNew(request.consumer, tuple(increments))


def _record(lake: Lake, request: Request, loaded: Sequence[LoadedTable], increments: Sequence[Increment]) -> Capture:
    now = lake.clock()
    capture_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
    recorded = Capture(
        id=capture_id,
        consumer=request.consumer,
        state=CaptureState.PREPARING,
        created_at=now,
        created_by=lake.actor,
        expires_at=now + lake.settings.capture_lifetime,
        tables=tuple(
            _captured_table(lake, request, capture_id, number, table, increment)
            for number, (table, increment) in enumerate(zip(loaded, increments, strict=True))
        ),
    )
    if request.target is not None:
        chosen_names.make_room(lake, recorded)
    lake.store.record_capture(recorded)
    return recorded


def _captured_table(
    lake: Lake, request: Request, capture_id: str, number: int, table: LoadedTable, increment: Increment
) -> CapturedTable:
    # The number keeps apart what becomes the same word, such as a_b.c and a.b_c.
    words = (*table.name.identifier, request.consumer, capture_id, *([str(number)] if number else []))
    word = re.sub(r"[^a-z0-9_]", "_", "_".join(words).lower())
    namespace = lake.settings.change_namespace
    change_table_name = TableName(table.name.catalog, tuple(namespace.split(".")), word)
    folder = changes_folder(lake.settings.catalog(table.name.catalog), namespace, table)
    return CapturedTable(
        table=table.name,
        after=increment.after,
        upto=increment.upto,
        is_first=increment.is_first,
        is_full=increment.is_full,
        change_table=request.target or change_table_name,
        location=f"{folder}/{word}",
        spec=increment.spec,
    )


def changes_folder(catalog: CatalogSettings, namespace: str, table: LoadedTable) -> str:
    """A folder that is no table's: maintenance of a table deletes what it does not know below its own."""
    if catalog.changes_location:
        return catalog.changes_location.rstrip("/")
    if catalog.warehouse and catalog.type in (CatalogType.SQL, CatalogType.HIVE):
        return f"{catalog.warehouse.rstrip('/')}/{namespace}"
    return f"{str(table.metadata['location']).rstrip('/').rpartition('/')[0]}/{namespace}"


def _finish(lake: Lake, capture: Capture, options: DetailOptions, loaded: Sequence[LoadedTable] = ()) -> Capture:
    """Bring a recorded capture to where its change tables can be read, however far it came before.

    ``loaded`` are its tables as they were just now; without them they are loaded.
    """
    if capture.state is CaptureState.READY and _all_there(lake, capture):
        return replace(capture, tables=tuple(_renewed(lake, capture, captured, options) for captured in capture.tables))
    tables = {table.name: table for table in loaded or [lake.load(captured.table) for captured in capture.tables]}
    details = {c.table: _publish(lake, capture, c, tables[c.table], options) for c in capture.tables}
    try:
        return lake.store.mark_ready(capture.id, details)
    except CaptureSettled:
        # It was settled while we worked, so nobody will drop what we have just registered but us.
        lake.remove_change_tables(capture)
        raise


def _all_there(lake: Lake, capture: Capture) -> bool:
    return all(
        _is_there(lake.catalog(captured.change_table.catalog), capture.id, captured) for captured in capture.tables
    )


def _is_there(catalog: Catalog, capture_id: str, captured: CapturedTable) -> bool:
    """Whether all that was made is there, and is as it was made."""
    if captured.is_view:
        return view_files.is_intact(catalog, captured.change_table, capture_id)
    expected = captured.changes_view if captured.details.get("changes_view") else None
    found = {role: change_table.find(catalog, name) for role, name in captured.tables.items()}
    are_intact = (
        table is not None and change_table.is_intact(table, capture_id, captured, role) for role, table in found.items()
    )
    return all(are_intact) and (expected is None or view_files.is_intact(catalog, expected, capture_id))


def _renewed(lake: Lake, capture: Capture, captured: CapturedTable, options: DetailOptions) -> CapturedTable:
    """A table of a capture that is ready: its history pinned for longer, and what is newly asked for added."""
    table, _ = _pin(lake, capture, captured, lake.load(captured.table))
    line = history_of(table.metadata, captured.upto.branch, table=table.name)
    known = {**captured.details, "has_more": goes_on(line, captured.upto, captured.spec)}
    if set(options.range_columns) <= set(known["ranges"]) and (
        not options.partitions or _are_told(known["partitions"])
    ):
        return replace(captured, details=known)
    catalog = lake.catalog(captured.change_table.catalog)
    history, increment = _recorded_increment(capture, captured, table)
    if captured.is_view:
        takes = contents_of(table, history, increment, lake.settings.io_threads)[Role.AFTER].takes
    else:
        ends = [captured.tables[role] for role in captured.spec.ends]
        takes = tuple(take for name in ends for take in change_table.published_takes(catalog, name))
    looked = look_into(table, history, increment, [take for take in takes if take.manifest.is_data], options)
    return replace(captured, details={**known, **looked})


def _are_told(partitions: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether the partitions were listed, and new ones told from re-opened ones as well as can be."""
    return partitions is not None and all(each["novelty"] != Novelty.UNKNOWN for each in partitions)


def _pin(lake: Lake, capture: Capture, captured: CapturedTable, table: LoadedTable) -> tuple[LoadedTable, pins.Pin]:
    """Hold the range; a whole table has none, but the consumer's old range is kept in case it is given up."""
    line = history_of(table.metadata, captured.upto.branch, table=table.name)
    in_line = any(snapshot.id == captured.after.snapshot_id for snapshot in line.ancestors(line.head))
    after = captured.upto if captured.is_full and not in_line else captured.after
    # A capture that compares both ends may come from another branch than the checkpoint's.
    return lake.pin(table, capture.consumer, replace(after, branch=captured.upto.branch))


def _publish(
    lake: Lake, capture: Capture, captured: CapturedTable, table: LoadedTable, options: DetailOptions
) -> dict[str, object]:
    catalog = lake.catalog(captured.table.catalog)
    table, pin = _pin(lake, capture, captured, table)
    history, increment = _recorded_increment(capture, captured, table)
    contents = contents_of(table, history, increment, lake.settings.io_threads)
    if captured.is_view:
        views.refuse_view(catalog, table, history, increment)
        views.publish_range(catalog, capture, captured, table, increment, pin)
        published = {Role.AFTER: contents[Role.AFTER]}
    else:
        threads = lake.settings.io_threads
        published = {
            role: change_table.publish(catalog, table, capture, captured, role, contents[role], threads)
            for role in captured.tables
        }
    if not pin.is_held:
        # Nothing kept the range from expiring while it was read, so look whether it is still all there.
        _recorded_increment(capture, captured, catalog.load(captured.table))
    details = describe(table, history, increment, published, pin, options)
    return details | views.publish_changes(catalog, capture, captured, table, details)


def _recorded_increment(capture: Capture, captured: CapturedTable, table: LoadedTable) -> tuple[History, Increment]:
    """The range that was recorded, found again in the table as it is now."""
    history = history_of(table.metadata, captured.upto.branch, table=table.name)
    upto = history.snapshots.get(captured.upto.snapshot_id) if captured.upto.snapshot_id is not None else None
    if history.table_uuid != captured.upto.table_uuid or (upto is None and captured.upto.snapshot_id is not None):
        raise _lost(capture, captured, str(captured.upto))
    if captured.is_full:
        return history, Increment(
            captured.table, captured.after, captured.upto, (), captured.is_first, is_full=True, spec=captured.spec
        )
    increment = increment_between(
        captured.table,
        capture.consumer,
        history,
        captured.after,
        upto,
        is_first=captured.is_first,
        spec=captured.spec,
    )
    if captured.spec.has_deleted_keys and not increment.spec.has_deleted_keys:
        raise _lost(capture, captured, "all snapshots")
    refuse_unreadable(table, history, increment, capture.consumer)
    return history, increment


def _lost(capture: Capture, captured: CapturedTable, what: str) -> HistoryLost:
    return HistoryLost(
        f"{captured.table} no longer has {what} of capture {capture.id}: expired or replaced since.",
        actions=[give_up(capture.id)],
    )
