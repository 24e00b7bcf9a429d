"""The tables of refreshes: what work units have read and written, once all of it is done.

Runs are removed in time, and snapshots expire. These rows stay: costs are learned from them, and lineage and backfill
read them. There is one for each unit of a declared table; the shape fits any other work behind captures.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text

from dalsegno.store.tables import Moment, metadata

refreshes = Table(
    "refreshes",
    metadata,
    Column("unit_id", Text, ForeignKey("work_units.id"), primary_key=True),
    Column("capture_id", Text, ForeignKey("captures.id"), nullable=False),
    Column("target", Text, nullable=False),
    # No foreign keys: runs and workflows may be deleted.
    Column("workflow_id", Text, nullable=False),
    Column("workflow_version", Integer, nullable=False),
    Column("run_number", Integer, nullable=False),
    Column("step_id", Text, nullable=False),
    Column("query_digest", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("bytes_read", BigInteger, nullable=False),
    Column("bytes_written", BigInteger, nullable=False),
    Column("seconds", Float),
    # Facts, the other strategies, expected costs.
    Column("details", JSON, nullable=False),
    # None: the work is done, but its capture is still pending, or the work was undone.
    Column("committed_at", Moment),
    Index("ix_refreshes_target", "target", "committed_at"),
    Index("ix_refreshes_capture_id", "capture_id"),
)

refresh_reads = Table(
    "refresh_reads",
    metadata,
    Column("unit_id", Text, ForeignKey("refreshes.unit_id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("table_name", Text, nullable=False),
    Column("read_as", Text, nullable=False),
    Column("after_snapshot_id", BigInteger),
    Column("upto_snapshot_id", BigInteger),
    Column("file_count", BigInteger, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("byte_count", BigInteger, nullable=False),
    Index("ix_refresh_reads_table_name", "table_name"),
)

refresh_writes = Table(
    "refresh_writes",
    metadata,
    Column("unit_id", Text, ForeignKey("refreshes.unit_id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("table_name", Text, nullable=False),
    Column("before_snapshot_id", BigInteger),
    # Ids as texts, because many readers of JSON keep 53 bits.
    Column("snapshots", JSON, nullable=False),
    Column("added_rows", BigInteger, nullable=False),
    Column("removed_rows", BigInteger, nullable=False),
    Column("added_bytes", BigInteger, nullable=False),
    Column("is_companion", Boolean, nullable=False),
    Index("ix_refresh_writes_table_name", "table_name"),
)
