"""Triggers that are watched, and the leases of those who watch them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "triggers",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("upto", moment()),
        sa.Column("next_at", moment()),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "kind", "name", name="pk_triggers"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_triggers_workflow_id"),
    )
    op.create_index("ix_triggers_next_at", "triggers", ["kind", "next_at"])

    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
