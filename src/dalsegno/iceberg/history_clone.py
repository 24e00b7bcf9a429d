"""A clone of a table with its history, as metadata: the snapshots of its main branch, none of them copied.

Whoever writes to the clone adds files of the clone's own. What it borrows, it must never delete: ``gc.enabled`` is
false, the log of metadata files starts empty, and no property leads to a folder of the original.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN
from dalsegno.model.snapshots import Snapshot

#: Properties that say how rows are written, and not where.
_KEPT_PROPERTIES = (
    "schema.name-mapping.default",
    "write.delete.mode",
    "write.distribution-mode",
    "write.format.default",
    "write.merge.mode",
    "write.parquet.compression-codec",
    "write.update.mode",
)


def metadata_of(table: LoadedTable, at: Snapshot | None, location: str, now: datetime) -> dict[str, Any]:
    """The metadata of a clone that stands at a snapshot of the main branch, and knows those before and after it."""
    source, history = table.metadata, table.history(MAIN)
    line = {snapshot.id for snapshot in history.ancestors(history.head)}
    written = source.get("properties", {})
    millis = to_millis(now)
    # An append-only reader of the log must find it sorted, whatever clocks the writers had.
    moved = [] if at is None else [{"snapshot-id": at.id, "timestamp-ms": millis}]
    return dict(source) | {
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-updated-ms": millis,
        "properties": {name: written[name] for name in _KEPT_PROPERTIES if name in written} | {"gc.enabled": "false"},
        "current-snapshot-id": -1 if at is None else at.id,
        "snapshots": [raw for raw in source.get("snapshots", ()) if raw["snapshot-id"] in line],
        "snapshot-log": moved,
        "metadata-log": [],
        "refs": {} if at is None else {MAIN: {"snapshot-id": at.id, "type": "branch"}},
        "statistics": [],
        "partition-statistics": [],
    }
