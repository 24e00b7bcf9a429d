"""Checkpoints that people look up and move by hand."""

from __future__ import annotations

from dalsegno.capture.consumers import checked_consumer
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.renames import checkpoint_of, refuse_pending_elsewhere
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.history import MAIN
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.captures import Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.starts import Earliest, parse_start
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import may_reprocess, starting_position


def position_of(context: CaptureContext, consumer: str, name: TableName) -> Position | None:
    """Where a consumer stands on a table, whatever the table was called before; None before its first commit."""
    positions = context.store.positions(consumer)
    if (known := next((each.position for each in positions if each.table == name), None)) is not None:
        return known
    # With a start, nothing is refused: there is nothing to capture.
    request = TableRequest(name, consumer, start=Earliest())
    return checkpoint_of(context.tables, context.store, request, context.tables.load(name), positions).position


def set_checkpoint(
    context: CaptureContext,
    name: TableName,
    consumer: str,
    to: str,
    *,
    branch: str | None,
    reason: str,
    reprocess: bool,
) -> Checkpoint:
    expected = context.store.position(checked_consumer(consumer), name)
    loaded = context.tables.load(name)
    refuse_pending_elsewhere(context.tables, context.store, consumer, loaded)
    history = loaded.history(branch or (expected.branch if expected else MAIN))
    position = starting_position(name, history, parse_start(to), history.head)
    # Also under a name that the table had before.
    processed = position_of(context, consumer, name)
    if processed is not None and not reprocess and may_reprocess(history, processed, position):
        raise UserError(
            f"{consumer!r} has processed {name} up to {processed}; from {position}, rows would be handed out again: "
            "targets that have them would get them twice, and groups that are gone since would stay.",
            actions=[
                action("To rebuild the targets of a workflow", Verb.RUN, full_refresh=True),
                action(
                    "If the targets no longer have these rows",
                    Verb.SET_CHECKPOINT,
                    table=str(name),
                    consumer=consumer,
                    to=to,
                    reprocess=True,
                ),
            ],
        )
    return context.store.move_checkpoint(
        consumer, {name: (expected, position)}, by=context.actor, now=context.clock(), reason=reason
    )
