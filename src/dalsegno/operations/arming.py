"""Which triggers are watched: those of each workflow's active version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.model.workflow import Definition
from dalsegno.plan.firing import next_start
from dalsegno.spec import workflows as spec
from dalsegno.spec.schedules import timetable_of
from dalsegno.spec.watching import watch_name
from dalsegno.store import runs, triggers, workflows
from dalsegno.store.asking import Row


def arm(connection: Connection, workflow_id: str, now: datetime) -> None:
    """Watch the triggers of the version that is active now, and no others.

    A trigger that says what one of the version before said goes on where that one was; a new one begins now.
    """
    runs.hold_workflow(connection, workflow_id)
    watched = {(row["kind"], row["name"]): row for row in triggers.of_workflow(connection, workflow_id)}
    definition = _active(connection, workflow_id)
    wanted = {}
    if definition is not None:
        wanted = _time_triggers(definition, watched, now) | _incremental_triggers(definition, now)
    triggers.forget(connection, [row for key, row in watched.items() if key not in wanted])
    triggers.add(connection, [row for key, row in wanted.items() if key not in watched])
    for key in wanted.keys() & watched.keys():
        triggers.change(connection, watched[key], next_at=wanted[key]["next_at"])


def _active(connection: Connection, workflow_id: str) -> Definition | None:
    row = workflows.workflow_row(connection, workflow_id)
    if row is None or row["active_version"] is None:
        return None
    version = workflows.version_row(connection, workflow_id, row["active_version"])
    return spec.from_json(version["definition"]) if version else None


def _time_triggers(
    definition: Definition, watched: Mapping[tuple[str, str], Row], now: datetime
) -> dict[tuple[str, str], dict[str, Any]]:
    if definition.properties.is_time_trigger_disabled:
        return {}
    timetable = timetable_of(definition.workflow)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for schedule in timetable.schedules:
        key = (triggers.TIME, schedule.name)
        upto = watched[key]["upto"] if key in watched else now
        rows[key] = {
            "workflow_id": timetable.workflow_id,
            "kind": triggers.TIME,
            "name": schedule.name,
            "upto": upto,
            "next_at": next_start(timetable, schedule, upto),
            "state": {},
        }
    return rows


def _incremental_triggers(definition: Definition, now: datetime) -> dict[tuple[str, str], dict[str, Any]]:
    if definition.properties.is_incremental_trigger_disabled:
        return {}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for trigger in definition.workflow.incremental_triggers:
        key = (triggers.INCREMENTAL, watch_name(trigger))
        rows[key] = {
            "workflow_id": definition.workflow.id,
            "kind": triggers.INCREMENTAL,
            "name": watch_name(trigger),
            "upto": None,
            # Tables are looked at all the time.
            "next_at": None,
            # Keys of runs follow from it.
            "state": {"armed": f"{now:%Y%m%dT%H%M%S.%f}"},
        }
    return rows
