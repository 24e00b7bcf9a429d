"""The views of a capture: one of the range itself, in the place of a change table, or one of the rows that changed.

A view of a range reads the source's own history. Of each name of a table that a statement reads, Spark keeps one set of
options (SPARK-58330): a range of ``t`` that is joined with ``t`` would silently become all of ``t``, or ``t`` would
become the range. So it is read by the name of the consumer's pin, ``t.branch_dalsegno_…``, by which nothing else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dalsegno.capture.queries import CHANGE_TYPE, query_of
from dalsegno.capture.tables import Tables
from dalsegno.errors import DalsegnoError, UnsupportedTable, UserError
from dalsegno.iceberg import pins, views
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.views import Column, View
from dalsegno.model.captures import Capture, CapturedTable, ChangeKind
from dalsegno.model.snapshots import History
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment
from dalsegno.store.refusals import give_up

_AS_A_TABLE = "Capture it as a change table, which is the default mode."


def refuse_view(catalog: Catalog, table: LoadedTable, history: History, increment: Increment) -> None:
    """Raise where a view could not be made, or would not show the rows as a change table does."""
    settings = catalog.settings
    if not catalog.has_views:
        raise UserError(
            f"Catalog {settings.name!r} ({settings.type}) has no views that dalsegno can write.", hint=_AS_A_TABLE
        )
    if not settings.pin:
        raise UserError(
            f"A view reads the history of {table.name} through the consumer's pin, and catalog {settings.name!r} is "
            "set to pin = false.",
            hint=_AS_A_TABLE,
        )
    shown = {
        column["id"]: column for column in views.columns_of(table.metadata, _schema_read(table, history, increment))
    }
    for column in views.columns_of(table.metadata, increment.upto.schema_id):
        found = shown.get(column["id"])
        if found is None or (found["name"], found["type"]) != (column["name"], column["type"]):
            raise UnsupportedTable(
                f"A view of {table.name} would be read with another schema than that of the end of the range: expected "
                f"{_said(column)}, found {_said(found)}.",
                hint=_AS_A_TABLE,
            )


def publish_range(
    catalog: Catalog,
    capture: Capture,
    captured: CapturedTable,
    table: LoadedTable,
    increment: Increment,
    pin: pins.Pin,
) -> None:
    """Make the view that stands in the place of the change table."""
    if not pin.is_held:
        raise UnsupportedTable(
            f"A view reads the history of {table.name} through the consumer's pin, but it is {pin.note}.",
            actions=[give_up(capture.id)],
        )
    columns = views.columns_of(table.metadata, captured.upto.schema_id)
    names = ", ".join(_quoted(column["name"]) for column in columns)
    sql = f"SELECT {names} FROM {_range(capture.consumer, table, increment)}"
    views.publish(catalog, capture, captured, View(captured.change_table, captured.location, sql, columns))


def publish_changes(
    catalog: Catalog, capture: Capture, captured: CapturedTable, table: LoadedTable, details: dict[str, Any]
) -> dict[str, str | None]:
    """Make the view of the changed rows, where there can be one: its name, or why there is none.

    ``dalsegno query`` prints the same query, so a capture does not fail without a view.
    """
    name = captured.changes_view
    if name is None:
        return {"changes_view": None, "no_changes_view_because": None}
    if not catalog.has_views:
        settings = catalog.settings
        return _without_view(f"catalog {settings.name!r} ({settings.type}) has no views that dalsegno can write")
    described = replace(captured, details=details)
    try:
        sql = query_of(described, "spark", lambda name: catalog.load(name).metadata_location)
        view = View(name, captured.views[name], sql, _changed_columns(captured, table))
        views.publish(catalog, capture, captured, view)
    except DalsegnoError as error:
        return _without_view(error.message)
    return {"changes_view": str(name), "no_changes_view_because": None}


def metadata_location(tables: Tables, captured: CapturedTable, name: TableName) -> str:
    """Where the metadata of a table of the capture is, for engines that read tables by it; a view has none for them."""
    if captured.is_view:
        raise UserError(f"The capture of {captured.table} is a view, which only Spark reads.", hint=_AS_A_TABLE)
    return tables.load(name).metadata_location


def _without_view(reason: str) -> dict[str, str | None]:
    return {"changes_view": None, "no_changes_view_because": reason}


def _changed_columns(captured: CapturedTable, table: LoadedTable) -> Sequence[Column]:
    """The columns that the query of the changed rows gives."""
    columns, spec = views.columns_of(table.metadata, captured.upto.schema_id), captured.spec
    if spec.changes is ChangeKind.KEYS:
        by_name = {column["name"]: column for column in columns}
        if missing := [key for key in spec.keys if key not in by_name]:
            raise UserError(f"{', '.join(missing)} is inside of another column")
        return [by_name[key] for key in spec.keys]
    if spec.needs_only_after:
        return columns
    return [*columns, views.text_column(CHANGE_TYPE, beside=columns)]


def _range(consumer: str, table: LoadedTable, increment: Increment) -> str:
    name = ".".join(map(_quoted, (table.name.catalog, *table.name.identifier)))
    if not increment.has_news:
        return f"{name} WHERE FALSE"
    if _is_a_state(increment):
        return f"{name} VERSION AS OF {increment.upto.snapshot_id}"
    pinned = _quoted(f"branch_{pins.branch_name(consumer)}")
    ends = f"'start-snapshot-id'='{increment.after.snapshot_id}', 'end-snapshot-id'='{increment.upto.snapshot_id}'"
    return f"{name}.{pinned} WITH ({ends})"


def _is_a_state(increment: Increment) -> bool:
    """Whether it is the whole table as of a snapshot: all that was ever appended, or the table on demand."""
    return increment.is_full or increment.after.snapshot_id is None


def _schema_read(table: LoadedTable, history: History, increment: Increment) -> int:
    """The schema that Spark reads it with: a state of the table has its own, a range has the table's current one."""
    upto = increment.upto.snapshot_id
    own = history.snapshots[upto].schema_id if upto is not None and increment.has_news else None
    return own if own is not None and _is_a_state(increment) else history.current_schema_id


def _said(column: Column | None) -> str:
    return "no such column" if column is None else f"column {column['name']!r} of type {column['type']}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
