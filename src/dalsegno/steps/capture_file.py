"""The file that tells a job which captures it processes, and how to mark what it writes for them; for any language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dalsegno.model.captures import Capture, CapturedTable, Role
from dalsegno.model.snapshots import Position
from dalsegno.steps.contract import Work
from dalsegno.steps.stamps import properties

CAPTURES_FILE = "captures.json"
#: What a capture found out about a source.
_DETAILS = (
    *("files", "rows", "bytes", "ranges", "partitions", "exact", "changes_view"),
    *("partition_filter", "new_partition_filter", "reopened_partition_filter"),
)


def captures_file(work: Work) -> dict[str, str]:
    """Nothing if the step comes after no capture."""
    if not work.captures:
        return {}
    told = {"stamp": properties(work), "captures": [_capture(capture) for capture in work.captures]}
    return {CAPTURES_FILE: json.dumps(told)}


def _capture(capture: Capture) -> dict[str, Any]:
    tables = [_table(captured) for captured in capture.tables]
    return {"id": capture.id, "consumer": capture.consumer, "tables": tables}


def _table(captured: CapturedTable) -> dict[str, Any]:
    found: Mapping[str, Any] = captured.details
    return {
        "source": str(captured.table),
        "source_uuid": captured.upto.table_uuid,
        "branch": captured.upto.branch,
        "after_snapshot": _id_text(captured.after),
        "upto_snapshot": _id_text(captured.upto),
        "is_first": captured.is_first,
        "is_full": captured.is_full,
        "changes": captured.manner.changes.value,
        "change_table": str(captured.change_table),
        "before_table": _name(captured, Role.BEFORE),
        "deleted_keys_table": _name(captured, Role.DELETED_KEYS),
        **{name: found.get(name) for name in _DETAILS},
    }


def _name(captured: CapturedTable, role: Role) -> str | None:
    return str(captured.tables[role]) if role in captured.tables else None


def _id_text(position: Position) -> str | None:
    """A text, because many readers of JSON keep 53 bits of a number."""
    return None if position.snapshot_id is None else str(position.snapshot_id)
