"""What the snapshots of a target say about the ranges they were written for."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.model.tables import TableName


@dataclass(frozen=True)
class StampedRange:
    """One source of a capture, as what was written for it names it."""

    capture_id: str
    consumer: str
    table: TableName
    table_uuid: str
    branch: str
    #: None: before the first snapshot.
    after: int | None
    upto: int | None


@dataclass(frozen=True)
class Write:
    """A snapshot of a target that was written for captures."""

    target: TableName
    snapshot_id: int
    timestamp_ms: int
    #: Which step wrote it, the same in every run, and which of its statements if they are counted.
    workflow: str
    place: str
    statement: str
    ranges: tuple[StampedRange, ...]
