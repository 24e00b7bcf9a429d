"""Writes in a target that the store does not know of: an older copy of it was restored, or there are two stores.

A stamp names the captures that were written, with their ranges. One for a capture of ours says that somebody works on
it elsewhere. One for another capture of the same consumer, which this store has never heard of, says that rows behind
our checkpoint were written before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from dalsegno.errors import DataError
from dalsegno.hints import Verb, action
from dalsegno.iceberg import evidence
from dalsegno.iceberg.history import RawMetadata, branch_heads
from dalsegno.iceberg.stamps import PREFIX, stamped_ranges
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.tables import TableName

_CAPTURES = f"{PREFIX}captures"


def refuse_unknown_writes(
    target: TableName,
    metadata: RawMetadata,
    captures: Sequence[Capture],
    known_units: Collection[str],
    known_captures: Callable[[Collection[str]], Collection[str]],
    source: Callable[[TableName], RawMetadata | None],
) -> None:
    """Raise if a target has rows of these captures' ranges that this store does not know of."""
    ours = {capture.id for capture in captures}
    # The newest of each consumer and source is enough: captures of a consumer come one after the other.
    newest: dict[tuple[Any, Any], tuple[int, Mapping[str, Any]]] = {}
    for snapshot_id, summary in _stamped(metadata):
        named = set(summary.get(_CAPTURES, "").split(","))
        if named & ours and summary.get(evidence.UNIT) not in known_units:
            raise _refusal(target, snapshot_id, f"for capture {', '.join(sorted(named & ours))}", captures[0])
        for each in stamped_ranges(summary):
            if each.get("capture") not in ours:
                newest.setdefault((each.get("consumer"), each.get("uuid")), (snapshot_id, each))
    strangers = {str(told.get("capture")): (snapshot_id, told) for snapshot_id, told in newest.values()}
    for capture_id in strangers.keys() - set(known_captures(strangers)) if strangers else ():
        snapshot_id, told = strangers[capture_id]
        for capture in captures:
            for captured in capture.tables:
                if _overlaps(told, capture, captured, source):
                    whose = f"for capture {capture_id} of consumer {capture.consumer!r}"
                    raise _refusal(target, snapshot_id, whose, capture)


def _stamped(metadata: RawMetadata) -> Iterator[tuple[int, Mapping[str, str]]]:
    seen: set[int] = set()
    for head in branch_heads(metadata).values():
        for raw in evidence.line(metadata, head):
            if raw["snapshot-id"] in seen:
                break
            seen.add(raw["snapshot-id"])
            summary = raw.get("summary") or {}
            if _CAPTURES in summary:
                yield raw["snapshot-id"], summary


def _overlaps(
    told: Mapping[str, Any],
    capture: Capture,
    captured: CapturedTable,
    source: Callable[[TableName], RawMetadata | None],
) -> bool:
    """Whether the range of an unknown capture of the same consumer reaches beyond where ours begins."""
    same = (capture.consumer, captured.upto.table_uuid, captured.upto.branch)
    if (told.get("consumer"), told.get("uuid"), told.get("branch")) != same or told.get("upto") is None:
        return False
    metadata = source(captured.table)
    known = {raw["snapshot-id"] for raw in metadata.get("snapshots", ())} if metadata else set()
    upto = int(told["upto"])
    if metadata is None or upto not in known:
        # It has expired, and what is ours has not: it is older.
        return False
    before = evidence.line(metadata, captured.after.snapshot_id)
    return all(raw["snapshot-id"] != upto for raw in before)


def _refusal(target: TableName, snapshot_id: int, for_whom: str, capture: Capture) -> DataError:
    return DataError(
        f"{target} has snapshot {snapshot_id}, which was written {for_whom}, but the store does not know of it: "
        "was an older copy of the store restored, or is there another one?",
        actions=[
            action("Abandon the capture", Verb.ABANDON, capture=capture.id),
            action(
                "Then read the checkpoint back from the targets",
                Verb.REBUILD_CHECKPOINTS,
                table=str(target),
                consumer=capture.consumer,
            ),
        ],
    )
