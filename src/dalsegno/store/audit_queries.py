"""What is read of the audit log; see ``reading`` for the connections that it takes."""

from __future__ import annotations

from typing import Any

from dalsegno.store.reading import Row, rows


def newest(
    connection: Any,
    *,
    subject: str | None = None,
    caller: str | None = None,
    limit: int,
    below: int | None = None,
) -> list[Row]:
    """Newest first; of a subject or what belongs to it, by a caller, and with ids below one, if those are given."""
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if subject is not None:
        # Runs and steps of a workflow, and breakpoints, begin with its id.
        below_it = " OR ".join(f"substr(subject, 1, length(:{name})) = :{name}" for name in ("slash", "space"))
        conditions.append(f"(subject = :subject OR {below_it})")
        values |= {"subject": subject, "slash": f"{subject}/", "space": f"{subject} "}
    if caller is not None:
        conditions.append("caller = :caller")
        values["caller"] = caller
    if below is not None:
        conditions.append("id < :below")
        values["below"] = below
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return rows(connection, f"SELECT * FROM audit_log{where} ORDER BY id DESC LIMIT :limit", **values, limit=limit)
