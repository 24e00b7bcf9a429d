"""The file that tells a job which captures it processes, and how to mark what it writes for them; for any language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dalsegno.job.spark_tables import IN_SPARK
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
    told = {"stamp": properties(work), "captures": [_capture(capture) for capture in work.captures], **_steps(work)}
    return {CAPTURES_FILE: json.dumps(told)}


def captures_conf(work: Work) -> dict[str, str]:
    """For a driver that may be on a machine without the file: what it needs to tell whether it has written."""
    if not work.captures:
        return {}
    captures = [{"id": each.id, "created_at": each.created_at.isoformat()} for each in work.captures]
    return {IN_SPARK: json.dumps({"stamp": properties(work), "captures": captures, **_steps(work)})}


def _steps(work: Work) -> dict[str, Any]:
    """What the running version has: a target may hold what another version wrote for the same captures."""
    if work.log_of_work is None:
        return {}
    known = work.log_of_work.known_steps()
    steps = [{"workflow": workflow_id, "step": step_id} for workflow_id, step_id in sorted(known.steps)]
    return {"steps": steps, "has_all_steps": known.is_complete}


def _capture(capture: Capture) -> dict[str, Any]:
    tables = [_table(captured) for captured in capture.tables]
    made_at = capture.created_at.isoformat()
    return {"id": capture.id, "consumer": capture.consumer, "created_at": made_at, "tables": tables}


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
        "changes": captured.spec.changes.value,
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
