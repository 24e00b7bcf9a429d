"""A capture: what a consumer was handed, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dalsegno.model.snapshots import Position
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


@dataclass(frozen=True)
class CapturedTable:
    """One source of a capture: the half-open range ``(after, upto]`` and the change table made of it."""

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
    #: What the capture found (files, rows, bytes, partitions, ranges …); empty until it is ready.
    details: Mapping[str, Any] = field(default_factory=dict)


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
