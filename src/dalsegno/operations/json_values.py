"""Values as JSON can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from dalsegno.errors import DalsegnoError, InvalidWorkflow, Problem
from dalsegno.model.refreshes import Refresh, SourceRead, TargetWrite
from dalsegno.model.snapshots import Position
from dalsegno.model.stored_text import fault_of_text
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, TableState

#: The metadata of a field that is not shown if it is None.
LEFT_OUT_IF_NONE = {"is_left_out_if_none": True}


def plain(value: Any) -> Any:  # noqa: PLR0911 - one return for each kind of value
    """What JSON can hold: tables by name, moments in ISO 8601, the rest by their fields."""
    match value:
        case str():
            # Whatever is stored, an answer is UTF-8.
            return value.encode("utf-8", "backslashreplace").decode() if fault_of_text(value) else value
        case TableName():
            return str(value)
        case Position():
            # Snapshot ids need 64 bits; many JSON readers keep 53 of a number, and would name another snapshot.
            named = {item.name: getattr(value, item.name) for item in fields(value)}
            return named | {"snapshot_id": None if value.snapshot_id is None else str(value.snapshot_id)}
        case TableState():
            return value.as_json()
        case Statement():
            named = {item.name: plain(getattr(value, item.name)) for item in fields(value)}
            return named | {"after": None if value.after is None else str(value.after)}
        case SourceRead() | TargetWrite():
            return {name: _snapshot_ids(name, item) for name, item in _fields(value).items()}
        case Refresh():
            return _fields(value) | {"rows_written": value.rows_written, "saved_bytes": value.saved_bytes}
        case Problem():
            return problem_fields(value)
        case datetime():
            return value.isoformat()
        case Mapping():
            return {plain(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple() | frozenset():
            return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    return value


def _fields(value: Any) -> dict[str, Any]:
    shown = (item for item in fields(value) if not (item.metadata and getattr(value, item.name) is None))
    return {item.name: plain(getattr(value, item.name)) for item in shown}


def _snapshot_ids(name: str, value: Any) -> Any:
    """Ids of snapshots as texts, for the same reason."""
    if not name.endswith(("snapshot", "snapshots")):
        return value
    return list(map(str, value)) if isinstance(value, list) else None if value is None else str(value)


def error_fields(error: DalsegnoError) -> dict[str, Any]:
    found: dict[str, Any] = {
        "code": error.code,
        "message": plain(error.message),
        "hint": plain(error.hint),
        "actions": plain(error.actions),
    }
    if isinstance(error, InvalidWorkflow):
        found["problems"] = [problem_fields(each) for each in error.problems]
    return found


def problem_fields(problem: Problem) -> dict[str, Any]:
    return {
        "severity": "warning" if problem.is_warning else "error",
        "message": plain(problem.message),
        "hint": plain(problem.hint),
        "line": problem.line,
        "column": problem.column,
        "path": plain(problem.path),
    }
