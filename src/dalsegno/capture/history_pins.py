"""A consumer's pin: it keeps what was not processed yet from expiring."""

from __future__ import annotations

from dalsegno.capture.context import CaptureContext
from dalsegno.clock import to_millis
from dalsegno.iceberg import pins
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.pins import Pin
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName


def pin(context: CaptureContext, table: LoadedTable, consumer: str, after: Position) -> tuple[LoadedTable, Pin]:
    """Hold all that came after a position; the table as it is then."""
    if table.metadata["table-uuid"] != after.table_uuid:
        return table, Pin(False, f"not pinned: {table.name} is another table by now")
    return pins.pin(
        context.tables.catalog_of(table.name),
        table,
        consumer,
        after,
        now_ms=to_millis(context.clock()),
        lifetime=context.settings.capture_lifetime,
    )


def pin_checkpoint(context: CaptureContext, name: TableName, consumer: str) -> None:
    """Move the consumer's pin to its checkpoint: what is processed may expire, what came since may not."""
    position = context.store.position(consumer, name)
    if position is not None:
        pin(context, context.tables.load(name), consumer, position)
