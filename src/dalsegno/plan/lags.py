"""How far a consumer is behind its table."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.model.snapshots import History, Operation, Position, Snapshot


@dataclass(frozen=True)
class Lag:
    #: How many snapshots were not processed; None: that cannot be told.
    snapshots: int | None
    #: When the oldest of them was committed; None: there is none, or that cannot be told.
    oldest_ms: int | None
    #: Why it cannot be told.
    problem: str | None = None


def lag_of(history: History, position: Position) -> Lag:
    """What lies between a checkpoint and the head of its branch. Compaction changes no row, so nobody waits for it."""
    if history.table_uuid != position.table_uuid:
        return Lag(None, None, "The table was dropped and created anew.")
    waiting: list[Snapshot] = []
    for snapshot in history.ancestors(history.head):
        if snapshot.id == position.snapshot_id:
            break
        waiting.append(snapshot)
    else:
        is_whole = not waiting or waiting[-1].parent_id is None
        if position.snapshot_id is not None or not is_whole:
            return Lag(None, None, "The checkpoint is not in the history of the table any more.")
    counted = [snapshot for snapshot in waiting if snapshot.operation is not Operation.REPLACE]
    return Lag(len(counted), counted[-1].timestamp_ms if counted else None)
