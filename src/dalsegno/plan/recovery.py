"""Where a consumer stands, as its targets tell it.

A capture can only be recorded where the checkpoint stands at its start. So a later capture proves that the one before
it was committed, and only of the newest it must be found out whether all of it was written. What cannot be told is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dalsegno.errors import DataError, HistoryLost
from dalsegno.hints import Action, Verb, action
from dalsegno.model.snapshots import History, Position
from dalsegno.model.stamps import StampedRange, Write
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import whole_table


@dataclass(frozen=True)
class Written:
    """What the targets have of one capture, as far as it concerns one source."""

    range: StampedRange
    #: In order.
    writes: tuple[Write, ...]

    @property
    def targets(self) -> tuple[TableName, ...]:
        return tuple(sorted({write.target for write in self.writes}))

    def writers(self, target: TableName) -> set[tuple[str, str, str]]:
        """The workflow, step and statement of each write to a target."""
        return {(write.workflow, write.place, write.statement) for write in self.writes if write.target == target}


def written_by_source(writes: Iterable[Write]) -> dict[tuple[str, TableName], list[Written]]:
    """For each consumer and source the captures that the targets know, oldest first, as the writes of each target."""
    found: dict[tuple[str, TableName], dict[str, list[Write]]] = {}
    # A consumer has one capture of a table at a time, so the order of the writes is that of the captures.
    for write in _in_order(writes):
        for told in write.ranges:
            found.setdefault((told.consumer, told.table), {}).setdefault(told.capture_id, []).append(write)
    return {
        key: [Written(_range_of(writes[0], key[1], capture_id), tuple(writes)) for capture_id, writes in known.items()]
        for key, known in sorted(found.items())
    }


def _in_order(writes: Iterable[Write]) -> list[Write]:
    """By time, but those of one target as they follow each other: clocks of writers differ."""
    latest: dict[TableName, int] = {}
    timed = []
    for write in writes:
        latest[write.target] = max(write.timestamp_ms, latest.get(write.target, write.timestamp_ms))
        timed.append((latest[write.target], write))
    return [write for _, write in sorted(timed, key=lambda each: each[0])]


def _range_of(write: Write, table: TableName, capture_id: str) -> StampedRange:
    return next(told for told in write.ranges if told.table == table and told.capture_id == capture_id)


def recovered_position(source: History, known: Sequence[Written]) -> Position:
    """Where the consumer stands on the source, by the captures that its targets know; or a refusal."""
    newest = known[-1].range
    again = [whole_table(newest.table, newest.consumer)]
    if source.table_uuid != newest.table_uuid:
        raise HistoryLost(
            f"{newest.table} was dropped and created anew: expected table {newest.table_uuid}, of which capture "
            f"{newest.capture_id} was, found table {source.table_uuid}.",
            actions=again,
        )
    snapshot = source.snapshots.get(newest.upto) if newest.upto is not None else None
    if newest.upto is not None and snapshot is None:
        raise HistoryLost(
            f"{newest.table} no longer has snapshot {newest.upto}, up to which capture {newest.capture_id} of "
            f"{newest.consumer!r} goes; what came after it is unknown.",
            actions=again,
        )
    _refuse_gaps(source, known)
    _refuse_unfinished(known)
    return source.position(snapshot)


def is_ahead(source: History, position: Position, stored: Position) -> bool:
    """Whether a position is later than the checkpoint there is; a refusal where that cannot be told."""
    if position.is_at(stored):
        return False
    if (position.table_uuid, position.branch) == (stored.table_uuid, stored.branch):
        if _leads_to(source, stored.snapshot_id, position.snapshot_id):
            return True
        if _leads_to(source, position.snapshot_id, stored.snapshot_id):
            return False
    raise HistoryLost(
        f"The store has a checkpoint at {stored}, branch {stored.branch}, of table {stored.table_uuid}, the targets "
        f"are at {position}, branch {position.branch}, of table {position.table_uuid}: which is later is unknown.",
        actions=[action("Look at both, and choose one", Verb.SET_CHECKPOINT)],
    )


def _leads_to(source: History, earlier: int | None, later: int | None) -> bool:
    """Whether the source went from one snapshot to the other."""
    if earlier is None:
        return True
    line = source.ancestors(source.snapshots.get(later) if later is not None else None)
    return any(earlier in (snapshot.id, snapshot.parent_id) for snapshot in line)


def _refuse_gaps(source: History, known: Sequence[Written]) -> None:
    """Each capture begins where an earlier one began or ended, or later in the source's own line."""
    for number, written in enumerate(known[1:], start=1):
        begins, earlier = written.range.after, [each.range for each in known[:number]]
        if any(begins in (told.after, told.upto) for told in earlier):
            continue
        if any(_leads_to(source, told.upto, begins) for told in earlier):
            continue
        before = earlier[-1]
        raise HistoryLost(
            f"Capture {written.range.capture_id} begins after {_snapshot(begins)}, the one before it, "
            f"{before.capture_id}, ends with {_snapshot(before.upto)}, and {before.table} does not show that one leads "
            "to the other: some captures may be missing.",
            actions=[_set_to("If none is missing", known[-1].range)],
        )


def _refuse_unfinished(known: Sequence[Written]) -> None:
    """The newest capture must be wherever earlier ones are, and every statement of the last one there."""
    *earlier, newest = known
    missing = []
    for target in sorted({target for written in earlier for target in written.targets}):
        wanted = next(written.writers(target) for written in reversed(earlier) if target in written.targets)
        if lacking := wanted - newest.writers(target):
            missing.append(f"{target} ({', '.join(sorted(map(_writer, lacking)))})")
    if missing:
        raise _unfinished(newest, f"but not what the captures before it wrote to {' and '.join(missing)}")
    if any(word.isdecimal() for write in newest.writes for word in write.place.split("/")):
        raise _unfinished(newest, "in a loop: its other iterations may have written more, or not yet")


def _unfinished(newest: Written, what: str) -> DataError:
    told = newest.range
    # The first of each target: what was there before it, is without the capture.
    first = {write.target: write.snapshot_id for write in reversed(newest.writes)}
    return DataError(
        f"Capture {told.capture_id} of {told.consumer!r} wrote to {' and '.join(map(str, newest.targets))}, {what}: "
        "whether all of it was processed is unknown.",
        hint="If it was not, roll back "
        f"{', '.join(f'{target} to before snapshot {first[target]}' for target in newest.targets)}, and rebuild again. "
        "A table that is no longer written can be left out.",
        actions=[_set_to("If it was processed, or once you have written what is missing", told)],
    )


def _writer(writer: tuple[str, str, str]) -> str:
    workflow, place, statement = writer
    return f"{workflow} {place}" + (f" statement {statement}" if statement else "")


def _snapshot(snapshot_id: int | None) -> str:
    return "the beginning" if snapshot_id is None else f"snapshot {snapshot_id}"


def _set_to(aim: str, told: StampedRange) -> Action:
    branch = {} if told.branch == "main" else {"branch": told.branch}
    to = "earliest" if told.upto is None else str(told.upto)
    return action(aim, Verb.SET_CHECKPOINT, table=str(told.table), consumer=told.consumer, to=to, **branch)
