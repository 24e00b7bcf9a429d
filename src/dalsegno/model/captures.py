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
    #: The checkpoint did not move; the next capture covers the same range.
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


class Mode(StrEnum):
    """As what a capture hands over its range."""

    #: A change table: any engine reads it, and it does not depend on the source's history.
    ICDC = "icdc"
    #: A view of the source's own history: only Spark reads it, and there is nothing to clean up but the view.
    VIEW = "view"


@dataclass(frozen=True)
class CaptureSpec:
    """How a table is captured."""

    changes: ChangeKind = ChangeKind.ADDED
    #: The kinds of snapshots that may be in the range; ``replace`` changes no row and always may.
    operations: frozenset[Operation] = frozenset({Operation.APPEND})
    #: The columns that identify a row, to distinguish an update from a delete and an insert.
    keys: tuple[str, ...] = ()
    #: Whether the row ids of format version 3 show which rows were inserted, deleted or updated.
    by_row_id: bool = False
    #: Whether equality deletes in the range name keys: these get a table of their own.
    has_deleted_keys: bool = False
    mode: Mode = Mode.ICDC

    @property
    def compares_ends(self) -> bool:
        """Whether only the two ends of the range count, not the way from one to the other."""
        return self.changes is not ChangeKind.ADDED

    @property
    def needs_only_after(self) -> bool:
        """Whether the end of the range is enough: row ids show which rows are newer than its beginning."""
        return self.changes is ChangeKind.UPSERTS and self.by_row_id

    @property
    def ends(self) -> tuple[Role, ...]:
        """The ends of the range that are shown."""
        both = self.compares_ends and not self.needs_only_after
        return (Role.AFTER, Role.BEFORE) if both else (Role.AFTER,)

    @property
    def roles(self) -> tuple[Role, ...]:
        """What is shown, each by a table of its own."""
        return (*self.ends, Role.DELETED_KEYS) if self.has_deleted_keys else self.ends

    def with_keys(self, keys: tuple[str, ...]) -> CaptureSpec:
        return replace(self, keys=keys)

    def asks_like(self, other: CaptureSpec) -> bool:
        """Whether both ask for the same; how the rows are found is not asked for."""
        asked = [replace(each, by_row_id=False, has_deleted_keys=False) for each in (self, other)]
        return asked[0] == asked[1]


#: The default of a capture.
ADDED_FILES = CaptureSpec()
_Words = TypeVar("_Words", bound=StrEnum)
#: The operations that may change rows.
EVERY_OPERATION = frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE})


def capture_spec_of(
    changes: str | None,
    operations: Iterable[str] | None,
    keys: Iterable[str],
    mode: str | None = None,
    *,
    has_keys: bool = False,
) -> CaptureSpec:
    """The spec that a user means: what is wanted and which operations are expected, each implying the other.

    ``has_keys``: every table has keys of its own.
    """
    named = None if operations is None else frozenset(_word(Operation, word, "operation") for word in operations)
    if changes is not None:
        kind = _word(ChangeKind, changes, "kind of changes")
    else:
        kind = ChangeKind.ADDED if named is None or named == {Operation.APPEND} else ChangeKind.BEFORE_AFTER
    if named is None:
        named = frozenset({Operation.APPEND}) if kind is ChangeKind.ADDED else EVERY_OPERATION
    named_keys = tuple(keys)
    if kind is ChangeKind.KEYS and not named_keys and not has_keys:
        raise UserError(
            "A capture of changed keys needs to know the keys.", hint="Name the columns that identify a row."
        )
    spec = CaptureSpec(kind, named - {Operation.REPLACE}, named_keys, mode=_mode(mode))
    if spec.mode is Mode.VIEW and (kind is not ChangeKind.ADDED or spec.operations != {Operation.APPEND}):
        raise UserError(
            "A capture as a view can only show what was appended: expected changes 'added' and operation 'append', "
            f"found {kind} of {', '.join(sorted(spec.operations))}.",
            hint="Use the default mode: a change table shows every kind of change.",
        )
    return spec


def _mode(word: str | None) -> Mode:
    return Mode.ICDC if word is None else _word(Mode, word.lower(), "mode")


def _word(kind: type[_Words], word: str, what: str) -> _Words:
    try:
        return kind(word)
    except ValueError:
        raise UserError(f"{word!r} is not a known {what}: expected {', '.join(kind)}.") from None


class Role(StrEnum):
    """What a table of a capture shows: an end of the range, or the keys that equality deletes in the range name."""

    AFTER = "after"
    BEFORE = "before"
    DELETED_KEYS = "deleted_keys"


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
    spec: CaptureSpec = ADDED_FILES
    #: What the capture found (files, rows, bytes, partitions, ranges …); empty until it is ready.
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> Mapping[Role, TableName]:
        """What is read of this source: tables, or a view in the place of the one."""
        return {
            role: replace(self.change_table, name=_of_role(self.change_table.name, role)) for role in self.spec.roles
        }

    @property
    def is_view(self) -> bool:
        """Whether a view stands in the place of the change table."""
        return self.spec.mode is Mode.VIEW

    @property
    def changes_view(self) -> TableName | None:
        """The view of the changed rows, which a catalog that has views gets; None where the change table is enough."""
        name = f"{self.change_table.name}_changes"
        return replace(self.change_table, name=name) if self.spec.compares_ends else None

    @property
    def views(self) -> Mapping[TableName, str]:
        """Every view that the capture may make of this source, and the folder it has for itself."""
        changes = {} if self.changes_view is None else {self.changes_view: f"{self.location}_changes"}
        return ({self.change_table: self.location} if self.is_view else {}) | changes

    def folder(self, role: Role) -> str:
        """The folder that one of the tables has for itself."""
        return _of_role(self.location, role)

    def position(self, role: Role) -> Position:
        """The state of the source that one of the tables shows a part of."""
        return self.after if role is Role.BEFORE else self.upto


def _of_role(name: str, role: Role) -> str:
    return name if role is Role.AFTER else f"{name}_{role}"


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


def actor_of_run(workflow_id: str, number: int) -> str:
    """Who captures and commits where a run does."""
    return f"run {workflow_id}/{number}"


def run_of_actor(actor: str) -> tuple[str, int] | None:
    """The workflow and the number of the run that it is, if it is one."""
    workflow_id, _, number = actor.removeprefix("run ").rpartition("/")
    is_run = actor.startswith("run ") and workflow_id and number.isdecimal()
    return (workflow_id, int(number)) if is_run else None
