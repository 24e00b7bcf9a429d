"""A table's past, as its metadata tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Operation(StrEnum):
    """What a snapshot did, in Iceberg's words."""

    #: Only added files.
    APPEND = "append"
    #: Rewrote files without changing a row, as compaction does.
    REPLACE = "replace"
    #: Removed some rows or files and added others.
    OVERWRITE = "overwrite"
    #: Only removed.
    DELETE = "delete"


@dataclass(frozen=True)
class Snapshot:
    """One commit of a table."""

    id: int
    #: None on the first snapshot of a table, and after some tools expired the parent.
    parent_id: int | None
    #: 0 on tables of format version 1.
    sequence_number: int
    timestamp_ms: int
    #: None where the writer did not say.
    operation: Operation | None
    schema_id: int | None
    manifest_list: str
    summary: Mapping[str, str]
    #: Whether every row has an id of its own, as in format version 3.
    has_row_ids: bool = False

    def count(self, key: str) -> int | None:
        """A number of the summary, or None where the writer left it out or wrote no number."""
        text = self.summary.get(key)
        return int(text) if text is not None and text.isdecimal() else None


@dataclass(frozen=True)
class History:
    """Every snapshot the table still knows, and where one of its branches stands."""

    table_uuid: str
    format_version: int
    branch: str
    #: None while nothing was ever written to the branch.
    head: Snapshot | None
    current_schema_id: int
    snapshots: Mapping[int, Snapshot]

    def ancestors(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """The snapshot, its parent and so on, for as long as they are known."""
        while snapshot is not None:
            yield snapshot
            snapshot = self.snapshots.get(snapshot.parent_id) if snapshot.parent_id is not None else None

    def position(self, snapshot: Snapshot | None) -> Position:
        """The checkpoint that says: all up to and including this snapshot is processed."""
        if snapshot is None:
            return Position(self.table_uuid, self.branch, None, 0, None, self.current_schema_id)
        # A reader of the branch sees the table's current schema, a reader of an older snapshot that one's own.
        is_head = self.head is not None and snapshot.id == self.head.id
        schema_id = self.current_schema_id if is_head or snapshot.schema_id is None else snapshot.schema_id
        return Position(
            self.table_uuid,
            self.branch,
            snapshot.id,
            snapshot.sequence_number,
            snapshot.timestamp_ms,
            schema_id,
        )


@dataclass(frozen=True)
class Position:
    """How far into one table's history somebody has come: the content of a checkpoint."""

    table_uuid: str
    branch: str
    #: None: before the first snapshot.
    snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int | None
    schema_id: int

    def is_at(self, other: Position) -> bool:
        """The same mark; the schema may have moved on without a snapshot."""
        return (self.table_uuid, self.branch, self.snapshot_id) == (
            other.table_uuid,
            other.branch,
            other.snapshot_id,
        )

    def __str__(self) -> str:
        return "the beginning" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
