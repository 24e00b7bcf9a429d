"""Which snapshots of the sources are replayed, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN
from dalsegno.model.snapshots import Operation, Snapshot
from dalsegno.model.tables import TableName


@dataclass(frozen=True)
class Commit:
    """A snapshot of a source that is replayed."""

    table: TableName
    snapshot: Snapshot

    @property
    def kind(self) -> str:
        return "compaction" if self.snapshot.operation is Operation.REPLACE else self.snapshot.operation or "unknown"

    def __str__(self) -> str:
        added, removed = self.snapshot.count("added-records") or 0, self.snapshot.count("deleted-records") or 0
        rows = [f"+{added:,}"] * bool(added) + [f"-{removed:,}"] * bool(removed)
        return f"{self.kind} {' '.join(rows)} {self.table.name}".replace("  ", " ")


@dataclass(frozen=True)
class Past:
    """Where the sources begin, and what is committed to them from there on."""

    #: None: before the first snapshot.
    bases: Mapping[TableName, Snapshot | None]
    commits: tuple[Commit, ...]
    #: Sources without two snapshots to go from one to the other.
    without: tuple[TableName, ...]


def past_of(sources: Iterable[LoadedTable], most: int, pinned: Collection[TableName] = ()) -> Past:
    """The last commits to the main branches of all sources together, oldest first; those that are pinned do not move.

    The oldest snapshot of a source that there is can only be where it begins: what was before it is not known.
    """
    lines = {table.name: _line(table) for table in sources}
    known = [Commit(name, snapshot) for name, line in lines.items() if name not in pinned for snapshot in line[1:]]
    known.sort(key=lambda each: (each.snapshot.timestamp_ms, each.snapshot.sequence_number))
    commits = tuple(known[len(known) - most :] if len(known) > most else known)
    replayed = {(each.table, each.snapshot.id) for each in commits}
    bases = {
        name: next((each for each in reversed(line) if (name, each.id) not in replayed), None)
        for name, line in lines.items()
    }
    return Past(bases, commits, tuple(name for name, line in lines.items() if name not in pinned and not line[1:]))


def _line(table: LoadedTable) -> list[Snapshot]:
    history = table.history(MAIN)
    return list(reversed(list(history.ancestors(history.head))))
