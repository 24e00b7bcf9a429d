"""Whether a target still holds what its step has written: what it holds besides, no increment can put right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.capture.lake import Lake
from dalsegno.errors import DataError, UnknownName
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.evidence import line
from dalsegno.iceberg.history import MAIN, branch_heads
from dalsegno.iceberg.stamps import stamped_ranges
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.model.tables import TableName
from dalsegno.steps.contract import Work


def refuse_doubtful_target(
    lake: Lake, name: TableName, target: LoadedTable | None, capture: Capture, work: Work
) -> None:
    """Raise if the target is not as the last run left it: an increment would not leave what the SELECT gives."""
    if target is None:
        if not any(captured.is_full for captured in capture.tables):
            raise _refusal(f"{name} is gone, and only what changed since the last run was captured.", name, work)
        return
    own = [raw for raw in target.metadata.get("snapshots", ()) if _consumed_by(raw, capture.consumer)]
    found = _since_last(target.metadata, capture.consumer)
    if found is not None:
        raise _refusal(f"Something else has written snapshot {found['snapshot-id']} of {name}.", name, work, empty=True)
    in_line = {raw["snapshot-id"] for raw in line(target.metadata, branch_heads(target.metadata).get(MAIN))}
    newest = max((_age(raw) for raw in own if raw["snapshot-id"] in in_line), default=(0, 0))
    for raw in own:
        is_lost = raw["snapshot-id"] not in in_line and _age(raw) > newest
        if is_lost and _is_committed(lake, raw, capture.consumer):
            said = (
                f"{name} was rolled back: it no longer has snapshot {raw['snapshot-id']}, which an earlier run wrote."
            )
            raise _refusal(said, name, work)


def last_captures(metadata: Mapping[str, Any], consumer: str) -> tuple[str, ...]:
    """The captures that a table was last written for; none if something else has written to it since."""
    if _since_last(metadata, consumer) is not None:
        return ()
    own = (_consumed_by(raw, consumer) for raw in line(metadata, branch_heads(metadata).get(MAIN)))
    return tuple(next((captures for captures in own if captures), ()))


def _since_last(metadata: Mapping[str, Any], consumer: str) -> Mapping[str, Any] | None:
    """A snapshot of others that came after the last one of the step's own; compaction changes no row."""
    for raw in line(metadata, branch_heads(metadata).get(MAIN)):
        if _consumed_by(raw, consumer):
            return None
        if (raw.get("summary") or {}).get("operation") != "replace":
            return raw
    return None


def _consumed_by(raw: Mapping[str, Any], consumer: str) -> list[str]:
    """The captures of a consumer that a snapshot was written for."""
    ranges = stamped_ranges(raw.get("summary") or {})
    return [str(each.get("capture")) for each in ranges if each.get("consumer") == consumer]


def _age(raw: Mapping[str, Any]) -> tuple[int, int]:
    """Greater for newer snapshots; those of format version 1 have no number."""
    return raw.get("sequence-number", 0), raw["timestamp-ms"]


def _is_committed(lake: Lake, raw: Mapping[str, Any], consumer: str) -> bool:
    for capture_id in _consumed_by(raw, consumer):
        try:
            if lake.store.capture(capture_id).state is CaptureState.COMMITTED:
                return True
        except UnknownName:
            continue
    return False


def _refusal(message: str, name: TableName, work: Work, *, empty: bool = False) -> DataError:
    more = {"empty": str(name)} if empty else {}
    rebuild = action("Compute it from scratch", Verb.RUN, workflow=work.workflow_id, full_refresh=True, **more)
    return DataError(f"{message} Nothing was written.", actions=[rebuild])
