"""Captures, and the checkpoints they move."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def position_columns(prefix: str = "") -> list[sa.Column[Any]]:
    return [
        sa.Column(f"{prefix}table_uuid", sa.Text(), nullable=False),
        sa.Column(f"{prefix}branch", sa.Text(), nullable=False),
        sa.Column(f"{prefix}snapshot_id", sa.BigInteger()),
        sa.Column(f"{prefix}sequence_number", sa.BigInteger(), nullable=False),
        sa.Column(f"{prefix}timestamp_ms", sa.BigInteger()),
        sa.Column(f"{prefix}schema_id", sa.Integer(), nullable=False),
    ]


def upgrade() -> None:
    op.create_table(
        "captures",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", moment(), nullable=False),
        sa.Column("settled_at", moment()),
        sa.Column("settled_by", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("dropped_at", moment()),
        sa.PrimaryKeyConstraint("id", name="pk_captures"),
    )
    op.create_index("ix_captures_consumer", "captures", ["consumer", "created_at"])

    op.create_table(
        "capture_tables",
        sa.Column("capture_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        *position_columns("after_"),
        *position_columns("upto_"),
        sa.Column("is_first", sa.Boolean(), nullable=False),
        sa.Column("is_full", sa.Boolean(), nullable=False),
        sa.Column("change_table", sa.Text(), nullable=False),
        sa.Column("dropped", sa.Boolean(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("capture_id", "ordinal", name="pk_capture_tables"),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name="fk_capture_tables_capture_id"),
    )
    pending, present = sa.text("pending = true"), sa.text("dropped = false")
    if op.get_bind().dialect.name == "sqlite":
        pending, present = sa.text("pending = 1"), sa.text("dropped = 0")
    op.create_index(
        "uq_capture_tables_pending",
        "capture_tables",
        ["consumer", "table_name"],
        unique=True,
        sqlite_where=pending,
        postgresql_where=pending,
    )
    op.create_index(
        "uq_capture_tables_change_table",
        "capture_tables",
        ["change_table"],
        unique=True,
        sqlite_where=present,
        postgresql_where=present,
    )

    op.create_table(
        "checkpoints",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("capture_id", sa.Text()),
        sa.Column("moved_at", moment(), nullable=False),
        sa.Column("moved_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name="fk_checkpoints_capture_id"),
        sa.UniqueConstraint("capture_id", name="uq_checkpoints_capture_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_checkpoints_consumer", "checkpoints", ["consumer"])

    op.create_table(
        "checkpoint_positions",
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        *position_columns(),
        sa.PrimaryKeyConstraint("checkpoint_id", "table_name", name="pk_checkpoint_positions"),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name="fk_checkpoint_positions_checkpoint_id"),
    )

    op.create_table(
        "positions",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        *position_columns(),
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", "table_name", name="pk_positions"),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name="fk_positions_checkpoint_id"),
    )
