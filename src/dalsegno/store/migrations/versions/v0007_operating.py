"""Tokens of the server, messages to people, how far consumers are behind, and traces were told."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("revoked_at", moment()),
        sa.PrimaryKeyConstraint("digest", name="pk_tokens"),
    )

    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("next_at", moment()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("sent_at", moment()),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_outbox_key", "outbox", ["key", "channel"], unique=True)
    op.create_index("ix_outbox_next_at", "outbox", ["next_at"])

    op.create_table(
        "lags",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("snapshots", sa.Integer()),
        sa.Column("oldest_at", moment()),
        sa.Column("measured_at", moment(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.Column("told_at", moment()),
        sa.PrimaryKeyConstraint("consumer", "table_name", name="pk_lags"),
    )

    op.create_table(
        "progress",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_progress"),
    )

    # Runs that captures name are kept for as long as these are.
    op.create_index("ix_captures_created_by", "captures", ["created_by"])
