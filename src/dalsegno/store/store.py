"""The operations: each one transaction, each safe to repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from dalsegno.model.captures import Capture, CaptureState, Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import audit_log, capture_queries, captures, checkpoints, refreshes, refusals, settling
from dalsegno.store.capture_queries import CheckpointPosition
from dalsegno.store.database import Database, lock
from dalsegno.store.migrations import migrate
from dalsegno.store.store_reader import StoreReader


@dataclass(frozen=True)
class Commit:
    """What became of a commit."""

    checkpoint: Checkpoint
    #: False where the capture had been committed before; the checkpoint is the one of that time.
    is_new: bool


class Store(StoreReader):
    """Captures and checkpoints in one database; any number of threads may share it."""

    database: Database

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the database, make it if it is not there, and bring its schema up to date."""
        database = Database(url)
        try:
            migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def is_worked_on(self, capture_id: str) -> str | None:
        """Why a pending capture must not be given up, whatever its age; None if it may."""
        with self.database.reading() as connection:
            return settling.is_worked_on(connection, capture_queries.the(connection, capture_id))

    # What changes.

    def record_capture(self, capture: Capture) -> None:
        """Fix the range of a new capture, if the checkpoint is at its start and no other capture is pending.

        From here on the capture is pending; recording it again while it is changes nothing.
        """
        if not capture.state.is_pending or not capture.tables:
            raise ValueError(f"Only a pending capture of at least one table can be recorded, not {capture}")
        recorded = audit_log.recorded_by(capture.created_by, "captures.capture", capture.created_at)
        with recorded, self.database.writing() as connection:
            lock(connection, capture.consumer)
            try:
                with connection.begin_nested():
                    captures.add(connection, capture)
                    audit_log.describe("capture", capture.id, after=_recorded(capture))
            except IntegrityError:
                _explain_clash(connection, capture)
                return
            for captured in capture.tables:
                expected = None if captured.is_first else captured.after
                found = capture_queries.mark(connection, capture.consumer, captured.table)
                if not _stands(found, expected):
                    raise refusals.checkpoint_moved(capture.consumer, captured.table, expected, found)

    def hand_over(self, capture_id: str, giver: str, taker: str) -> None:
        """Somebody else goes on with a pending capture, unless it is no longer the giver's."""
        with self.database.writing() as connection:
            captures.hand_over(connection, capture_id, giver, taker)

    def mark_ready(self, capture_id: str, details: Mapping[TableName, Mapping[str, Any]]) -> Capture:
        """Say that the change tables can be read, and what is in them; what was said first stays."""
        with self._changing(capture_id) as (connection, capture):
            if strangers := set(details) - {captured.table for captured in capture.tables}:
                raise ValueError(f"Capture {capture_id} has no {', '.join(map(str, strangers))}")
            if captures.change_state(connection, capture_id, CaptureState.READY):
                captures.add_details(connection, capture_id, details)
            elif capture.state is not CaptureState.READY:
                raise refusals.capture_settled(capture)
            return capture_queries.the(connection, capture_id)

    def commit(self, capture_id: str, *others: str, by: str, now: datetime) -> Commit:
        """Move the checkpoints to the end of the captures' ranges: all of them are processed. All, or none."""
        wanted = [capture_id, *others]
        with audit_log.recorded_by(by, "captures.commit", now), self.database.writing() as connection:
            settling.hold(connection, wanted)
            settling.refuse_commit(connection, wanted, by)
            done = [commit(connection, each, by=by, now=now) for each in wanted]
            if any(each.is_new for each in done):
                moved = {each.checkpoint.consumer: _shown(each.checkpoint.positions) for each in done}
                after = {"state": CaptureState.COMMITTED.value, "checkpoints": moved}
                audit_log.describe("capture", " ".join(wanted), {"state": CaptureState.READY.value}, after)
            return done[0]

    def abandon(self, capture_id: str, *, by: str, now: datetime, reason: str) -> Capture:
        """Give the capture up: the checkpoint stays, and the next capture takes the range again."""
        recorded = audit_log.recorded_by(by, "captures.abandon", now, reason)
        with recorded, self._changing(capture_id) as (connection, capture):
            settling.refuse_abandon(connection, capture, by)
            if captures.settle(connection, capture_id, CaptureState.ABANDONED, by=by, now=now, reason=reason):
                after = {"state": CaptureState.ABANDONED.value}
                audit_log.describe("capture", capture_id, {"state": capture.state.value}, after)
            elif capture.state is CaptureState.COMMITTED:
                raise refusals.capture_settled(capture)
            return capture_queries.the(connection, capture_id)

    def mark_dropped(self, capture_id: str, now: datetime) -> Capture:
        """Say that the change tables are gone and their names free; a pending capture still needs them."""
        with self._changing(capture_id) as (connection, capture):
            if capture.state.is_pending:
                raise refusals.still_pending(capture)
            captures.mark_dropped(connection, capture_id, now)
            return capture_queries.the(connection, capture_id)

    def move_checkpoint(
        self,
        consumer: str,
        moves: Mapping[TableName, tuple[Position | None, Position]],
        *,
        by: str,
        now: datetime,
        reason: str,
    ) -> Checkpoint:
        """Move the checkpoint without a capture, on each table from where it is expected to the new place."""
        if not moves:
            raise ValueError("There is nothing to move")
        recorded = audit_log.recorded_by(by, "checkpoints.set", now, reason)
        with recorded, self.database.writing() as connection:
            lock(connection, consumer)
            for table in moves:
                if holder := capture_queries.pending(connection, consumer, table):
                    raise refusals.capture_pending(table, holder)
            before, after = (
                {table: at for table, places in moves.items() if (at := places[index]) is not None} for index in (0, 1)
            )
            audit_log.describe("checkpoint", consumer, _shown(before), _shown(after))
            return _move(connection, consumer, moves, capture_id=None, by=by, now=now, reason=reason)

    def carry_over(
        self,
        consumer: str,
        formerly: TableName,
        table: TableName,
        expected: Position | None,
        position: Position,
        *,
        by: str,
        now: datetime,
        reason: str,
    ) -> Checkpoint:
        """Move the checkpoint from the name that a table had to the one it has, if nobody moved it in between.

        ``expected`` is what is stored under the new name, perhaps of another table.
        """
        with self.database.writing() as connection:
            lock(connection, consumer)
            for name in (formerly, table):
                if holder := capture_queries.pending(connection, consumer, name):
                    raise refusals.capture_pending(name, holder)
            known = capture_queries.last_of_table(connection, consumer, position.table_uuid)
            mark = capture_queries.mark(connection, consumer, formerly)
            is_its_own = mark is not None and mark.position.table_uuid == position.table_uuid
            if known is None or (not (is_its_own and _stands(mark, position)) and not known[1].is_at(position)):
                raise refusals.checkpoint_moved(consumer, formerly, position, mark)
            moves = {table: (expected, position)}
            moved = _move(connection, consumer, moves, capture_id=None, by=by, now=now, reason=reason)
            if is_its_own and formerly != table:
                checkpoints.remove(connection, consumer, formerly)
            return moved

    @contextmanager
    def _changing(self, capture_id: str) -> Iterator[tuple[Connection, Capture]]:
        """A transaction in which nobody else changes this capture or its consumer's checkpoint."""
        with self.database.writing() as connection:
            yield connection, _held(connection, capture_id)


