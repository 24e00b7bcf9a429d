"""The part of the schema that the service needs to be operated; as ``tables``, it is the schema as it is now."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Identity, Index, Integer, Table, Text

from dalsegno.store.tables import Moment, metadata

#: What lets somebody talk to the server. The token itself is known to whoever has it, and to nobody else.
tokens = Table(
    "tokens",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("created_at", Moment, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("revoked_at", Moment),
)

#: Messages to people: written by the transaction that they follow from, sent afterwards.
outbox = Table(
    "outbox",
    metadata,
    # SQLite counts up by itself only in a column that is exactly INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    # What it is about: there is one message for it.
    Column("key", Text, nullable=False),
    # As the settings call it.
    Column("channel", Text, nullable=False),
    Column("message", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    # When to try next; None: it was sent, or given up.
    Column("next_at", Moment),
    Column("attempts", Integer, nullable=False),
    Column("sent_at", Moment),
    # Why the last try failed.
    Column("problem", Text),
    Index("uq_outbox_key", "key", "channel", unique=True),
    Index("ix_outbox_next_at", "next_at"),
    sqlite_autoincrement=True,
)

#: How far each consumer is behind its table, as it was when somebody last looked.
lags = Table(
    "lags",
    metadata,
    Column("consumer", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    # How many snapshots were not processed; None: that cannot be told.
    Column("snapshots", Integer),
    # When the oldest of them was committed; None: there is none.
    Column("oldest_at", Moment),
    Column("measured_at", Moment, nullable=False),
    # Why it cannot be told.
    Column("problem", Text),
    # Since when people know that it is too much; None: it is not, or nobody asked to be told.
    Column("told_at", Moment),
)

#: How far something that goes through all events has come.
progress = Table(
    "progress",
    metadata,
    Column("name", Text, primary_key=True),
    # The number of an event.
    Column("upto", BigInteger, nullable=False),
)
