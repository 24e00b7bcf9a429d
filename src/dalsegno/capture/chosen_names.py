"""A name that a user chose for a change table: each capture comes under it, one after the other.

In the store, a name belongs to one capture until its tables are dropped, so two captures never race for it. In the
catalog, anything may stand under it: what a settled capture left behind makes room, and nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dalsegno.errors import DataError, PlatformError, UnknownName, UserError
from dalsegno.iceberg import change_table, views
from dalsegno.model.captures import Capture, CapturedTable, CaptureState
from dalsegno.model.tables import TableName
from dalsegno.store.refusals import settle_first

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

#: It goes into SQL as it is.
_WORD = re.compile(r"[A-Za-z0-9_]+")


def check(target: TableName, sources: tuple[TableName, ...]) -> None:
    """Refuse a name that no change table of these sources can have."""
    if len(sources) != 1:
        raise UserError(f"One change table cannot be of {len(sources)} sources: {target} needs a single one.")
    [source] = sources
    if target == source:
        raise UserError(f"The change table of {source} cannot have its source's own name.", hint="Choose another name.")
    if target.catalog != source.catalog:
        raise UserError(
            f"A change table is in the catalog of its source: expected {source.catalog}, found {target.catalog} in "
            f"{target}."
        )
    if not all(_WORD.fullmatch(word) for word in target.identifier):
        raise UserError(f"{target} is no name for a change table: expected words of letters, digits and underscores.")


def make_room(lake: Lake, capture: Capture) -> None:
    """Free the names of a capture's tables from what settled captures left there; refuse if anything else has one."""
    for captured in capture.tables:
        holder = lake.store.holder(captured.change_table)
        if holder is not None and holder.id != capture.id:
            _drop(lake, captured.change_table, holder)
        for name, owner in _taken(lake, captured):
            if owner == capture.id:
                continue
            if owner is None or not _is_settled(lake, owner):
                what = "is no change table of this project" if owner is None else f"belongs to capture {owner}"
                raise DataError(
                    f"The change table of {captured.table} cannot be made: there is a table {name} already, which "
                    f"{what}. It was left as it is.",
                    hint="Choose another name, or rename or drop that table.",
                )
            _forget(lake, name, owner)


def _drop(lake: Lake, name: TableName, holder: Capture) -> None:
    if holder.state.is_pending:
        raise UserError(
            f"The change table {name} belongs to capture {holder.id} of {holder.consumer}, by {holder.created_by}, "
            "which is not processed yet.",
            actions=settle_first(holder.id),
        )
    if holder.state is not CaptureState.COMMITTED:
        lake.drop(holder.id)
    elif problems := lake.tidy_up(holder.id):
        raise PlatformError(f"The old change table could not be dropped: {'; '.join(problems)}.")


def _taken(lake: Lake, captured: CapturedTable) -> Iterator[tuple[TableName, str | None]]:
    """Those of the names under which there is something, and the capture that each is of."""
    catalog = lake.catalog(captured.change_table.catalog)
    for name in {*captured.tables.values(), *captured.views}:
        if (table := change_table.find(catalog, name)) is not None:
            yield name, change_table.capture_of(table)
        elif catalog.has_views and (view := catalog.view_metadata(name)) is not None:
            yield name, view["properties"].get(change_table.CAPTURE_ID)


def _is_settled(lake: Lake, capture_id: str) -> bool:
    try:
        return not lake.store.capture(capture_id).state.is_pending
    except UnknownName:
        return False


def _forget(lake: Lake, name: TableName, owner: str) -> None:
    catalog = lake.catalog(name.catalog)
    change_table.forget(catalog, name, owner)
    views.forget(catalog, name, owner)
