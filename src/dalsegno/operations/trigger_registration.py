"""Which triggers are registered: those of each workflow's active version."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from dalsegno.model.workflow import Definition
from dalsegno.spec import workflows as spec
from dalsegno.store import run_queries, runs, triggers
from dalsegno.triggers.engine import starters


def register_triggers(connection: Connection, workflow_id: str, now: datetime) -> None:
    """Register the triggers of the version that is active now, and no others.

    A trigger that says what one of the version before said resumes where that one was; a new one begins now.
    """
    runs.hold_workflow(connection, workflow_id)
    definition = _active(connection, workflow_id)
    rows = triggers.of_workflow(connection, workflow_id)
    for kind, starter in starters().items():
        wanted = [] if definition is None else definition.enabled_triggers(kind)
        registered = {row["name"]: row for row in rows if row["kind"] == kind}
        if wanted or registered:
            starter.register(connection, workflow_id, wanted, registered, now)


def _active(connection: Connection, workflow_id: str) -> Definition | None:
    row = run_queries.workflow_row(connection, workflow_id)
    if row is None or row["active_version"] is None:
        return None
    version = run_queries.version_row(connection, workflow_id, row["active_version"])
    return spec.from_json(version["definition"]) if version else None
