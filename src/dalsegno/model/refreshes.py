"""A refresh: what one run of a declared table read, wrote and cost, by which strategy, and why.

Refreshes are never removed with runs: costs are learned from them, and lineage and backfill read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dalsegno.model.tables import TableName


class ReadAs(StrEnum):
    """In which way a refresh reads a source."""

    #: What changed between two snapshots; parts of the state at the end of them, too, if the strategy needs them.
    CHANGES = "changes"
    #: All of it, as of a snapshot.
    STATE = "state"
    #: The same, as of a snapshot that only a full refresh moves.
    PINNED = "pinned"


@dataclass(frozen=True)
class SourceRead:
    """One source, and the snapshots that a refresh read of it."""

    table: TableName
    read_as: ReadAs
    #: None: from the beginning.
    after_snapshot: int | None
    #: None: the table had no snapshot.
    upto_snapshot: int | None
    #: Of what changed, from metadata.
    files: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class TargetWrite:
    """The target, or a companion table that keeps state for it."""

    table: TableName
    before_snapshot: int | None
    #: In order; empty if nothing was to be written.
    snapshots: tuple[int, ...]
    added_rows: int = 0
    removed_rows: int = 0
    added_bytes: int = 0
    is_companion: bool = False


@dataclass(frozen=True)
class Cost:
    """What one way to refresh costs: bytes from metadata; seconds, measured or expected."""

    bytes_read: int
    bytes_written: int
    #: None: nobody knows yet.
    seconds: float | None = None


@dataclass(frozen=True)
class Considered:
    """A strategy, whether it is right for what changed, and what it would cost."""

    strategy: str
    is_possible: bool
    why: str
    expected: Cost | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a refresh is going to do, stored with its first statement: whoever resumes it does the same."""

    target: TableName
    #: Of the SELECT and the settings of Spark that change its result.
    query_digest: str
    strategy: str
    why: str
    #: Whether rows were ``appended`` only, or ``any`` change was made; empty if all was computed anyway.
    changed: str = ""
    #: What the strategy depends on: checked, or trusted by the author.
    facts: tuple[str, ...] = ()
    considered: tuple[Considered, ...] = ()
    reads: tuple[SourceRead, ...] = ()
    #: None: nobody has estimated it.
    expected_cost: Cost | None = None
    #: What a full refresh would cost at this moment.
    full_cost: Cost | None = None


@dataclass(frozen=True, kw_only=True)
class Refresh(Decision):
    """What one run of a declared table did."""

    #: The work unit that it is: its snapshots are stamped with it.
    unit_id: str
    capture_id: str
    workflow_id: str
    workflow_version: int
    run_number: int
    step_id: str
    writes: tuple[TargetWrite, ...]
    cost: Cost
    #: When it was committed.
    at: datetime
    #: SQL, as it was executed; secrets are left out.
    statements: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rows_written(self) -> int:
        return sum(each.added_rows for each in self.writes if not each.is_companion)

    @property
    def saved_bytes(self) -> int | None:
        """What was not read and written, compared with a full refresh; None if it is not known."""
        if self.full_cost is None:
            return None
        full, ours = self.full_cost, self.cost
        return full.bytes_read + full.bytes_written - ours.bytes_read - ours.bytes_written
