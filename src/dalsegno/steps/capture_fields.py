"""The fields of a step that captures → the options of a capture, in a run and before it."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.capture.key_columns import Keys
from dalsegno.capture.requests import CaptureOptions
from dalsegno.steps.fields import BlockValues

#: The fields that say what is captured of a table, and how.
SPEC_FIELDS = ("changes", "data_operations", "keys", "capture_mode")


def capture_options(fields: BlockValues) -> CaptureOptions:
    return {
        "start": fields.text("from"),
        # A step says in every run where the first one begins.
        "is_start_for_first": True,
        "upto": fields.text("upto"),
        "max_snapshots": fields.count("max_snapshots"),
        "max_bytes": fields.count("max_bytes"),
        "branch": fields.text("branch"),
        "ranges": fields.texts("range_columns"),
        "changes": fields.text("changes"),
        "operations": [word.lower() for word in fields.texts("data_operations")] or None,
        "keys": _keys(fields),
        "mode": fields.text("capture_mode"),
    }


def _keys(fields: BlockValues) -> Keys:
    """Columns of all sources, or lists of columns by source."""
    given = fields.values.get("keys")
    if not isinstance(given, Mapping):
        return fields.texts("keys")
    return {
        table: [fields.plain(f"keys.{table}", column) for column in (of if isinstance(of, list) else [of])]
        for table, of in given.items()
    }
