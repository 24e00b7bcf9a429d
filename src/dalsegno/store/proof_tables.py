"""The table of proofs: what replays of declared tables have shown. Never removed: costs are learned from them."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Identity, Index, Integer, Table, Text

from dalsegno.store.tables import Moment, metadata

proofs = Table(
    "proofs",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    Column("target", Text, nullable=False),
    # Of the SELECT and the options of its step.
    Column("query_digest", Text, nullable=False),
    Column("is_proven", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", Text, nullable=False),
    # All of the proof, as the command prints it.
    Column("details", JSON, nullable=False),
    Index("ix_proofs_target", "target", "query_digest"),
    sqlite_autoincrement=True,
)
