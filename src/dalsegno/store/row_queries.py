"""Rows as plain mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Select

Row = Mapping[str, Any]


def rows(connection: Connection, query: Select[Any]) -> list[Row]:
    return [found._asdict() for found in connection.execute(query)]


def row(connection: Connection, query: Select[Any]) -> Row | None:
    """The only one there can be, if it is there."""
    found = connection.execute(query).one_or_none()
    return None if found is None else found._asdict()
