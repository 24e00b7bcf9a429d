"""Captures to store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dalsegno.model.captures import Capture, CapturedTable, CaptureState
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import Store

NOW = datetime(2026, 11, 15, 23, 19, 2, 123457, tzinfo=UTC)
PLAYBACK = TableName.of("lake.db.playback")
MEMBERS = TableName.of("lake.db.members")
#: Snapshot ids are random 64-bit numbers; no float holds this one.
LARGE = 2**63 - 1


def at(snapshot_id: int | None, *, uuid: str = "uuid-1", branch: str = "main", schema_id: int = 0) -> Position:
    sequence_number = (snapshot_id or 0) % 1000
    timestamp_ms = None if snapshot_id is None else 1_800_000_000_000 + sequence_number
    return Position(uuid, branch, snapshot_id, sequence_number, timestamp_ms, schema_id)


def capture(
    id: str = "c1",
    *,
    consumer: str = "daily",
    after: int | None = None,
    upto: int = 10,
    is_first: bool | None = None,
    tables: tuple[TableName, ...] = (PLAYBACK,),
    created_by: str = "ada@laptop",
    created_at: datetime = NOW,
) -> Capture:
    return Capture(
        id=id,
        consumer=consumer,
        state=CaptureState.PREPARING,
        created_at=created_at,
        created_by=created_by,
        expires_at=created_at + timedelta(days=7),
        tables=tuple(
            CapturedTable(
                table=table,
                after=at(after),
                upto=at(upto),
                is_first=after is None if is_first is None else is_first,
                is_full=False,
                change_table=TableName.of(f"lake.changes.{id}_{table.name}"),
                location=f"file:///warehouse/changes/{id}/{table.name}",
            )
            for table in tables
        ),
    )


def make_ready(store: Store, new: Capture) -> Capture:
    store.record_capture(new)
    return store.mark_ready(new.id, {captured.table: {"files": 3} for captured in new.tables})


def process(store: Store, new: Capture) -> None:
    make_ready(store, new)
    store.commit(new.id, by="ada@laptop", now=NOW)
