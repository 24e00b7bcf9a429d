"""What steps do behind captures, statement by statement; commits that wait for others; indexes for lists of runs."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision: str | None = "0007"


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("captures", sa.Column("commit_wanted_by", sa.Text()))

    op.create_table(
        "work_units",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("captures", sa.JSON(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("visited", sa.JSON(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("outputs", sa.JSON(), nullable=False),
        sa.Column("branch", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_work_units"),
    )
    op.create_index("ix_work_units_digest", "work_units", ["digest"])

    op.create_table(
        "work_unit_captures",
        sa.Column("capture_id", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name="fk_work_unit_captures_capture_id"),
        sa.ForeignKeyConstraint(["unit_id"], ["work_units.id"], name="fk_work_unit_captures_unit_id"),
        sa.PrimaryKeyConstraint("capture_id", "unit_id", name="pk_work_unit_captures"),
    )

    op.create_table(
        "work_statements",
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("target", sa.Text()),
        sa.Column("before", sa.JSON()),
        sa.Column("after", sa.BigInteger()),
        sa.Column("executor", sa.JSON()),
        sa.Column("variables", sa.JSON()),
        sa.Column("doubt", sa.Text()),
        sa.Column("begun_at", moment()),
        sa.Column("done_at", moment()),
        sa.ForeignKeyConstraint(["unit_id"], ["work_units.id"], name="fk_work_statements_unit_id"),
        sa.PrimaryKeyConstraint("unit_id", "number", name="pk_work_statements"),
    )
    op.create_index("ix_work_statements_target", "work_statements", ["target"])

    # Lists of runs, and the runs that a step has called, in large stores.
    op.create_index("ix_runs_created_at", "runs", ["created_at", "id"])
    op.create_index("ix_runs_status_created_at", "runs", ["status", "created_at", "id"])
    op.create_index("ix_runs_parent", "runs", ["parent_flow", "parent_step"])
