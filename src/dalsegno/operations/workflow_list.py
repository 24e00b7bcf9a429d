"""Workflows at a glance: how the last run ended, when the next is due, how far each is behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.errors import UnknownName
from dalsegno.model.runs import RunStatus
from dalsegno.operations.workflow_versions import Versions
from dalsegno.store import Store, lags, run_queries, run_tables, runs, step_files
from dalsegno.triggers.operations import all_views


@dataclass(frozen=True)
class LastRun:
    number: int
    status: RunStatus
    #: Why it did not succeed, or that there was nothing new.
    reason: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class WorkflowView:
    """One workflow as a list shows it."""

    id: str
    #: None: triggers start no version.
    active_version: int | None
    latest_version: int
    last_run: LastRun | None
    #: By the clock; None if no trigger that is in force goes by it.
    next_due_at: datetime | None
    #: What starts it when it changes, such as tables.
    watches: tuple[str, ...]
    #: Since when the oldest unprocessed snapshot of a source waits, as it was last measured; None: nothing waits.
    waiting_since: datetime | None


def workflow_views(
    store: Store, versions: Versions, now: datetime, *, after: str | None, limit: int
) -> list[WorkflowView]:
    """By id, those behind one."""
    with store.database.reading() as connection:
        # Databases sort texts each in its own way.
        every = sorted(run_queries.workflow_rows(connection), key=lambda row: str(row["id"]))
        rows = [row for row in every if after is None or row["id"] > after][:limit]
        last = _last_runs(connection)
        waiting = _waiting(connection)
    return [_view(row, last.get(row["id"]), waiting, versions, now) for row in rows]


def definition_text(versions: Versions, workflow_id: str, version: str) -> str:
    """A version as JSON, which ``push`` takes back."""
    number = versions.named(workflow_id, version).version
    with versions.store.database.reading() as connection:
        row = run_queries.version_row(connection, workflow_id, number)
    return json.dumps(row["definition"] if row else {}, indent=2, ensure_ascii=False)


def file_text(versions: Versions, workflow_id: str, version: str, name: str) -> str:
    """What a file of a version holds, as it was pushed."""
    number = versions.named(workflow_id, version).version
    with versions.store.database.reading() as connection:
        files = run_queries.files_of_version(connection, workflow_id, number)
        found = next((each for each in files if each.name == name and each.digest), None)
        content = step_files.content(connection, found.digest) if found and found.digest else None
    if content is None:
        known = ", ".join(sorted({each.name for each in files if each.digest})) or "none"
        raise UnknownName(f"Version {number} of {workflow_id} has no file {name!r}; it has {known}.")
    return content


def _view(
    row: Mapping[str, Any], last: LastRun | None, waiting: Mapping[str, datetime], versions: Versions, now: datetime
) -> WorkflowView:
    active = versions.active(row["id"])
    starts: list[datetime | None] = []
    watches: list[str] = []
    for kind, views in all_views().items():
        triggers = active.definition.enabled_triggers(kind) if active else []
        starts.append(views.next_start(triggers, row["id"], now))
        watches += views.watched(triggers)
    return WorkflowView(
        id=row["id"],
        active_version=row["active_version"],
        latest_version=row["latest_version"],
        last_run=last,
        next_due_at=min(filter(None, starts), default=None),
        watches=tuple(dict.fromkeys(watches)),
        waiting_since=waiting.get(consumer_of_workflow(row["id"])),
    )


def _last_runs(connection: Connection) -> dict[str, LastRun]:
    table, of_workflow = run_tables.runs, run_tables.workflows
    newest = table.c.number == (
        of_workflow.select()
        .with_only_columns(of_workflow.c.last_run)
        .where(of_workflow.c.id == table.c.workflow_id)
        .scalar_subquery()
    )
    return {
        row["workflow_id"]: LastRun(
            row["number"], RunStatus(row["status"]), row["reason"], row["created_at"], row["ended_at"]
        )
        for row in runs.run_rows(connection, newest)
    }


def _waiting(connection: Connection) -> dict[str, datetime]:
    """By consumer, since when something waits."""
    found: dict[str, datetime] = {}
    for row in lags.all_lags(connection):
        if row["oldest_at"] is not None:
            found[row["consumer"]] = min(row["oldest_at"], found.get(row["consumer"], row["oldest_at"]))
    return found
