"""What is read of workflows, their versions and their runs; see ``reading`` for the connections that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalsegno.model.step_files import StepFile, Unstored
from dalsegno.store.reading import Row, one_of, row, rows, scalar

#: A list of runs leaves out what can be large.
_WITHOUT_PARAMS = (
    "id, workflow_id, number, attempt, version, status, reason, ended_by, revision, is_paused, initiator, parent_run,"
    " parent_flow, parent_step, root_run, idempotency_key, last_unique_id, created_at, started_at, ended_at, deadline"
)


def run_row(connection: Any, run_id: str) -> Row | None:
    return row(connection, "SELECT * FROM runs WHERE id = :run", run=run_id)


def numbered(connection: Any, workflow_id: str, number: int | None) -> Row | None:
    """The run of this number, or the newest."""
    of_workflow = "SELECT * FROM runs WHERE workflow_id = :workflow"
    if number:
        return row(connection, f"{of_workflow} AND number = :number", workflow=workflow_id, number=number)
    return row(connection, f"{of_workflow} ORDER BY number DESC LIMIT 1", workflow=workflow_id)


def newest_runs(
    connection: Any,
    workflow_id: str | None = None,
    statuses: Sequence[str] = (),
    *,
    below: int | None = None,
    after: str | None = None,
    limit: int,
    with_params: bool = False,
) -> list[Row]:
    """Newest first; of a workflow, of these statuses, of numbers below one, and behind a run, if those are given."""
    conditions, values = [], {}
    if workflow_id:
        conditions.append("workflow_id = :workflow")
        values["workflow"] = workflow_id
    if statuses:
        condition, wanted = one_of("status", statuses)
        conditions.append(condition)
        values |= wanted
    if below is not None:
        conditions.append("number < :below")
    if after is not None:
        conditions.append("(created_at, id) < (SELECT created_at, id FROM runs WHERE id = :after)")
        values["after"] = after
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    numbers = {"limit": limit} | ({} if below is None else {"below": below})
    columns = "*" if with_params else _WITHOUT_PARAMS
    query = f"SELECT {columns} FROM runs{where} ORDER BY created_at DESC, id DESC LIMIT :limit"
    return rows(connection, query, **values, **numbers)


def event_rows(connection: Any, run_id: str, after: int = 0, limit: int = 1000) -> list[Row]:
    query = "SELECT * FROM events WHERE run_id = :run AND id > :after ORDER BY id LIMIT :limit"
    return rows(connection, query, run=run_id, after=after, limit=limit)


def last_event(connection: Any, run_id: str) -> int:
    return scalar(connection, "SELECT max(id) FROM events WHERE run_id = :run", run=run_id) or 0


def step_row(connection: Any, flow_id: str, step_id: str) -> Row | None:
    return row(connection, "SELECT * FROM steps WHERE flow_id = :flow AND step_id = :step", flow=flow_id, step=step_id)


def steps_of_flow(connection: Any, flow_id: str) -> list[Row]:
    """In the order in which they began."""
    return rows(connection, "SELECT * FROM steps WHERE flow_id = :flow ORDER BY started_at, step_id", flow=flow_id)


def iteration_counts(connection: Any, flow_id: str, step_id: str) -> dict[str, int]:
    """How many iterations of a loop stand how."""
    query = (
        "SELECT status, count(*) AS number FROM flows WHERE parent_flow = :flow AND parent_step = :step GROUP BY status"
    )
    return {each["status"]: each["number"] for each in rows(connection, query, flow=flow_id, step=step_id)}


def iterations_to_show(connection: Any, flow_id: str, step_id: str, most: int) -> list[tuple[str, int]]:
    """(flow, index) of the iterations of a loop that have not succeeded, those that are open first."""
    query = (
        "SELECT id, iteration FROM flows WHERE parent_flow = :flow AND parent_step = :step AND status <> :succeeded"
        " ORDER BY ended_at IS NOT NULL, iteration LIMIT :most"
    )
    from dalsegno.model.runs import RunStatus  # noqa: PLC0415 - commands about captures do without runs

    values = {"flow": flow_id, "step": step_id, "succeeded": RunStatus.SUCCEEDED.value, "most": most}
    return [(each["id"], each["iteration"]) for each in rows(connection, query, **values)]


def waits_of_flow(connection: Any, flow_id: str) -> list[Row]:
    """Which signals the steps of a flow wait for, or have waited for."""
    return rows(connection, "SELECT * FROM signal_waits WHERE flow_id = :flow ORDER BY step_id, number", flow=flow_id)


def workflow_row(connection: Any, workflow_id: str) -> Row | None:
    return row(connection, "SELECT * FROM workflows WHERE id = :workflow AND deleted_at IS NULL", workflow=workflow_id)


def workflow_rows(connection: Any) -> list[Row]:
    return rows(connection, "SELECT * FROM workflows WHERE deleted_at IS NULL ORDER BY id")


def version_row(connection: Any, workflow_id: str, version: int) -> Row | None:
    query = "SELECT * FROM versions WHERE workflow_id = :workflow AND version = :version"
    return row(connection, query, workflow=workflow_id, version=version)


def version_rows(connection: Any, workflow_id: str) -> list[Row]:
    """Newest first, without their texts."""
    query = (
        "SELECT workflow_id, version, digest, created_at, created_by FROM versions WHERE workflow_id = :workflow"
        " ORDER BY version DESC"
    )
    return rows(connection, query, workflow=workflow_id)


_FILES = (
    "SELECT version_files.*, file_contents.size FROM version_files"
    " LEFT JOIN file_contents ON file_contents.digest = version_files.digest WHERE workflow_id = :workflow{condition}"
    " ORDER BY version, step_id, field, name"
)


def files_of_version(connection: Any, workflow_id: str, version: int) -> list[StepFile]:
    query = _FILES.format(condition=" AND version = :version")
    return [file_of(each) for each in rows(connection, query, workflow=workflow_id, version=version)]


def files_of_versions(connection: Any, workflow_id: str) -> dict[int, list[StepFile]]:
    """The files of all versions of a workflow, by version."""
    found: dict[int, list[StepFile]] = {}
    for each in rows(connection, _FILES.format(condition=""), workflow=workflow_id):
        found.setdefault(each["version"], []).append(file_of(each))
    return found


def file_of(found: Row) -> StepFile:
    unstored = Unstored(found["unstored"]) if found["unstored"] else None
    return StepFile(found.get("step_id", ""), found["field"], found["name"], found["digest"], found["size"], unstored)
