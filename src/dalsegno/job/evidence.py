"""Whether the snapshots of a table say that a step has written what it writes for its captures.

A snapshot in the line of a branch proves it by the id of the work. That there is none proves the opposite only if no
snapshot can be missing, and if nobody wrote for the same captures under another name. Everything else is doubt, and
raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.job.step import PART
from dalsegno.job.tables import Snapshot, Table, TargetError

#: The part that ``job.write`` writes if none is named. What a Spark session writes by itself has none.
WHOLE = "write"
_CAPTURES, _UNIT, _PLACE = "dalsegno.captures", "dalsegno.unit", "dalsegno.place"
_WORKFLOW, _STEP = "dalsegno.workflow", "dalsegno.step"
_STAGED, _SOURCE = "wap.id", "source-snapshot-id"


@dataclass(frozen=True)
class Work:
    """What a step does for its captures, as the file says that it is given."""

    stamp: Mapping[str, str]
    #: The steps that the running version has, by workflow and step.
    steps: frozenset[tuple[str, str]] | None = None
    #: Whether there are no others: False if a run decides which workflow it calls.
    has_all_steps: bool = False
    #: When the last capture was made: nothing can have been written for it before.
    since_ms: int | None = None

    @classmethod
    def of_file(cls, told: Mapping[str, Any]) -> Work | None:
        """None if the step comes after no capture."""
        if not told.get("captures"):
            return None
        if _UNIT not in told["stamp"]:
            raise TargetError(f"The file that DALSEGNO_CAPTURES names has no {_UNIT!r} in its stamp.")
        made = [datetime.fromisoformat(each["created_at"]) for each in told["captures"] if "created_at" in each]
        steps = told.get("steps")
        return cls(
            told["stamp"],
            None if steps is None else frozenset((each["workflow"], each["step"]) for each in steps),
            bool(told.get("has_all_steps")),
            int(max(made).timestamp() * 1000) if made else None,
        )


def written(table: Table, work: Work, part: str | None, branch: str | None) -> list[Snapshot]:
    """The snapshots that hold this part of the work; none if it is certain that there are none.

    Without a part, what ``job.write`` wrote counts, and what has no part.
    """
    lines = [head for name, head in table.heads.items() if name == branch]
    # A branch that is not there may have been published, and dropped.
    there = _live(table, lines or table.heads.values())
    mine = [each for each in there if each.summary.get(_UNIT) == work.stamp[_UNIT]]
    wanted = (None, WHOLE) if part is None else (part,)
    if found := [each for each in mine if each.summary.get(PART) in wanted]:
        return found
    for each in mine:
        if part is None or each.summary.get(PART) is None:
            raise _other_part(table, each, part)
    for each in _live(table, table.heads.values()):
        _refuse_other_work(table, each, work)
        _refuse_copy_of_expired(table, each, work)
    for head in lines or table.heads.values():
        _refuse_gap(table, head, work)
    return []


def _live(table: Table, heads: Any) -> list[Snapshot]:
    """The snapshots in the lines of branches, and those that are staged to be published."""
    found = {each.id: each for head in heads for each in table.line(head)}
    for each in table.snapshots.values():
        if each.id in found or _STAGED not in each.summary:
            continue
        published = [other for other in table.snapshots.values() if _publishes(other, each)]
        if (each.id not in table.published and not published) or any(other.id in found for other in published):
            found[each.id] = each
    return list(found.values())


def _publishes(other: Snapshot, staged: Snapshot) -> bool:
    """Whether it is what became of a staged snapshot: it says so, and has no stamp of its own."""
    source = other.summary.get(_SOURCE)
    return source == str(staged.id) or other.summary.get("published-wap-id") == staged.summary[_STAGED]


def _refuse_other_work(table: Table, snapshot: Snapshot, work: Work) -> None:
    """Work for one of the same captures that nobody continues, or that this step did with other parameters."""
    told = snapshot.summary
    if not set(_split(told.get(_CAPTURES))) & set(_split(work.stamp.get(_CAPTURES))):
        return
    by = f"step {told.get(_STEP)!r} of {told.get(_WORKFLOW)}"
    wrote = f"Snapshot {snapshot.id} of {table.name} was written for the same capture by {by}"
    if told.get(_UNIT) != work.stamp[_UNIT] and _whereabouts(told) == _whereabouts(work.stamp):
        raise TargetError(
            f"{wrote}: this step, with other parameters or together with other captures. "
            f"Writing again could double its rows. {_ways_on(table, 'Run it with the same parameters')}"
        )
    named = (str(told.get(_WORKFLOW)), str(told.get(_STEP)))
    if work.steps is None or named in work.steps:
        return
    if work.has_all_steps or named[0] == work.stamp.get(_WORKFLOW):
        raise TargetError(
            f"{wrote}, which the running version does not have. Writing again could double its rows. "
            f"{_ways_on(table, 'Give the step and the workflow their old names back')}"
        )


def _refuse_copy_of_expired(table: Table, snapshot: Snapshot, work: Work) -> None:
    """What is cherry-picked has no stamp: only the snapshot that it was made of says who wrote it."""
    source = snapshot.summary.get(_SOURCE)
    is_new = work.since_ms is not None and snapshot.timestamp_ms >= work.since_ms
    if source is not None and is_new and all(str(each) != source for each in table.snapshots):
        raise TargetError(
            f"Snapshot {snapshot.id} of {table.name} was made of snapshot {source}, which has expired: it may be what "
            "this step wrote. Look into it: if the rows are there, commit the capture; if not, "
            "abandon it, and run the workflow again."
        )


def _refuse_gap(table: Table, head: int, work: Work) -> None:
    """Where snapshots have expired that are newer than the capture, the one that is looked for may be among them."""
    if work.since_ms is None:
        return
    oldest: Snapshot | None = None
    for oldest in table.line(head):
        if oldest.timestamp_ms < work.since_ms:
            return
    if oldest is None or not _is_first(oldest):
        raise TargetError(
            f"{table.name} has no snapshot from before the capture any more: what this step wrote may have expired, "
            "so that is unknown. Keep the snapshots of a target for as long as a run may be open. Look into it: "
            "if the rows are there, commit the capture; if not, abandon it, and run the workflow again."
        )


def _is_first(snapshot: Snapshot) -> bool:
    """Whether nothing was there before: PyIceberg's expiry leaves a snapshot without its parent, too."""

    def count(name: str) -> int:
        return int(snapshot.summary.get(name) or 0)

    if snapshot.parent is not None or "total-records" not in snapshot.summary or count("deleted-data-files"):
        return False
    return all(count(f"total-{what}") == count(f"added-{what}") for what in ("records", "data-files", "delete-files"))


def _other_part(table: Table, snapshot: Snapshot, part: str | None) -> TargetError:
    found = snapshot.summary.get(PART)
    said = "without naming a part" if found is None else f"as part {found!r}"
    asked = "without a part" if part is None else f"for part {part!r}"
    return TargetError(
        f"This step wrote snapshot {snapshot.id} of {table.name} {said}, and now asks {asked}: whether "
        "these are the same rows is unknown. If the code was changed since, finish the capture with the old code. "
        "Do every write to one table in a job.write of its own, with a part= each."
    )


def _ways_on(table: Table, first: str) -> str:
    return f"{first}; or, if nothing else was written since, roll {table.name} back to the snapshot before it."


def _whereabouts(told: Mapping[str, Any]) -> tuple[Any, ...]:
    return told.get(_WORKFLOW), told.get(_PLACE)


def _split(captures: str | None) -> Iterator[str]:
    return iter((captures or "").split(",")) if captures else iter(())
