"""The table of the audit log, alone: a capture needs none of the others that a service has."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Identity, Index, Integer, Table, Text

from dalsegno.store.tables import Moment, metadata

#: Who changed what. Written with the change, never changed itself.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    Column("recorded_at", Moment, nullable=False),
    Column("caller", Text, nullable=False),
    # What the caller might do at that time.
    Column("roles", JSON, nullable=False),
    Column("verb", Text, nullable=False),
    Column("subject_kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    # None: it was not there before, or is not there any more.
    Column("before_change", JSON(none_as_null=True)),
    Column("after_change", JSON(none_as_null=True)),
    Column("reason", Text),
    Column("request_id", Text),
    Index("ix_audit_log_subject", "subject", "id"),
    Index("ix_audit_log_caller", "caller", "id"),
    sqlite_autoincrement=True,
)
