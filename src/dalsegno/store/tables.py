"""The schema as it is now. ``migrations`` leads every older database here; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    false,
    true,
)
from sqlalchemy.types import TypeEngine

from dalsegno.store.partial_indexes import partial_index
from dalsegno.store.reading import EPOCH, MICROSECOND


class Moment(TypeDecorator[datetime]):
    """A time in UTC: ``timestamptz`` in PostgreSQL, microseconds since 1970 in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(BigInteger() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; the store keeps moments, not wall clocks")
        # Whole numbers throughout: a float cannot hold today's microseconds exactly.
        return (value - EPOCH) // MICROSECOND if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = EPOCH + value * MICROSECOND if dialect.name == "sqlite" else value
        return moment.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


#: Which step of ``migrations`` the database is at; the shape is Alembic's. The name is not its usual one: a
#: PostgreSQL database may be shared with something else that uses Alembic.
schema_version = Table(
    "dalsegno_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="dalsegno_version_pkc"),
)

#: Which dalsegno works with the database although it is newer: the schema version it has, and the oldest one whose
#: dalsegno gets along with that.
compatibility = Table(
    "dalsegno_compatibility",
    metadata,
    Column("version", Text, primary_key=True),
    Column("oldest", Text, nullable=False),
)


def position_columns(prefix: str = "") -> list[Column[Any]]:
    """A ``Position``, field by field: the first three say where it is, the others help people."""
    return [
        Column(f"{prefix}table_uuid", Text, nullable=False),
        Column(f"{prefix}branch", Text, nullable=False),
        Column(f"{prefix}snapshot_id", BigInteger),
        Column(f"{prefix}sequence_number", BigInteger, nullable=False),
        Column(f"{prefix}timestamp_ms", BigInteger),
        Column(f"{prefix}schema_id", Integer, nullable=False),
    ]


captures = Table(
    "captures",
    metadata,
    Column("id", Text, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("settled_at", Moment),
    Column("settled_by", Text),
    Column("reason", Text),
    Column("dropped_at", Moment),
    # The run whose commit waits for those of captures that were consumed together with this one.
    Column("commit_wanted_by", Text),
    Index("ix_captures_consumer", "consumer", "created_at"),
    Index("ix_captures_created_by", "created_by"),
)

capture_tables = Table(
    "capture_tables",
    metadata,
    Column("capture_id", Text, ForeignKey("captures.id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    # The capture's own consumer, repeated so that an index can hold it together with the table.
    Column("consumer", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    # Whether the capture is pending, repeated for the same reason.
    Column("pending", Boolean, nullable=False),
    *position_columns("after_"),
    *position_columns("upto_"),
    Column("is_first", Boolean, nullable=False),
    Column("is_full", Boolean, nullable=False),
    Column("change_table", Text, nullable=False),
    # Whether the change table was removed, so that its name is free again.
    Column("dropped", Boolean, nullable=False),
    Column("location", Text, nullable=False),
    # Text rather than PostgreSQL's jsonb: that one refuses \u0000, which a partition value may hold.
    Column("details", JSON, nullable=False),
    # How it is captured; empty: the added files, as before there was another way.
    Column("capture_spec", JSON, nullable=False, server_default="{}"),
)

#: Rule 1: this is what keeps a capture until it is settled. SQLite uses a partial index only for a query that
#: says its condition in the same words, and ours say ``= 1``.
partial_index(
    "uq_capture_tables_pending",
    capture_tables.c.consumer,
    capture_tables.c.table_name,
    unique=True,
    where=capture_tables.c.pending == true(),
)

partial_index(
    "uq_capture_tables_change_table",
    capture_tables.c.change_table,
    unique=True,
    where=capture_tables.c.dropped == false(),
)

#: Append-only: every move of every checkpoint.
checkpoints = Table(
    "checkpoints",
    metadata,
    # SQLite counts up by itself only in a column that is exactly INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    Column("consumer", Text, nullable=False),
    # Unique: a capture moves its checkpoint once.
    Column("capture_id", Text, ForeignKey("captures.id"), unique=True),
    Column("moved_at", Moment, nullable=False),
    Column("moved_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_checkpoints_consumer", "consumer"),
    # A number is never used again, so that "newest first" is a matter of the number.
    sqlite_autoincrement=True,
)

checkpoint_positions = Table(
    "checkpoint_positions",
    metadata,
    Column("checkpoint_id", BigInteger, ForeignKey("checkpoints.id"), primary_key=True),
    Column("table_name", Text, primary_key=True),
    *position_columns(),
)

#: Where each checkpoint stands: the newest of its moves.
positions = Table(
    "positions",
    metadata,
    Column("consumer", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    *position_columns(),
    Column("checkpoint_id", BigInteger, ForeignKey("checkpoints.id"), nullable=False),
)
