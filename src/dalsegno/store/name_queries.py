"""Names that begin with a text, for shells that complete them; see ``reading`` for the connections that these take."""

from __future__ import annotations

from typing import Any

from dalsegno.store.reading import rows

#: Nobody reads more of them.
MOST = 50


def workflows(connection: Any, beginning: str) -> list[str]:
    return _names(connection, "SELECT id AS name FROM workflows WHERE deleted_at IS NULL", beginning)


def runs(connection: Any, beginning: str) -> list[str]:
    """As WORKFLOW/NUMBER, newest first."""
    name = "workflow_id || '/' || CAST(number AS TEXT)"
    found = rows(
        connection,
        f"SELECT {name} AS name FROM runs WHERE substr({name}, 1, :length) = :beginning"
        " ORDER BY created_at DESC, id DESC LIMIT :most",
        length=len(beginning),
        beginning=beginning,
        most=MOST,
    )
    return [each["name"] for each in found]


def captures(connection: Any, beginning: str, *, pending_only: bool) -> list[str]:
    states = " WHERE state IN ('preparing', 'ready')" if pending_only else ""
    return _names(connection, f"SELECT id AS name FROM captures{states}", beginning)


def consumers(connection: Any, beginning: str) -> list[str]:
    query = "SELECT consumer AS name FROM {}"
    return _names(connection, f"{query.format('captures')} UNION {query.format('positions')}", beginning)


def tables(connection: Any, beginning: str) -> list[str]:
    """With their catalogs."""
    query = "SELECT table_name AS name FROM {}"
    return _names(connection, f"{query.format('capture_tables')} UNION {query.format('positions')}", beginning)


def templates(connection: Any, beginning: str) -> list[str]:
    return _names(connection, "SELECT DISTINCT job_type AS name FROM templates", beginning)


def signals(connection: Any, beginning: str) -> list[str]:
    return _names(connection, "SELECT DISTINCT name FROM signals", beginning)


def tags(connection: Any, beginning: str) -> list[str]:
    return _names(connection, "SELECT tag AS name FROM limits", beginning)


def _names(connection: Any, query: str, beginning: str) -> list[str]:
    found = rows(
        connection,
        f"SELECT name FROM ({query}) AS named WHERE substr(name, 1, :length) = :beginning ORDER BY name LIMIT :most",
        length=len(beginning),
        beginning=beginning,
        most=MOST,
    )
    return [each["name"] for each in found]
