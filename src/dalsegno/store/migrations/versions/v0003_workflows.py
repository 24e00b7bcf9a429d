"""Workflows, their versions and their runs."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "workflows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("active_version", sa.Integer()),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("last_run", sa.Integer(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("changed_at", moment(), nullable=False),
        sa.Column("deleted_at", moment()),
        sa.PrimaryKeyConstraint("id", name="pk_workflows"),
    )

    op.create_table(
        "versions",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "version", name="pk_versions"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_versions_workflow_id"),
    )

    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("is_paused", sa.Boolean(), nullable=False),
        sa.Column("run_params", sa.JSON(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("initiator", sa.JSON(), nullable=False),
        sa.Column("parent_run", sa.Text()),
        sa.Column("parent_flow", sa.Text()),
        sa.Column("parent_step", sa.Text()),
        sa.Column("root_run", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("last_unique_id", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("started_at", moment()),
        sa.Column("ended_at", moment()),
        sa.Column("deadline", moment()),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_runs_workflow_id"),
    )
    op.create_index("ix_runs_root_run", "runs", ["root_run"])
    op.create_index("ix_runs_status", "runs", ["status", "workflow_id"])
    op.create_index("uq_runs_idempotency_key", "runs", ["workflow_id", "idempotency_key"], unique=True)
    op.create_index("uq_runs_number", "runs", ["workflow_id", "number"], unique=True)

    op.create_table(
        "flows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("ending", sa.Text()),
        sa.Column("parent_flow", sa.Text()),
        sa.Column("parent_step", sa.Text()),
        sa.Column("iteration", sa.Integer()),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("started_at", moment()),
        sa.Column("ended_at", moment()),
        sa.PrimaryKeyConstraint("id", name="pk_flows"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_flows_run_id"),
    )
    op.create_index("ix_flows_parent", "flows", ["parent_flow", "parent_step", "iteration"])
    op.create_index("ix_flows_run_id", "flows", ["run_id", "status"])

    op.create_table(
        "steps",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("tried", sa.JSON(), nullable=False),
        sa.Column("ready_at", moment()),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("ending", sa.Text()),
        sa.Column("taken", sa.JSON(), nullable=False),
        sa.Column("loop", sa.JSON()),
        sa.Column("failure", sa.JSON()),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", moment()),
        sa.Column("params", sa.JSON()),
        sa.Column("outputs", sa.JSON()),
        sa.Column("handle", sa.JSON()),
        sa.Column("progress", sa.JSON()),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("started_at", moment()),
        sa.Column("ended_at", moment()),
        sa.Column("deadline", moment()),
        sa.PrimaryKeyConstraint("flow_id", "step_id", name="pk_steps"),
        sa.ForeignKeyConstraint(["flow_id"], ["flows.id"], name="fk_steps_flow_id"),
    )
    op.create_index(
        "ix_steps_lease_until",
        "steps",
        ["lease_until"],
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_index(
        "ix_steps_ready_at",
        "steps",
        ["ready_at"],
        sqlite_where=sa.text("ready_at IS NOT NULL"),
        postgresql_where=sa.text("ready_at IS NOT NULL"),
    )
    op.create_index(
        "ix_steps_deadline",
        "steps",
        ["deadline"],
        sqlite_where=sa.text("status = 'RUNNING'"),
        postgresql_where=sa.text("status = 'RUNNING'"),
    )
    op.create_index("ix_steps_run_id", "steps", ["run_id", "status"])

    op.create_table(
        "templates",
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("changed_at", moment(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_type", "version", name="pk_templates"),
    )

    op.create_table(
        "permits",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", "flow_id", "step_id", name="pk_permits"),
    )

    op.create_table(
        "limits",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tag", name="pk_limits"),
    )

    op.create_table(
        "breakpoints",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "step_id", name="pk_breakpoints"),
    )

    op.create_table(
        "inbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
        sqlite_autoincrement=True,
    )

    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text()),
        sa.Column("step_id", sa.Text()),
        sa.Column("attempt", sa.Integer()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("happened_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_run_id", "events", ["run_id", "id"])

    op.create_table(
        "nodes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("process_began", sa.Text(), nullable=False),
        sa.Column("started_at", moment(), nullable=False),
        sa.Column("seen_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
    )
