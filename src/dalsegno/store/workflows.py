"""Workflows and their versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from dalsegno.model.step_files import StepFile
from dalsegno.store import row_queries, run_queries, step_files
from dalsegno.store.row_queries import Row
from dalsegno.store.run_tables import breakpoints, templates, versions, workflows


def digest_of(definition: Mapping[str, Any], files: Sequence[StepFile] = ()) -> str:
    """Of all that a version holds: two versions with the same digest are the same."""
    stored = sorted([each.step_id, each.field, each.name, each.digest] for each in files if each.digest)
    content = [definition, stored] if stored else definition
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def add_version(
    connection: Connection,
    workflow_id: str,
    definition: Mapping[str, Any],
    *,
    is_active: bool,
    by: str,
    now: datetime,
    files: Sequence[StepFile] = (),
    contents: Mapping[str, str] | None = None,
) -> tuple[int, bool]:
    """The version that holds this definition and these files, and whether it is new: the newest is not repeated."""
    digest = digest_of(definition, files)
    known = row_queries.row(connection, select(workflows).where(workflows.c.id == workflow_id))
    properties = dict(definition.get("properties") or {})
    if known is None:
        connection.execute(
            insert(workflows).values(
                id=workflow_id,
                properties=properties,
                active_version=1 if is_active else None,
                latest_version=1,
                last_run=0,
                created_at=now,
                changed_at=now,
            )
        )
        version = 1
    else:
        latest = run_queries.version_row(connection, workflow_id, known["latest_version"])
        if known["deleted_at"] is None and latest is not None and latest["digest"] == digest:
            if is_active and known["active_version"] != latest["version"]:
                activate(connection, workflow_id, latest["version"], now=now)
            return latest["version"], False
        version = known["latest_version"] + 1
        connection.execute(
            update(workflows)
            .where(workflows.c.id == workflow_id)
            .values(
                properties=properties,
                active_version=version if is_active else known["active_version"],
                latest_version=version,
                changed_at=now,
                deleted_at=None,
            )
        )
    connection.execute(
        insert(versions).values(
            workflow_id=workflow_id,
            version=version,
            definition=dict(definition),
            digest=digest,
            created_at=now,
            created_by=by,
        )
    )
    step_files.add_to_version(connection, workflow_id, version, files, contents or {})
    return version, True


def activate(connection: Connection, workflow_id: str, version: int | None, *, now: datetime) -> None:
    connection.execute(
        update(workflows).where(workflows.c.id == workflow_id).values(active_version=version, changed_at=now)
    )


def mark_deleted(connection: Connection, workflow_id: str, *, now: datetime) -> None:
    """The workflow is gone for users; its numbers go on if it is pushed again."""
    connection.execute(
        update(workflows).where(workflows.c.id == workflow_id).values(deleted_at=now, active_version=None)
    )
    connection.execute(delete(breakpoints).where(breakpoints.c.workflow_id == workflow_id))


def take_number(connection: Connection, workflow_id: str, number: int) -> bool:
    """Make it the number of a new run; False if it is not the next one."""
    mine = (workflows.c.id == workflow_id, workflows.c.last_run == number - 1)
    return connection.execute(update(workflows).where(*mine).values(last_run=number)).rowcount == 1


def next_run_number(connection: Connection, workflow_id: str) -> int:
    counted = (
        update(workflows)
        .where(workflows.c.id == workflow_id)
        .values(last_run=workflows.c.last_run + 1)
        .returning(workflows.c.last_run)
    )
    return int(connection.execute(counted).scalar_one())


def save_template(
    connection: Connection,
    definition: Mapping[str, Any],
    job_type: str,
    version: str,
    *,
    by: str,
    now: datetime,
    files: Sequence[StepFile] = (),
    contents: Mapping[str, str] | None = None,
) -> None:
    """Store a job template with its files in place of the one of the same type and version."""
    step_files.forget_template(connection, job_type, version)
    _delete_template(connection, job_type, version)
    connection.execute(
        insert(templates).values(
            job_type=job_type, version=version, definition=dict(definition), changed_at=now, changed_by=by
        )
    )
    step_files.add_to_template(connection, job_type, version, files, contents or {})
    step_files.remove_unused(connection)


def forget_template(connection: Connection, job_type: str, version: str | None) -> bool:
    """Whether there was one."""
    step_files.forget_template(connection, job_type, version)
    was_there = _delete_template(connection, job_type, version)
    step_files.remove_unused(connection)
    return was_there


def _delete_template(connection: Connection, job_type: str, version: str | None) -> bool:
    mine = [templates.c.job_type == job_type] + ([templates.c.version == version] if version else [])
    return connection.execute(delete(templates).where(*mine)).rowcount > 0


def template_rows(connection: Connection, job_type: str | None = None) -> list[Row]:
    found = select(templates).order_by(templates.c.job_type, templates.c.version)
    return row_queries.rows(connection, found.where(templates.c.job_type == job_type) if job_type else found)


def breakpoints_of(connection: Connection, workflow_id: str) -> frozenset[str]:
    found = select(breakpoints.c.step_id).where(breakpoints.c.workflow_id == workflow_id)
    return frozenset(connection.execute(found).scalars())


def set_breakpoint(connection: Connection, workflow_id: str, step_id: str) -> None:
    if step_id not in breakpoints_of(connection, workflow_id):
        connection.execute(insert(breakpoints).values(workflow_id=workflow_id, step_id=step_id))


def clear_breakpoint(connection: Connection, workflow_id: str, step_id: str) -> bool:
    done = connection.execute(
        delete(breakpoints).where(breakpoints.c.workflow_id == workflow_id, breakpoints.c.step_id == step_id)
    )
    return done.rowcount == 1
