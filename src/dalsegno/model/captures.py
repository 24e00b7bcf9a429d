"""A capture: what a consumer was handed, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from dalsegno.errors import UserError
from dalsegno.model.snapshots import Operation, Position
from dalsegno.model.tables import TableName


class CaptureState(StrEnum):
    """Where a capture stands; ``MOVES`` lists every way on."""

    #: Recorded, so its range is fixed; its change tables may not be visible yet.
    PREPARING = "preparing"
    #: Its change tables can be read.
    READY = "ready"
    #: Processed: the checkpoint moved to the end of its range.
    COMMITTED = "committed"
    #: Given up: the checkpoint did not move, the next capture takes the range again.
    ABANDONED = "abandoned"

    @property
    def is_pending(self) -> bool:
        """Whether the range still waits to be processed; at most one capture of a table and consumer does."""
        return self in (CaptureState.PREPARING, CaptureState.READY)


MOVES: Mapping[CaptureState, frozenset[CaptureState]] = {
    CaptureState.PREPARING: frozenset({CaptureState.READY, CaptureState.ABANDONED}),
    CaptureState.READY: frozenset({CaptureState.COMMITTED, CaptureState.ABANDONED}),
    CaptureState.COMMITTED: frozenset(),
    CaptureState.ABANDONED: frozenset(),
}


class ChangeKind(StrEnum):
    """What a capture hands over."""

    #: The files that were added, as they were added.
    ADDED = "added"
    #: What the changed files hold at both ends of the range: the difference is what changed.
    BEFORE_AFTER = "before_after"
    #: The rows that are new or updated, as they are at the end of the range.
    UPSERTS = "upserts"
    #: The keys of the rows that changed in any way.
    KEYS = "keys"
    #: The partitions and the ranges of columns in which something changed.
    RANGE = "range"


@dataclass(frozen=True)
class Manner:
    """How a table is captured."""

    changes: ChangeKind = ChangeKind.ADDED
    #: The kinds of snapshots that may be in the range; ``replace`` changes no row and always may.
    operations: frozenset[Operation] = frozenset({Operation.APPEND})
    #: The columns that tell rows apart, in order to know an update from a delete and an insert.
    keys: tuple[str, ...] = ()
    #: Whether rows are told apart by the ids that format version 3 gives them, which needs no comparison.
    by_row_id: bool = False

    @property
    def compares_ends(self) -> bool:
        """Whether only the two ends of the range count, not the way from one to the other."""
        return self.changes is not ChangeKind.ADDED

    @property
    def is_told_by_one_end(self) -> bool:
        """Whether the end of the range alone tells what is wanted: which rows are newer than its beginning."""
        return self.changes is ChangeKind.UPSERTS and self.by_row_id

    def asks_like(self, other: Manner) -> bool:
        """Whether both ask for the same; how it is told is not asked for."""
        return replace(self, by_row_id=False) == replace(other, by_row_id=False)


#: What a capture does unless told otherwise.
ADDED_FILES = Manner()
_Words = TypeVar("_Words", bound=StrEnum)
_EVERY_OPERATION = frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE})


def manner_of(changes: str | None, operations: Iterable[str] | None, keys: Iterable[str]) -> Manner:
    """The manner that a user means: what is wanted and which operations are expected, each implying the other."""
    named = None if operations is None else frozenset(_word(Operation, word, "operation") for word in operations)
    if changes is not None:
        kind = _word(ChangeKind, changes, "kind of changes")
    else:
        kind = ChangeKind.ADDED if named is None or named == {Operation.APPEND} else ChangeKind.BEFORE_AFTER
    if named is None:
        named = frozenset({Operation.APPEND}) if kind is ChangeKind.ADDED else _EVERY_OPERATION
    named_keys = tuple(keys)
    if kind is ChangeKind.KEYS and not named_keys:
        raise UserError("A capture of changed keys needs to know the keys.", hint="Name them: --key COLUMN")
    return Manner(kind, named - {Operation.REPLACE}, named_keys)


def _word(kind: type[_Words], word: str, what: str) -> _Words:
    try:
        return kind(word)
    except ValueError:
        raise UserError(f"{word!r} is no {what}: expected {', '.join(kind)}.") from None


class Role(StrEnum):
    """Which end of the range a table of a capture shows."""

    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True)
class CapturedTable:
    """One source of a capture: the half-open range ``(after, upto]`` and the change tables made of it."""

    table: TableName
    #: Where the consumer's checkpoint stood, or the chosen start of a first capture.
    after: Position
    upto: Position
    #: Whether the consumer had no checkpoint on this table before.
    is_first: bool
    #: Whether the change table holds the whole table as of ``upto`` rather than what was added.
    is_full: bool
    change_table: TableName
    #: The folder that belongs to the change table alone.
    location: str
    manner: Manner = ADDED_FILES
    #: What the capture found (files, rows, bytes, partitions, ranges …); empty until it is ready.
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> Mapping[Role, TableName]:
        """The tables that the capture makes of this source."""
        after = {Role.AFTER: self.change_table}
        if not self.manner.compares_ends or self.manner.is_told_by_one_end:
            return after
        before = f"{self.change_table.name}_before"
        return after | {Role.BEFORE: TableName(self.change_table.catalog, self.change_table.namespace, before)}

    def folder(self, role: Role) -> str:
        """The folder that one of the tables has for itself."""
        return self.location if role is Role.AFTER else f"{self.location}_before"

    def position(self, role: Role) -> Position:
        """The state of the source that one of the tables shows a part of."""
        return self.upto if role is Role.AFTER else self.after


@dataclass(frozen=True)
class Capture:
    """Everything one consumer gets at once: one cut through one or several tables."""

    id: str
    consumer: str
    state: CaptureState
    created_at: datetime
    created_by: str
    #: When ``clean`` may remove it, processed or not.
    expires_at: datetime
    tables: tuple[CapturedTable, ...]
    #: When, by whom and why it was committed or abandoned.
    settled_at: datetime | None = None
    settled_by: str | None = None
    reason: str | None = None
    #: When its change tables were removed.
    dropped_at: datetime | None = None


@dataclass(frozen=True)
class Checkpoint:
    """One move of a consumer's checkpoint, over one or several tables at once."""

    id: int
    consumer: str
    #: None where somebody set the checkpoint by hand.
    capture_id: str | None
    moved_at: datetime
    moved_by: str
    reason: str
    positions: Mapping[TableName, Position]
