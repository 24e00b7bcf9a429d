"""How captures end: committed or abandoned, then removed; what could not be removed is left for ``clean``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.history_pins import pin_checkpoint
from dalsegno.capture.scratch import remove_left_over
from dalsegno.capture.tables import Tables
from dalsegno.errors import CapturePending, CaptureSettled, DalsegnoError, DataError, UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg import change_table, views
from dalsegno.model.captures import Capture, CaptureState, Checkpoint
from dalsegno.model.tables import TableName
from dalsegno.store.refusals import settle_first


@dataclass(frozen=True)
class Committed:
    """What a commit did."""

    checkpoint: Checkpoint
    #: False where the capture had been committed before.
    is_new: bool
    #: What is left for ``clean`` to do, and why; the commit itself is done.
    left_over: tuple[str, ...]


@dataclass(frozen=True)
class Cleaned:
    """What a clean-up did."""

    abandoned: tuple[str, ...]
    dropped: tuple[str, ...]
    #: The namespaces of clones that an audit left behind.
    scratch: tuple[str, ...]
    #: What could not be removed, and why.
    left_over: tuple[str, ...]
    #: Expired captures behind which work was begun, and by whom.
    kept: tuple[str, ...] = ()


def commit(context: CaptureContext, capture_ids: Sequence[str]) -> Committed:
    """Move the checkpoint past captures that were consumed together, then drop their change tables."""
    captures = [context.store.capture(each) for each in capture_ids]
    for each in captures:
        refuse_foreign_rows(context.tables, each)
    done = context.store.commit(*(each.id for each in captures), by=context.actor, now=context.clock())
    problems = [problem for each in captures for problem in tidy_up(context, each, release=True)]
    return Committed(done.checkpoint, done.is_new, tuple(problems))


def refuse_foreign_rows(tables: Tables, capture: Capture) -> None:
    """Raise if somebody else wrote to a change table: a job that reads it does not read what was captured."""
    if capture.state is not CaptureState.READY:
        return
    for captured in capture.tables:
        for role, name in () if captured.is_view else captured.tables.items():
            table = None
            # A table that is gone, or cannot be loaded, says nothing against what was processed.
            with suppress(DalsegnoError):
                table = change_table.find(tables.catalog_of(name), name)
            if table is not None and change_table.has_other_rows(table, capture.id, captured, role):
                raise DataError(
                    f"Somebody else wrote to {name} since capture {capture.id} made it, so it does not hold what "
                    "was captured. The checkpoint was not moved.",
                    hint="Undo what was written from it, if anything was, then run it again: the next capture creates "
                    "the table again.",
                    actions=[action("To undo it", Verb.UNDO, capture=capture.id)],
                )


def abandon(context: CaptureContext, capture_id: str, reason: str) -> Capture:
    """Give a capture up: the next capture covers the same range."""
    capture = context.store.capture(capture_id)
    abandoned = context.store.abandon(capture.id, by=context.actor, now=context.clock(), reason=reason)
    tidy_up(context, abandoned, release=False)
    return context.store.capture(capture.id)


def drop(context: CaptureContext, capture_id: str) -> Capture:
    """Remove the change tables of a capture that is committed or abandoned."""
    capture = context.store.capture(capture_id)
    if capture.state.is_pending:
        raise UserError(
            f"Capture {capture.id} of {capture.consumer!r} is {capture.state}: its change table is still needed.",
            actions=settle_first(capture.id),
        )
    remove_change_tables(context.tables, capture)
    return context.store.mark_dropped(capture.id, context.clock())


def remove_change_tables(tables: Tables, capture: Capture) -> None:
    """Drop the change tables and delete the files that the capture wrote; borrowed files stay."""
    for captured in capture.tables:
        catalog = tables.catalog_of(captured.change_table)
        views.remove(catalog, capture.id, captured)
        change_table.remove(catalog, capture.id, captured)


def tidy_up(context: CaptureContext, capture: Capture, *, release: bool) -> tuple[str, ...]:
    """Remove what a settled capture no longer needs, and with ``release`` shorten its pin; what failed, and why."""
    problems = []
    for captured in capture.tables:
        try:
            catalog = context.tables.catalog_of(captured.change_table)
            views.remove(catalog, capture.id, captured)
            change_table.remove(catalog, capture.id, captured)
            if release:
                pin_checkpoint(context, captured.table, capture.consumer)
        except UnknownName as error:
            # The source itself is gone, and its pin with it.
            if context.tables.catalog_of(captured.change_table).has(captured.change_table):
                problems.append(f"{captured.change_table}: {error.message}")
        except (DalsegnoError, OSError) as error:
            problems.append(f"{captured.change_table}: {error}")
    if not problems:
        context.store.mark_dropped(capture.id, context.clock())
    return tuple(problems)


def clean(context: CaptureContext) -> Cleaned:
    """Abandon expired captures, and remove what settled captures left behind."""
    abandoned, kept = _abandon_expired(context)
    dropped: list[str] = []
    left_over: list[str] = []
    every = context.store.captures()
    settled = [capture for capture in every if not capture.state.is_pending]
    # A name that a user chose passes from capture to capture.
    in_use = {name for capture in every if capture.state.is_pending for name in _names_of(capture)}
    registered = _registered(context.tables, settled) - in_use
    for capture in settled:
        if capture.dropped_at and registered.isdisjoint(_names_of(capture)):
            continue
        problems = tidy_up(context, capture, release=capture.state is CaptureState.COMMITTED)
        left_over.extend(problems)
        if not problems:
            dropped.append(capture.id)
    scratch, remaining = remove_left_over(context)
    _delete_markers(context.tables, every)
    return Cleaned(tuple(abandoned), tuple(dropped), tuple(scratch), (*left_over, *remaining), tuple(kept))


def _abandon_expired(context: CaptureContext) -> tuple[list[str], list[str]]:
    """The captures that were abandoned, and those that are kept because somebody works with them."""
    now = context.clock()
    abandoned: list[str] = []
    kept: list[str] = []
    for capture in context.store.captures(pending_only=True):
        if capture.expires_at > now:
            continue
        if why := context.store.is_worked_on(capture.id):
            kept.append(f"{capture.id}: {why}")
            continue
        with suppress(CaptureSettled, CapturePending):
            context.store.abandon(capture.id, by=context.actor, now=now, reason="its time was over")
            abandoned.append(capture.id)
    return abandoned, kept


def _registered(tables: Tables, captures: Sequence[Capture]) -> set[TableName]:
    """All that is beside the captures' change tables: a late process may have made one that should be gone."""
    places = {(c.change_table.catalog, c.change_table.namespace) for item in captures for c in item.tables}
    found: set[TableName] = set()
    for name, namespace in places:
        catalog = tables.catalog(name)
        found.update(catalog.tables(namespace), catalog.views(namespace))
    return found


def _delete_markers(tables: Tables, captures: Sequence[Capture]) -> None:
    """Delete what stands for folders of change tables in object stores, which an earlier writer left behind."""
    places = {(c.change_table.catalog, c.location.rpartition("/")[0]) for item in captures for c in item.tables}
    for catalog, folder in places:
        # A catalog or a store that is down must not keep the others from being cleaned.
        with suppress(DalsegnoError, OSError):
            tables.catalog(catalog).files_at(folder).delete_markers(folder)


def _names_of(capture: Capture) -> set[TableName]:
    """Every name under which the capture may have something in a catalog."""
    return {name for captured in capture.tables for name in (*captured.tables.values(), *captured.views)}