def commit(connection: Connection, capture_id: str, *, by: str, now: datetime) -> Commit:
    """Commit as a part of a transaction; if it is refused, what it did must be undone."""
    capture = _held(connection, capture_id)
    if not captures.settle(connection, capture_id, CaptureState.COMMITTED, by=by, now=now):
        if capture.state is CaptureState.COMMITTED:
            return Commit(capture_queries.history(connection, capture_id=capture_id)[0], is_new=False)
        if capture.state is CaptureState.ABANDONED:
            raise refusals.capture_settled(capture)
        raise refusals.not_ready(capture)
    refreshes.commit(connection, capture_id, now)
    moves = {c.table: (None if c.is_first else c.after, c.upto) for c in capture.tables}
    checkpoint = _move(
        connection, capture.consumer, moves, capture_id=capture_id, by=by, now=now, reason="capture committed"
    )
    return Commit(checkpoint, is_new=True)


def _held(connection: Connection, capture_id: str) -> Capture:
    """The capture; until the transaction ends, nobody else changes it or its consumer's checkpoint."""
    lock(connection, capture_queries.consumer(connection, capture_id))
    return capture_queries.the(connection, capture_id)


def _move(
    connection: Connection,
    consumer: str,
    moves: Mapping[TableName, tuple[Position | None, Position]],
    *,
    capture_id: str | None,
    by: str,
    now: datetime,
    reason: str,
) -> Checkpoint:
    reached = {table: new for table, (_, new) in moves.items()}
    checkpoint = checkpoints.append(connection, consumer, reached, capture_id=capture_id, by=by, now=now, reason=reason)
    for table, (expected, _) in moves.items():
        if not checkpoints.move(connection, checkpoint, table, expected):
            found = capture_queries.mark(connection, consumer, table)
            next_step = refusals.CAPTURE_AGAIN if capture_id else refusals.LOOK_AGAIN
            raise refusals.checkpoint_moved(consumer, table, expected, found, next_step=next_step)
    return checkpoint


def _shown(positions: Mapping[TableName, Position]) -> dict[str, str | None]:
    """By table, the snapshot; as a text, because JSON readers keep fewer digits of a number."""
    return {
        str(table): None if position.snapshot_id is None else str(position.snapshot_id)
        for table, position in positions.items()
    }


def _recorded(capture: Capture) -> dict[str, Any]:
    return {"consumer": capture.consumer, "upto": _shown({each.table: each.upto for each in capture.tables})}


def _stands(mark: CheckpointPosition | None, expected: Position | None) -> bool:
    if mark is None or expected is None:
        return mark is None and expected is None
    return mark.position.is_at(expected)


def _explain_clash(connection: Connection, capture: Capture) -> None:
    """Raise what stands in the capture's way; return if it is the capture itself."""
    for known in capture_queries.matching(connection, "captures.id = :capture", capture=capture.id):
        if not known.state.is_pending:
            raise refusals.capture_settled(known)
        return
    for captured in capture.tables:
        if holder := capture_queries.pending(connection, capture.consumer, captured.table):
            raise refusals.capture_pending(captured.table, holder)
        if holder := capture_queries.owner(connection, captured.change_table):
            raise refusals.change_table_taken(captured.change_table, holder)
    # What is left is a capture that names the same table or change table twice.
    raise ValueError(f"Capture {capture.id} clashes with itself: {capture.tables}")
