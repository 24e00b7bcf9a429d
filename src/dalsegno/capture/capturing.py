"""The straight path of a capture: range → record → pin → change table → ready.

Recording comes first: from then on the range is fixed, and whoever calls again, after a crash or at the same time,
resumes the same capture. Everything after it may be repeated.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dalsegno.capture import chosen_names, views
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.decisions import Decision, decide, load_checked
from dalsegno.capture.details import contents_of, describe, look_into, prefetch_before, refuse_unreadable
from dalsegno.capture.history_pins import pin
from dalsegno.capture.renames import follow_rename
from dalsegno.capture.settling import remove_change_tables
from dalsegno.errors import CapturePending, CaptureSettled, CheckpointMoved, HistoryLost
from dalsegno.iceberg import change_table, pins
from dalsegno.iceberg import views as view_files
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.partitions import Novelty
from dalsegno.model.capture_requests import CaptureRequest, DetailOptions, TableRequest
from dalsegno.model.captures import Capture, CapturedTable, CaptureState, Role
from dalsegno.model.snapshots import History
from dalsegno.model.starts import AfterSnapshot, Full
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment, has_changes_after, increment_between
from dalsegno.store.refusals import give_up, settle_first

_ATTEMPTS = 5
#: Letters and digits that look different from each other, and need no quotes in SQL.
_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_ID_LENGTH = 10


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


@dataclass(frozen=True)
class _Source:
    """A table as it is now, and what was decided about it before; None where an earlier call decided."""

    table: LoadedTable
    decision: Decision | None = None


def capture(context: CaptureContext, request: CaptureRequest) -> Captured | NothingNew:
    """The pending capture of these tables if there is one, or a new one, or nothing."""
    for attempt in range(_ATTEMPTS):
        pending = _pending(context, request)
        if pending is not None:
            loaded = load_checked(context, request)
            if request.target is not None:
                chosen_names.make_room(context, pending)
            sources = {table.name: _Source(table) for table in loaded}
            return Captured(_finish(context, pending, request.details, sources), is_resumed=True)
        decisions = decide(context, request)
        increments = [decision.increment for decision in decisions]
        try:
            for decision in decisions:
                if decision.checkpoint is not None:
                    follow_rename(context, request.consumer, decision.table.name, decision.checkpoint)
            if not any(increment.has_news for increment in increments):
                return _step_over(context, decisions)
            recorded = _record(context, request, decisions)
            sources = {decision.table.name: _Source(decision.table, decision) for decision in decisions}
            return Captured(_finish(context, recorded, request.details, sources), is_resumed=False)
        except (CheckpointMoved, CapturePending):
            # Somebody else captured or committed in between: look again, and continue from there.
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _pending(context: CaptureContext, request: CaptureRequest) -> Capture | None:
    for asked in request.tables:
        found = context.store.pending(request.consumer, asked.table)
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


def _answers(pending: Capture, request: CaptureRequest) -> bool:
    """Whether a pending capture is what was asked for: the same tables, branch and kind of start."""
    asked = {each.table: each for each in request.tables}
    return {captured.table for captured in pending.tables} == asked.keys() and all(
        request.target in (None, captured.change_table) and _is_asked_for(captured, asked[captured.table])
        for captured in pending.tables
    )


def _is_asked_for(captured: CapturedTable, asked: TableRequest) -> bool:
    start = None if asked.is_start_for_first and not captured.is_first else asked.start
    return (
        captured.upto.branch == asked.branch
        and captured.spec.asks_like(asked.spec)
        and (not isinstance(asked.end, AfterSnapshot) or captured.upto.snapshot_id == asked.end.snapshot_id)
        and (start is None or captured.is_full == isinstance(start, Full))
        and (start is None or captured.is_full or captured.is_first)
    )


def _step_over(context: CaptureContext, decisions: Sequence[Decision]) -> NothingNew:
    """Remember a chosen start, and move past snapshots that changed no row, so that they need not be kept."""
    consumer, increments = decisions[0].request.consumer, tuple(decision.increment for decision in decisions)
    moves = {
        increment.table: (None if increment.is_first else increment.after, increment.upto)
        for increment in increments
        if increment.is_first or increment.moved
    }
    if moves:
        context.store.move_checkpoint(
            consumer, moves, by=context.actor, now=context.clock(), reason="nothing to process up to here"
        )
    for decision in decisions:
        pin(context, decision.table, consumer, decision.increment.upto)
    return NothingNew(consumer, increments)


def _record(context: CaptureContext, request: CaptureRequest, decisions: Sequence[Decision]) -> Capture:
    now = context.clock()
    capture_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
    recorded = Capture(
        id=capture_id,
        consumer=request.consumer,
        state=CaptureState.PREPARING,
        created_at=now,
        created_by=context.actor,
        expires_at=now + context.settings.capture_lifetime,
        tables=tuple(
            _captured_table(context, decision, capture_id, number, request.target)
            for number, decision in enumerate(decisions)
        ),
    )
    if request.target is not None:
        chosen_names.make_room(context, recorded)
    context.store.record_capture(recorded)
    return recorded


def _captured_table(
    context: CaptureContext, decision: Decision, capture_id: str, number: int, target: TableName | None
) -> CapturedTable:
    table, increment = decision.table, decision.increment
    # The number keeps apart what becomes the same word, such as a_b.c and a.b_c.
    words = (*table.name.identifier, decision.request.consumer, capture_id, *([str(number)] if number else []))
    word = re.sub(r"[^a-z0-9_]", "_", "_".join(words).lower())
    namespace = context.settings.change_namespace
    folder = context.tables.catalog_of(table.name).changes_folder(namespace, table)
    return CapturedTable(
        table=table.name,
        after=increment.after,
        upto=increment.upto,
        is_first=increment.is_first,
        is_full=increment.is_full,
        change_table=target or TableName(table.name.catalog, tuple(namespace.split(".")), word),
        location=f"{folder}/{word}",
        spec=increment.spec,
    )


def _finish(
    context: CaptureContext, capture: Capture, options: DetailOptions, sources: Mapping[TableName, _Source]
) -> Capture:
    """Bring a recorded capture to where its change tables can be read, however far it came before."""
    if capture.state is CaptureState.READY and _all_there(context, capture):
        return replace(
            capture,
            tables=tuple(_renewed(context, capture, each, sources[each.table], options) for each in capture.tables),
        )
    details = {each.table: _publish(context, capture, each, sources[each.table], options) for each in capture.tables}
    try:
        return context.store.mark_ready(capture.id, details)
    except CaptureSettled:
        # It was settled while we worked, so nobody will drop what we have just registered but us.
        remove_change_tables(context.tables, capture)
        raise


def _all_there(context: CaptureContext, capture: Capture) -> bool:
    return all(
        _is_there(context.tables.catalog_of(captured.change_table), capture.id, captured) for captured in capture.tables
    )


def _is_there(catalog: Catalog, capture_id: str, captured: CapturedTable) -> bool:
    """Whether all that was made is there and unchanged."""
    if captured.is_view:
        return view_files.is_intact(catalog, captured.change_table, capture_id)
    expected = captured.changes_view if captured.details.get("changes_view") else None
    found = {role: change_table.find(catalog, name) for role, name in captured.tables.items()}
    are_intact = (
        table is not None and change_table.is_intact(table, capture_id, captured, role) for role, table in found.items()
    )
    return all(are_intact) and (expected is None or view_files.is_intact(catalog, expected, capture_id))


def _renewed(
    context: CaptureContext, capture: Capture, captured: CapturedTable, source: _Source, options: DetailOptions
) -> CapturedTable:
    """A table of a capture that is ready: its history pinned for longer, and what is newly asked for added."""
    source, _ = _pin(context, capture, captured, source)
    table = source.table
    line = table.history(captured.upto.branch)
    known = {**captured.details, "has_more": has_changes_after(line, captured.upto, captured.spec)}
    if set(options.range_columns) <= set(known["ranges"]) and (
        not options.partitions or _are_complete(known["partitions"])
    ):
        return replace(captured, details=known)
    catalog = context.tables.catalog_of(captured.change_table)
    history, increment = _recorded_increment(capture, captured, source)
    if captured.is_view:
        takes = contents_of(table, history, increment, context.settings.io_threads)[Role.AFTER].takes
    else:
        ends = [captured.tables[role] for role in captured.spec.ends]
        takes = tuple(take for name in ends for take in change_table.published_takes(catalog, name))
    looked = look_into(table, history, increment, [take for take in takes if take.manifest.is_data], options)
    return replace(captured, details={**known, **looked})


def _are_complete(partitions: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether the partitions were listed, and each is known to be new or re-opened."""
    return partitions is not None and all(each["novelty"] != Novelty.UNKNOWN for each in partitions)


