"""The tables of work units: what steps do behind captures, statement by statement."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, Table, Text

from dalsegno.store.tables import Moment, metadata

work_units = Table(
    "work_units",
    metadata,
    Column("id", Text, primary_key=True),
    # Of the key: the same after an undo.
    Column("digest", Text, nullable=False),
    Column("captures", JSON, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("step_id", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("begun_by", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("visited", JSON, nullable=False),
    Column("owner", Text, nullable=False),
    Column("outputs", JSON, nullable=False),
    Column("branch", Text),
    # What the step decided before its first statement, if it decides anything.
    Column("decision", JSON(none_as_null=True)),
    Index("ix_work_units_digest", "digest"),
)

work_unit_captures = Table(
    "work_unit_captures",
    metadata,
    Column("capture_id", Text, ForeignKey("captures.id"), primary_key=True),
    Column("unit_id", Text, ForeignKey("work_units.id"), primary_key=True),
)

work_statements = Table(
    "work_statements",
    metadata,
    Column("unit_id", Text, ForeignKey("work_units.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("target", Text),
    Column("before", JSON(none_as_null=True)),
    Column("after", BigInteger),
    Column("executor", JSON(none_as_null=True)),
    Column("variables", JSON(none_as_null=True)),
    Column("doubt", Text),
    Column("begun_at", Moment),
    Column("done_at", Moment),
    Index("ix_work_statements_target", "target"),
)
