"""Captures to store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dalsegno.model.captures import Capture, CapturedTable, CaptureState
from dalsegno.model.refreshes import Considered, Cost, ReadAs, Refresh, SourceRead, TargetWrite
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, StatementState, UnitKey, UnitState, WorkUnit
from dalsegno.store import Store, refreshes, work_units
from dalsegno.store.refresh_queries import decision_values

NOW = datetime(2026, 11, 15, 23, 19, 2, 123457, tzinfo=UTC)
PLAYBACK = TableName.of("lake.db.playback")
MEMBERS = TableName.of("lake.db.members")
TARGET = TableName.of("lake.db.`odd` näme")
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


def refresh(unit_id: str, capture_id: str = "c1") -> Refresh:
    return Refresh(
        unit_id=unit_id,
        capture_id=capture_id,
        target=TARGET,
        workflow_id="w",
        workflow_version=3,
        run_number=7,
        step_id="s",
        query_digest="d",
        strategy="append",
        why="Rows were only appended.",
        facts=("id is unique",),
        considered=(
            Considered("append", True, "Rows were only appended.", Cost(5, 1, 0.25)),
            Considered("full", True, "Always."),
        ),
        reads=(
            SourceRead(PLAYBACK, ReadAs.CHANGES, None, LARGE, 1, 2, 3),
            SourceRead(MEMBERS, ReadAs.PINNED, 4, 4),
        ),
        writes=(TargetWrite(TARGET, None, (LARGE, 2), 3, 4, 5), TargetWrite(MEMBERS, 7, (), is_companion=True)),
        expected_cost=Cost(5, 1, 0.25),
        full_cost=Cost(2**40, 2**33),
        cost=Cost(6, 5, 1.5),
        at=NOW,
        statements=("INSERT 1",),
    )


def work(store: Store, unit_id: str, capture_id: str = "c1", state: UnitState = UnitState.DONE) -> Refresh:
    """A unit behind a capture, and what it did."""
    done = refresh(unit_id, capture_id)
    unit = WorkUnit(
        unit_id,
        UnitKey((capture_id,), "w", "s"),
        state,
        "t",
        "w/7",
        NOW,
        statements=(Statement(1, "INSERT 1", StatementState.DONE),),
        decision=decision_values(done),
    )
    with store.database.writing() as connection:
        work_units.add(connection, unit)
        refreshes.add(connection, done)
        # As a retry of the same transaction does.
        refreshes.add(connection, done)
        assert work_units.the(connection, unit_id) == unit
    return done