def _pin(
    context: CaptureContext, capture: Capture, captured: CapturedTable, source: _Source
) -> tuple[_Source, pins.Pin]:
    """Hold the range; a whole table has none, but the consumer's old range is kept in case the capture is abandoned."""
    line = source.table.history(captured.upto.branch)
    in_line = any(snapshot.id == captured.after.snapshot_id for snapshot in line.ancestors(line.head))
    after = captured.upto if captured.is_full and not in_line else captured.after
    # A capture that compares both ends may come from another branch than the checkpoint's.
    table, held = pin(context, source.table, capture.consumer, replace(after, branch=captured.upto.branch))
    return replace(source, table=table), held


def _publish(
    context: CaptureContext, capture: Capture, captured: CapturedTable, source: _Source, options: DetailOptions
) -> dict[str, object]:
    catalog, threads = context.tables.catalog_of(captured.table), context.settings.io_threads
    source, held = _pin(context, capture, captured, source)
    table = source.table
    history, increment = _recorded_increment(capture, captured, source)
    if options.partitions is not False:
        prefetch_before(table.files, history, increment)
    contents = contents_of(table, history, increment, threads)
    if captured.is_view:
        views.refuse_view(catalog, table, history, increment)
        views.publish_range(catalog, capture, captured, table, increment, held)
        published = {Role.AFTER: contents[Role.AFTER]}
    else:
        published = {
            role: change_table.publish(catalog, table, capture, captured, role, contents[role], threads)
            for role in captured.tables
        }
    if not held.is_held:
        # Nothing kept the range from expiring while it was read, so look whether it is still all there.
        _recorded_increment(capture, captured, _Source(catalog.load(captured.table)))
    details = describe(table, history, increment, published, held, options)
    return details | views.publish_changes(catalog, capture, captured, table, details)


def _recorded_increment(capture: Capture, captured: CapturedTable, source: _Source) -> tuple[History, Increment]:
    """The range that was recorded, found again in the table as it is now."""
    table, decision = source.table, source.decision
    history = table.history(captured.upto.branch)
    if decision is not None and history is decision.history:
        return history, decision.increment
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
