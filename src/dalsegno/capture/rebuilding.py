"""Checkpoints read back from the targets, for when the store is lost. Only metadata is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dalsegno.capture.consumers import checked_consumer
from dalsegno.errors import DataError, UserError
from dalsegno.iceberg.history import history_of
from dalsegno.iceberg.stamps import writes_of
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.recovery import Written, is_ahead, recovered_position, written_by_source

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake


class Action(StrEnum):
    """What became of a checkpoint."""

    #: The store had none, or an older one.
    SET = "set"
    #: The store's is as new, or newer.
    KEPT = "kept"
    REFUSED = "refused"


@dataclass(frozen=True)
class RebuiltCheckpoint:
    """What the targets tell of one consumer and source."""

    consumer: str
    table: TableName
    #: The newest capture that they know, and how many they know in all.
    capture_id: str
    captures: int
    #: The targets that hold what was written for it.
    targets: tuple[TableName, ...]
    action: Action
    #: Where the consumer stands, as the targets tell it; None if it is refused.
    position: Position | None
    #: Where it stood in the store.
    stored: Position | None
    #: Why it was refused: code, message, hint.
    refusal: Mapping[str, str | None] | None = None


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild found and did."""

    #: Whether it only looked.
    is_dry_run: bool
    #: Target → how many of its snapshots were written for captures.
    targets: Mapping[TableName, int]
    checkpoints: tuple[RebuiltCheckpoint, ...]


def rebuild(lake: Lake, targets: Sequence[TableName], consumer: str | None, *, is_dry_run: bool) -> Rebuilt:
    by_target = {name: writes_of(name, history_of(lake.load(name).metadata, table=name)) for name in targets}
    sources = written_by_source(write for writes in by_target.values() for write in writes)
    return Rebuilt(
        is_dry_run,
        {name: len(writes) for name, writes in by_target.items()},
        tuple(
            _rebuilt(lake, known, is_dry_run=is_dry_run)
            for (whose, _), known in sources.items()
            if consumer in (None, whose)
        ),
    )


def _rebuilt(lake: Lake, known: Sequence[Written], *, is_dry_run: bool) -> RebuiltCheckpoint:
    newest = known[-1]
    told, stored = newest.range, lake.store.position(newest.range.consumer, newest.range.table)
    action, position, refusal = Action.REFUSED, None, None
    try:
        checked_consumer(told.consumer)
        source = history_of(lake.load(told.table).metadata, told.branch, table=told.table)
        found = recovered_position(source, known)
        action = Action.SET if stored is None or is_ahead(source, found, stored) else Action.KEPT
        if action is Action.SET and not is_dry_run:
            lake.store.move_checkpoint(
                told.consumer,
                {told.table: (stored, found)},
                by=lake.actor,
                now=lake.clock(),
                reason=f"rebuilt from {', '.join(map(str, newest.targets))}: capture {told.capture_id}",
            )
        position = found
    except (DataError, UserError) as error:
        action, refusal = Action.REFUSED, {"code": error.code, "message": error.message, "hint": error.hint}
    return RebuiltCheckpoint(
        told.consumer, told.table, told.capture_id, len(known), newest.targets, action, position, stored, refusal
    )
