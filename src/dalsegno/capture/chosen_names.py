"""A name that a user chose for a change table: each capture comes under it, one after the other.

In the store, a name belongs to one capture until its tables are dropped, so two captures never race for it. In the
catalog, anything may stand under it: what a settled capture left behind makes room, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.settling import drop, tidy_up
from dalsegno.errors import DataError, PlatformError, UnknownName, UserError
from dalsegno.iceberg import change_table, views
from dalsegno.model.captures import Capture, CapturedTable, CaptureState
from dalsegno.model.tables import TableName
from dalsegno.store.refusals import settle_first


def make_room(context: CaptureContext, capture: Capture) -> None:
    """Free the names of a capture's tables from what settled captures left there; refuse if anything else has one."""
    for captured in capture.tables:
        holder = context.store.holder(captured.change_table)
        if holder is not None and holder.id != capture.id:
            _drop(context, captured.change_table, holder)
        for name, owner in _taken(context, captured):
            if owner == capture.id:
                continue
            if owner is None or not _is_settled(context, owner):
                what = "is not a change table of this project" if owner is None else f"belongs to capture {owner}"
                raise DataError(
                    f"The change table of {captured.table} cannot be made: there is a table {name} already, which "
                    f"{what}. It was left as it is.",
                    hint="Choose another name, or rename or drop that table.",
                )
            _forget(context, name, owner)


def _drop(context: CaptureContext, name: TableName, holder: Capture) -> None:
    if holder.state.is_pending:
        raise UserError(
            f"The change table {name} belongs to capture {holder.id} of {holder.consumer}, by {holder.created_by}, "
            "which is not processed yet.",
            actions=settle_first(holder.id),
        )
    if holder.state is not CaptureState.COMMITTED:
        drop(context, holder.id)
    elif problems := tidy_up(context, holder, release=True):
        raise PlatformError(f"The old change table could not be dropped: {'; '.join(problems)}.")


def _taken(context: CaptureContext, captured: CapturedTable) -> Iterator[tuple[TableName, str | None]]:
    """Those of the names under which there is something, and the capture that each is of."""
    catalog = context.tables.catalog_of(captured.change_table)
    for name in {*captured.tables.values(), *captured.views}:
        if (table := change_table.find(catalog, name)) is not None:
            yield name, change_table.capture_of(table)
        elif catalog.has_views and (view := catalog.view_metadata(name)) is not None:
            yield name, view["properties"].get(change_table.CAPTURE_ID)


def _is_settled(context: CaptureContext, capture_id: str) -> bool:
    try:
        return not context.store.capture(capture_id).state.is_pending
    except UnknownName:
        return False


def _forget(context: CaptureContext, name: TableName, owner: str) -> None:
    catalog = context.tables.catalog_of(name)
    change_table.forget(catalog, name, owner)
    views.forget(catalog, name, owner)
