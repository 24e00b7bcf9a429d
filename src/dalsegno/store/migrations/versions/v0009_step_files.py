"""The content of files that steps name is part of a version."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision: str | None = "0008"


def upgrade() -> None:
    op.create_table(
        "file_contents",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_file_contents"),
    )

    op.create_table(
        "version_files",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text()),
        sa.Column("unstored", sa.Text()),
        sa.ForeignKeyConstraint(
            ["workflow_id", "version"],
            ["versions.workflow_id", "versions.version"],
            name="fk_version_files_workflow_id",
        ),
        sa.ForeignKeyConstraint(["digest"], ["file_contents.digest"], name="fk_version_files_digest"),
        sa.PrimaryKeyConstraint("workflow_id", "version", "step_id", "field", "name", name="pk_version_files"),
    )
    op.create_index("ix_version_files_digest", "version_files", ["digest"])

    op.create_table(
        "template_files",
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text()),
        sa.Column("unstored", sa.Text()),
        sa.ForeignKeyConstraint(
            ["job_type", "version"], ["templates.job_type", "templates.version"], name="fk_template_files_job_type"
        ),
        sa.ForeignKeyConstraint(["digest"], ["file_contents.digest"], name="fk_template_files_digest"),
        sa.PrimaryKeyConstraint("job_type", "version", "field", "name", name="pk_template_files"),
    )
    op.create_index("ix_template_files_digest", "template_files", ["digest"])
