"""A persisted view: one metadata file of Iceberg's view format, and one entry of the catalog.

A view reads tables by their names whenever it is read, so it holds the names of columns and their types, and nothing of
the data. Its SQL is Spark's.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.errors import DataError
from dalsegno.iceberg.catalogs import Catalog
from dalsegno.iceberg.change_table import CAPTURE_ID, PROPERTY_PREFIX
from dalsegno.iceberg.history import RawMetadata
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.tables import TableName

log = logging.getLogger(__name__)

_ATTEMPTS = 5
_DIALECT = "spark"
#: How the files end that a catalog's own server or library writes for a view.
_WRITTEN_BY_SERVERS = (".metadata.json", ".metadata.json.crc")

#: A column as metadata files have it.
Column = Mapping[str, Any]


@dataclass(frozen=True)
class View:
    """What a view is made of."""

    name: TableName
    #: The folder that the view has for itself.
    folder: str
    sql: str
    columns: Sequence[Column]


def columns_of(source: RawMetadata, schema_id: int) -> Sequence[Column]:
    """The columns of one of a table's schemas; as metadata has them, so that no type is unknown."""
    schemas = source.get("schemas") or [source["schema"]]
    columns: Sequence[Column] = next(s for s in schemas if s.get("schema-id", 0) == schema_id)["fields"]
    return columns


def text_column(name: str, beside: Sequence[Column]) -> Column:
    """One column more."""
    return {"id": max((column["id"] for column in beside), default=0) + 1, "name": name, "type": "string"}


def publish(catalog: Catalog, capture: Capture, captured: CapturedTable, view: View) -> None:
    """Create the view, or find it as an attempt before has made it."""
    metadata = _metadata(capture, captured, view)
    location = f"{view.folder}/metadata/{capture.id}-{uuid.uuid4().hex[:12]}.metadata.json"
    for _ in range(_ATTEMPTS):
        if catalog.create_view(view.name, metadata, location):
            return
        found = catalog.view_metadata(view.name)
        if found is None or found["properties"].get(CAPTURE_ID) != capture.id:
            raise DataError(
                f"There is a {'table' if found is None else 'view'} {view.name} that is not of this capture.",
                hint="Rename or drop it, then run the capture again.",
            )
        if _is_first_version(found):
            return
        log.warning("%s was replaced by somebody else, so it is made anew", view.name)
        catalog.forget_view(view.name)


def is_intact(catalog: Catalog, name: TableName, capture_id: str) -> bool:
    """Whether there is a view of this capture, as it was made: nobody has replaced it."""
    found = catalog.view_metadata(name) if catalog.has_views else None
    return found is not None and found["properties"].get(CAPTURE_ID) == capture_id and _is_first_version(found)


def _is_first_version(metadata: RawMetadata) -> bool:
    return bool(metadata["current-version-id"] == 1 and len(metadata["versions"]) == 1)


def remove(catalog: Catalog, capture_id: str, captured: CapturedTable) -> None:
    """Drop the views of a captured table, then delete the metadata files in their own folders."""
    if not catalog.has_views:
        return
    for name, folder in captured.views.items():
        forget(catalog, name, capture_id)
        files = catalog.files_of(name, folder)
        names = {location: location.rpartition("/")[2] for location in files.list(folder)}
        ours = (
            location
            for location, file_name in names.items()
            if file_name.startswith(f"{capture_id}-") or file_name.endswith(_WRITTEN_BY_SERVERS)
        )
        files.delete(*ours)
        files.remove_empty_folder(folder)


def forget(catalog: Catalog, name: TableName, capture_id: str) -> None:
    """Drop the catalog's entry of a capture's view, unless the name has passed to another view."""
    if not catalog.has_views:
        return
    found = catalog.view_metadata(name)
    if found is not None and found["properties"].get(CAPTURE_ID) == capture_id:
        catalog.forget_view(name)


def _metadata(capture: Capture, captured: CapturedTable, view: View) -> dict[str, Any]:
    created_ms = to_millis(capture.created_at)
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": created_ms,
        "summary": {"engine-name": "dalsegno"},
        "default-catalog": view.name.catalog,
        "default-namespace": list(view.name.namespace),
        "representations": [{"type": "sql", "sql": view.sql, "dialect": _DIALECT}],
    }
    said = {
        "capture-id": capture.id,
        "consumer": capture.consumer,
        "source-table": captured.table,
        "expires-at-ms": to_millis(capture.expires_at),
    }
    return {
        # The same for every attempt.
        "view-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"dalsegno:{capture.id}:{view.name}")),
        "format-version": 1,
        "location": view.folder,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{**column, "required": False} for column in view.columns]}
        ],
        "current-version-id": 1,
        "versions": [version],
        "version-log": [{"timestamp-ms": created_ms, "version-id": 1}],
        "properties": {f"{PROPERTY_PREFIX}{key}": str(value) for key, value in said.items()},
    }
