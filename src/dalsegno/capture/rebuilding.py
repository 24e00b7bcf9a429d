"""Checkpoints read back from the targets, for when the store is lost. Only metadata is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dalsegno.capture.consumers import checked_consumer
from dalsegno.capture.context import CaptureContext
from dalsegno.errors import DataError, UserError
from dalsegno.iceberg.stamps import writes_of
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.recovery import Written, is_ahead, recovered_position, written_by_source


class Action(StrEnum):
    """What became of a checkpoint."""

    #: The store had none, or an older one.
    SET = "set"
    #: The store's is as new, or newer.
    KEPT = "kept"
    REFUSED = "refused"


@dataclass(frozen=True)
class RebuiltCheckpoint:
    """What the targets say about one consumer and source."""

    consumer: str
    table: TableName
    #: The newest capture that they know, and how many they know in all.
    capture_id: str
    captures: int
    #: The targets that hold what was written for it.
    targets: tuple[TableName, ...]
    action: Action
    #: Where the consumer stands, as the targets say; None if it is refused.
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


def rebuild(
    context: CaptureContext, targets: Sequence[TableName], consumer: str | None, *, is_dry_run: bool
) -> Rebuilt:
    by_target = {name: writes_of(name, context.tables.load(name).history()) for name in targets}
    sources = written_by_source(write for writes in by_target.values() for write in writes)
    return Rebuilt(
        is_dry_run,
        {name: len(writes) for name, writes in by_target.items()},
        tuple(
            _rebuilt(context, known, is_dry_run=is_dry_run)
            for (whose, _), known in sources.items()
            if consumer in (None, whose)
        ),
    )


def _rebuilt(context: CaptureContext, known: Sequence[Written], *, is_dry_run: bool) -> RebuiltCheckpoint:
    newest = known[-1]
    stamped, stored = newest.range, context.store.position(newest.range.consumer, newest.range.table)
    action, position, refusal = Action.REFUSED, None, None
    try:
        checked_consumer(stamped.consumer)
        source = context.tables.load(stamped.table).history(stamped.branch)
        found = recovered_position(source, known)
        action = Action.SET if stored is None or is_ahead(source, found, stored) else Action.KEPT
        if action is Action.SET and not is_dry_run:
            context.store.move_checkpoint(
                stamped.consumer,
                {stamped.table: (stored, found)},
                by=context.actor,
                now=context.clock(),
                reason=f"rebuilt from {', '.join(map(str, newest.targets))}: capture {stamped.capture_id}",
            )
        position = found
    except (DataError, UserError) as error:
        action, refusal = Action.REFUSED, {"code": error.code, "message": error.message, "hint": error.hint}
    return RebuiltCheckpoint(
        stamped.consumer,
        stamped.table,
        stamped.capture_id,
        len(known),
        newest.targets,
        action,
        position,
        stored,
        refusal,
    )
