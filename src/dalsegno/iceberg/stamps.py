"""The summary of a snapshot: for whom it was written, and which ranges of which tables it holds.

Whoever writes for a capture puts these properties into the snapshot that holds the rows, so both are there or neither.
They prove that a range was written, and checkpoints are rebuilt from them if the store is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.errors import DataError
from dalsegno.model.captures import Capture
from dalsegno.model.snapshots import History, Position, Snapshot
from dalsegno.model.stamps import StampedRange, Write
from dalsegno.model.tables import TableName

#: All of our properties begin so.
PREFIX = "dalsegno."
_RANGES = f"{PREFIX}ranges"


def ranges_text(captures: Iterable[Capture]) -> str:
    """The value of ``dalsegno.ranges``; ids of snapshots are texts, because many readers of JSON keep 53 bits."""
    ranges = [
        {
            "capture": capture.id,
            "consumer": capture.consumer,
            "table": str(captured.table),
            "uuid": captured.upto.table_uuid,
            "branch": captured.upto.branch,
            "after": _id_text(captured.after),
            "upto": _id_text(captured.upto),
        }
        for capture in captures
        for captured in capture.tables
    ]
    return json.dumps(ranges, separators=(",", ":"))


def _id_text(position: Position) -> str | None:
    return None if position.snapshot_id is None else str(position.snapshot_id)


def writes_of(target: TableName, history: History) -> list[Write]:
    """What the table has that was written for captures, oldest first; what was rolled back it does not have."""
    line = [snapshot for snapshot in history.ancestors(history.head) if _RANGES in snapshot.summary]
    return [_write(target, snapshot) for snapshot in reversed(line)]


def stamped_ranges(summary: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """The ranges that a summary names, as they are written there; none if they cannot be read."""
    try:
        found = json.loads(summary.get(_RANGES, "[]"))
    except ValueError:
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _write(target: TableName, snapshot: Snapshot) -> Write:
    try:
        ranges = tuple(_range(each) for each in json.loads(snapshot.summary[_RANGES]))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"Snapshot {snapshot.id} of {target} has a property {_RANGES} that cannot be read: expected a JSON list of "
            f"ranges, found {snapshot.summary[_RANGES]!r}."
        ) from error
    said = {name: snapshot.summary.get(f"{PREFIX}{name}", "") for name in ("workflow", "place", "statement")}
    return Write(target, snapshot.id, snapshot.timestamp_ms, **said, ranges=ranges)


def _range(written: Mapping[str, Any]) -> StampedRange:
    after, upto = (None if written[end] is None else int(written[end]) for end in ("after", "upto"))
    capture_id, consumer, table, uuid, branch = (
        written[name] for name in ("capture", "consumer", "table", "uuid", "branch")
    )
    if not all(isinstance(text, str) for text in (capture_id, consumer, table, uuid, branch)):
        raise TypeError
    return StampedRange(capture_id, consumer, TableName.of(table), uuid, branch, after, upto)
