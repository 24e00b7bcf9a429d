"""Signals, the steps that wait for them, and the triggers that they begin runs by."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "signals",
        sa.Column("id", NUMBER, sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("announced_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signals"),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_signals_key", "signals", ["name", "key"], unique=True)
    op.create_index("ix_signals_name", "signals", ["name", "id"])

    op.create_table(
        "signal_waits",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("signal_id", sa.BigInteger()),
        sa.PrimaryKeyConstraint("flow_id", "step_id", "number", name="pk_signal_waits"),
    )
    op.create_index("ix_signal_waits_run_id", "signal_waits", ["run_id"])
    op.create_index(
        "ix_signal_waits_signal_name",
        "signal_waits",
        ["signal_name"],
        sqlite_where=sa.text("signal_id IS NULL"),
        postgresql_where=sa.text("signal_id IS NULL"),
    )

    op.create_table(
        "signal_subscriptions",
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("trigger_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("signal_name", "workflow_id", "trigger_name", name="pk_signal_subscriptions"),
    )
    op.create_index("ix_signal_subscriptions_workflow_id", "signal_subscriptions", ["workflow_id", "trigger_name"])

    op.create_table(
        "signal_arrivals",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("trigger_name", sa.Text(), nullable=False),
        sa.Column("signal_id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text()),
        sa.Column("join_key", sa.Text()),
        sa.Column("run_key", sa.Text()),
        sa.PrimaryKeyConstraint("workflow_id", "trigger_name", "signal_id", name="pk_signal_arrivals"),
        sa.ForeignKeyConstraint(["signal_id"], ["signals.id"], name="fk_signal_arrivals_signal_id"),
    )
    op.create_index(
        "ix_signal_arrivals_group_name",
        "signal_arrivals",
        ["workflow_id", "trigger_name", "group_name", "signal_name", "signal_id"],
    )
