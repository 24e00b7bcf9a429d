"""What a capture would do with each table: an increment, or a refusal.

``capturing`` carries the decision out, ``planning`` shows it, ``watching`` asks what it would be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dalsegno.capture import views
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.details import check_columns, refuse_unreadable
from dalsegno.capture.renames import CheckpointOfTable, checkpoint_of
from dalsegno.clock import to_millis
from dalsegno.errors import DataError, UserError
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.manifests import adds_everything
from dalsegno.model.capture_requests import CaptureRequest, TableRequest
from dalsegno.model.captures import Mode
from dalsegno.model.snapshots import History, Position
from dalsegno.model.starts import Since
from dalsegno.plan.increments import Increment, next_increment, unproven_beginning


@dataclass(frozen=True)
class Decision:
    """What a capture would do with one table."""

    #: With the start and the end that count.
    request: TableRequest
    table: LoadedTable
    history: History
    #: None if it is not known where the consumer's checkpoint is; then the capture is refused.
    checkpoint: CheckpointOfTable | None
    outcome: Increment | DataError | UserError

    @property
    def increment(self) -> Increment:
        """The range to capture, or its refusal as an error."""
        if isinstance(self.outcome, Increment):
            return self.outcome
        raise self.outcome


def decide(context: CaptureContext, request: CaptureRequest) -> list[Decision]:
    # One moment for all tables, taken before the first is loaded: each then has all it held at that moment.
    now = Since(to_millis(context.clock())) if len(request.tables) > 1 else None
    loaded = load_checked(context, request)
    positions = context.store.positions(request.consumer)
    decisions = []
    for asked, table in zip(request.tables, loaded, strict=True):
        cut = replace(asked, end=asked.end or now)
        history = table.history(cut.branch)
        try:
            checkpoint = checkpoint_of(context.tables, context.store, cut, table, positions)
        except DataError as error:
            decisions.append(Decision(cut, table, history, None, error))
            continue
        begun = with_start(cut, checkpoint)
        catalog = context.tables.catalog_of(table.name)
        decisions.append(
            Decision(begun, table, history, checkpoint, _outcome(catalog, table, begun, checkpoint.position))
        )
    return decisions


def load_checked(context: CaptureContext, request: CaptureRequest) -> list[LoadedTable]:
    """The tables, if they have the columns that the request names."""
    loaded = [context.tables.load(each.table) for each in request.tables]
    check_columns(loaded, request)
    return loaded


def with_start(request: TableRequest, checkpoint: CheckpointOfTable) -> TableRequest:
    """The request with the start of a first capture that was abandoned, unless the user chose another."""
    return replace(request, start=request.start or checkpoint.abandoned_start)


def next_range(
    catalog: Catalog, table: LoadedTable, request: TableRequest, history: History, position: Position | None
) -> Increment:
    """The range that the request captures next, or a refusal, as far as the table's metadata file shows."""
    increment = next_increment(request, history, position)
    refuse_unreadable(table, history, increment, request.consumer)
    if increment.spec.mode is Mode.VIEW:
        views.refuse_view(catalog, table, history, increment)
    return increment


def _outcome(
    catalog: Catalog, table: LoadedTable, request: TableRequest, position: Position | None
) -> Increment | DataError | UserError:
    try:
        increment = next_range(catalog, table, request, table.history(request.branch), position)
    except (DataError, UserError) as error:
        return error
    if increment.root is not None and not adds_everything(table.files, increment.root):
        return unproven_beginning(table.name, request.consumer, increment.root)
    return increment
