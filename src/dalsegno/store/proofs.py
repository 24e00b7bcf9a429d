"""Proofs of declared tables: what is stored of them, and what is read; each inside its caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dalsegno.model.refreshes import Cost
from dalsegno.model.tables import TableName
from dalsegno.store.reading import Row, row

_FULL = "full"

if TYPE_CHECKING:
    from sqlalchemy import Connection


def add(
    connection: Connection,
    target: TableName,
    query_digest: str,
    *,
    is_proven: bool,
    by: str,
    now: datetime,
    details: Mapping[str, Any],
) -> None:
    from sqlalchemy import insert  # noqa: PLC0415 - whoever only reads does without

    from dalsegno.store.proof_tables import proofs  # noqa: PLC0415

    values = {"target": str(target), "query_digest": query_digest, "is_proven": is_proven}
    connection.execute(insert(proofs).values(**values, created_at=now, created_by=by, details=dict(details)))


def newest(connection: Any, target: TableName, query_digest: str) -> Row | None:
    """The last proof of a SELECT for a target, whatever it showed."""
    query = "SELECT * FROM proofs WHERE target = :target AND query_digest = :digest ORDER BY id DESC LIMIT 1"
    return row(connection, query, target=str(target), digest=query_digest)


def costs(connection: Any, target: TableName) -> list[tuple[str, Cost]]:
    """The strategies and costs of the refreshes in the last proof of a target, full ones included, newest first."""
    found = row(connection, "SELECT details FROM proofs WHERE target = :t ORDER BY id DESC LIMIT 1", t=str(target))
    steps = found["details"]["steps"] if found is not None else ()
    return [
        (strategy, Cost(**step[name]))
        for step in reversed(steps)
        for strategy, name in ((step["strategy"], "cost"), (_FULL, "full_cost"))
        if step["strategy"] and step[name]["seconds"]
    ]
