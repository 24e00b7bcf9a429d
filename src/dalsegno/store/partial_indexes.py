"""Indexes of some rows of a table.

SQLAlchemy loads all of PostgreSQL's dialect as soon as an index has ``postgresql_where``. Only creating tables needs
that, so such an index is added when its table is created.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, Index, event


def partial_index(name: str, *columns: Column[Any], where: ColumnElement[bool], unique: bool = False) -> None:
    """Index the rows of a table that meet a condition."""

    def add(*_: Any, **__: Any) -> None:
        Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)

    event.listen(columns[0].table, "before_create", add, once=True)
