"""Statements that write refreshes; every function works inside its caller's transaction."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from dalsegno.model.refreshes import Refresh
from dalsegno.model.work_units import UnitState
from dalsegno.store.refresh_queries import details_of
from dalsegno.store.refresh_tables import refresh_reads, refresh_writes, refreshes
from dalsegno.store.work_tables import work_units


def add(connection: Connection, refresh: Refresh) -> None:
    """Remember what a unit did, instead of what was known before; it counts when its capture is committed."""
    for table in (refresh_reads, refresh_writes, refreshes):
        connection.execute(delete(table).where(table.c.unit_id == refresh.unit_id))
    values = {
        "unit_id": refresh.unit_id,
        "capture_id": refresh.capture_id,
        "target": str(refresh.target),
        "workflow_id": refresh.workflow_id,
        "workflow_version": refresh.workflow_version,
        "run_number": refresh.run_number,
        "step_id": refresh.step_id,
        "query_digest": refresh.query_digest,
        "strategy": refresh.strategy,
        "why": refresh.why,
        "bytes_read": refresh.cost.bytes_read,
        "bytes_written": refresh.cost.bytes_written,
        "seconds": refresh.cost.seconds,
        "details": details_of(refresh),
    }
    connection.execute(insert(refreshes).values(values))
    reads = [
        {
            "unit_id": refresh.unit_id,
            "ordinal": ordinal,
            "table_name": str(each.table),
            "read_as": each.read_as.value,
            "after_snapshot_id": each.after_snapshot,
            "upto_snapshot_id": each.upto_snapshot,
            "file_count": each.files,
            "row_count": each.rows,
            "byte_count": each.bytes,
        }
        for ordinal, each in enumerate(refresh.reads)
    ]
    writes = [
        {
            "unit_id": refresh.unit_id,
            "ordinal": ordinal,
            "table_name": str(each.table),
            "before_snapshot_id": each.before_snapshot,
            "snapshots": list(map(str, each.snapshots)),
            "added_rows": each.added_rows,
            "removed_rows": each.removed_rows,
            "added_bytes": each.added_bytes,
            "is_companion": each.is_companion,
        }
        for ordinal, each in enumerate(refresh.writes)
    ]
    for table, found in ((refresh_reads, reads), (refresh_writes, writes)):
        if found:
            connection.execute(insert(table), found)


def commit(connection: Connection, capture_id: str, now: datetime) -> None:
    """Let what was done behind a capture count, in the transaction that commits the capture."""
    is_done = select(work_units.c.id).where(work_units.c.state == UnitState.DONE.value)
    which = (refreshes.c.capture_id == capture_id) & refreshes.c.unit_id.in_(is_done)
    connection.execute(update(refreshes).where(which).values(committed_at=now))
