"""The tables of the files that steps name: each content once, and which version or job template has it."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, ForeignKeyConstraint, Index, Integer, Table, Text

from dalsegno.store.tables import metadata

file_contents = Table(
    "file_contents",
    metadata,
    # SHA-256 of the content in UTF-8.
    Column("digest", Text, primary_key=True),
    Column("size", Integer, nullable=False),
    Column("content", Text, nullable=False),
)

version_files = Table(
    "version_files",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("step_id", Text, primary_key=True),
    # Such as sql.file.
    Column("field", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    # None: it is not stored.
    Column("digest", Text, ForeignKey("file_contents.digest")),
    Column("unstored", Text),
    ForeignKeyConstraint(["workflow_id", "version"], ["versions.workflow_id", "versions.version"]),
    Index("ix_version_files_digest", "digest"),
)

template_files = Table(
    "template_files",
    metadata,
    Column("job_type", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("field", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", Text, ForeignKey("file_contents.digest")),
    Column("unstored", Text),
    ForeignKeyConstraint(["job_type", "version"], ["templates.job_type", "templates.version"]),
    Index("ix_template_files_digest", "digest"),
)
