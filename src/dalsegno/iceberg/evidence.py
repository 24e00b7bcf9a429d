"""Whether a statement has written to its target: told by the target itself, or refused.

Every snapshot that a statement makes carries the id of its work unit and its number. One in the line of a branch proves
that the statement was executed. That there is none proves the opposite only where no snapshot can be missing: an
unbroken chain of parents leads from the head of each branch to where it stood before the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads
from dalsegno.iceberg.pins import branch_name
from dalsegno.iceberg.stamps import PREFIX
from dalsegno.model.work_units import TableState

UNIT, STATEMENT = f"{PREFIX}unit", f"{PREFIX}statement"
#: Names the work unit for which an empty snapshot was appended, so that nothing older is accepted after it.
FENCE = f"{PREFIX}fence"
#: Names the branch that the snapshot was made on, if the step is atomic.
ATOMIC = f"{PREFIX}atomic"
#: Branches of atomic steps begin so: what is on such a branch alone is not published.
ATOMIC_BRANCH = "atomic_dalsegno_"
#: Snapshots that ``spark.wap.id`` stages are on no branch before they are published.
_STAGED, _PUBLISHED = "wap.id", "published-wap-id"
#: Names the snapshot that another branch had, where one was cherry-picked from there.
_SOURCE = "source-snapshot-id"


@dataclass(frozen=True)
class Written:
    snapshot_id: int


@dataclass(frozen=True)
class Absent:
    pass


@dataclass(frozen=True)
class Unclear:
    #: The end of a sentence: "… because the table is gone".
    because: str
    #: What the table had, it has no longer.
    is_rolled_back: bool = False


Verdict = Written | Absent | Unclear


def state_of(metadata: RawMetadata | None) -> TableState:
    """What to remember of a table before a statement writes to it; None: there is no such table."""
    if metadata is None:
        return TableState()
    return TableState(
        metadata["table-uuid"],
        _heads(metadata),
        metadata.get("last-sequence-number", 0),
        metadata.get("current-schema-id", 0),
    )


def verdict(metadata: RawMetadata | None, before: TableState, unit_id: str, number: int) -> Verdict:
    """Whether the table has what this statement of this unit writes."""
    if metadata is None:
        return Absent() if before.uuid is None else Unclear("the table is gone, or was renamed")
    if before.uuid is not None and metadata["table-uuid"] != before.uuid:
        return Unclear("another table has its name now")
    found = stamped(metadata, unit_id, number)
    if found:
        return _placed(metadata, found)
    if before.uuid is None:
        return Unclear("somebody has made the table, and nothing in it says who")
    return _absent(metadata, before)


def found_in(metadata: RawMetadata, unit_id: str, number: int) -> int | None:
    """The snapshot that a statement has made, if the table still has it."""
    found = stamped(metadata, unit_id, number)
    placed = _placed(metadata, found) if found else None
    return placed.snapshot_id if isinstance(placed, Written) else None


def stamped(metadata: RawMetadata, unit_id: str, number: int | None = None) -> dict[int, Mapping[str, str]]:
    """The snapshots, wherever they are, that a unit or one of its statements has made, with their summaries."""
    found: dict[int, Mapping[str, str]] = {}
    for raw in metadata.get("snapshots", ()):
        summary = raw.get("summary") or {}
        if summary.get(UNIT) == unit_id and (number is None or summary.get(STATEMENT) == str(number)):
            found[raw["snapshot-id"]] = summary
    if any(ATOMIC in summary for summary in found.values()):
        # What an atomic step wrote and did not publish counts as not written.
        heads = _published_heads(metadata).values()
        published = {raw["snapshot-id"] for head in heads for raw in line(metadata, head)}
        found = {each: summary for each, summary in found.items() if ATOMIC not in summary or each in published}
    return found


def began_anew(metadata: RawMetadata, before: TableState) -> bool:
    """Whether the history of the main branch begins after ``before``, with nothing of what was there: replaced."""
    way = list(line(metadata, _heads(metadata).get(MAIN)))
    if not way or way[-1].get("parent-snapshot-id") is not None:
        return False
    first = way[-1]
    is_old = first["snapshot-id"] in before.heads.values() or 0 < first.get("sequence-number", 0) <= before.sequence
    return not is_old and _has_only_its_own(first)


def fences(metadata: RawMetadata, unit_id: str) -> set[int]:
    """The empty snapshots that were appended for a unit."""
    return {
        raw["snapshot-id"] for raw in metadata.get("snapshots", ()) if (raw.get("summary") or {}).get(FENCE) == unit_id
    }


def line(metadata: RawMetadata, head: int | None) -> Iterator[Mapping[str, Any]]:
    """The snapshots from this one back to the first, or to the first that is missing."""
    known = {raw["snapshot-id"]: raw for raw in metadata.get("snapshots", ())}
    while head is not None and head in known:
        yield known[head]
        head = known[head].get("parent-snapshot-id")


def _placed(metadata: RawMetadata, found: Mapping[int, Mapping[str, str]]) -> Verdict:
    in_line = [raw for head in _published_heads(metadata).values() for raw in line(metadata, head)]
    for raw in in_line:
        if raw["snapshot-id"] in found:
            return Written(raw["snapshot-id"])
    for snapshot_id, summary in found.items():
        if _STAGED in summary and not _was_published(metadata, snapshot_id, summary[_STAGED]):
            return Written(snapshot_id)
        if any((raw.get("summary") or {}).get(_PUBLISHED) == summary.get(_STAGED, "") for raw in in_line):
            return Written(snapshot_id)
    return Unclear(f"snapshot {next(iter(found))}, which it made, was rolled back", is_rolled_back=True)


def _was_published(metadata: RawMetadata, snapshot_id: int, wap_id: str) -> bool:
    """Whether a staged snapshot was current once, or another one was made of it."""
    was_current = any(entry["snapshot-id"] == snapshot_id for entry in metadata.get("snapshot-log", ()))
    return was_current or any(
        (raw.get("summary") or {}).get(_PUBLISHED) == wap_id for raw in metadata.get("snapshots", ())
    )


def _absent(metadata: RawMetadata, before: TableState) -> Verdict:
    heads = _heads(metadata)
    for branch, head in before.heads.items():
        if branch not in heads:
            # Of other branches, what was written may have been published before they were dropped.
            return Unclear(f"its branch {branch!r} is gone", is_rolled_back=branch == MAIN)
        way = list(line(metadata, heads[branch]))
        if all(raw["snapshot-id"] != head for raw in way):
            # A line that ends with a missing parent was expired; one that ends otherwise leads elsewhere.
            is_elsewhere = way[-1].get("parent-snapshot-id") is None or _is_older(way[0], before)
            what = "was rolled back" if is_elsewhere else "was expired"
            because = f"snapshot {head}, where {branch!r} stood before, {what}"
            return Unclear(because, is_rolled_back=is_elsewhere)
    for branch, head in heads.items():
        if branch not in before.heads and not _is_complete(metadata, head, before):
            return Unclear(f"the history of {branch!r} has a gap")
    for head in heads.values():
        if (published := _of_expired(metadata, head, before)) is not None:
            return Unclear(f"snapshot {published} was made of one that has expired, which may be what it wrote")
    return Absent()


def _of_expired(metadata: RawMetadata, head: int, before: TableState) -> int | None:
    """A snapshot since ``before`` that publishes another one, without its stamp, if the other one is gone."""
    known = {str(raw["snapshot-id"]) for raw in metadata.get("snapshots", ())}
    for raw in line(metadata, head):
        if raw["snapshot-id"] in before.heads.values():
            return None
        source = (raw.get("summary") or {}).get(_SOURCE)
        if source is not None and source not in known:
            return int(raw["snapshot-id"])
    return None


def _is_complete(metadata: RawMetadata, head: int, before: TableState) -> bool:
    """Whether no snapshot is missing between a head and the moment of ``before``."""
    for raw in line(metadata, head):
        is_old = 0 < raw.get("sequence-number", 0) <= before.sequence or raw["snapshot-id"] in before.heads.values()
        if is_old:
            return True
        if raw.get("parent-snapshot-id") is None:
            return _is_first(raw, before)
    return False


def _is_first(raw: Mapping[str, Any], before: TableState) -> bool:
    """Whether nothing was between ``before`` and a snapshot without a parent: PyIceberg's expiry cuts parents off."""
    if number := raw.get("sequence-number", 0):
        return bool(number == before.sequence + 1)
    return _has_only_its_own(raw)


def _has_only_its_own(raw: Mapping[str, Any]) -> bool:
    """Whether a snapshot has no rows but those that it added."""
    summary = raw.get("summary") or {}
    return all(
        summary.get(f"total-{what}", "?") == summary.get(f"added-{what}", "0") for what in ("data-files", "records")
    )


def _is_older(raw: Mapping[str, Any], before: TableState) -> bool:
    return 0 < int(raw.get("sequence-number", 0)) < before.sequence


def _heads(metadata: RawMetadata) -> dict[str, int]:
    """Branches that people write to: those that hold history for consumers come and go."""
    pins = branch_name("")
    heads = _published_heads(metadata)
    return {name: head for name, head in heads.items() if name == MAIN or not name.startswith(pins)}


def _published_heads(metadata: RawMetadata) -> dict[str, int]:
    return {name: head for name, head in branch_heads(metadata).items() if not name.startswith(ATOMIC_BRANCH)}
