"""Which triggers are watched: those of each workflow's active version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.model.workflow import Definition, SignalTrigger
from dalsegno.plan.firing import next_start
from dalsegno.plan.signals import named_triggers
from dalsegno.spec import workflows as spec
from dalsegno.spec.schedules import timetable_of
from dalsegno.spec.watching import watch_name
from dalsegno.store import run_queries, runs, signal_triggers, signals, triggers
from dalsegno.store.row_queries import Row


def arm(connection: Connection, workflow_id: str, now: datetime) -> None:
    """Watch the triggers of the version that is active now, and no others.

    A trigger that says what one of the version before said goes on where that one was; a new one begins now.
    """
    runs.hold_workflow(connection, workflow_id)
    watched = {(row["kind"], row["name"]): row for row in triggers.of_workflow(connection, workflow_id)}
    definition = _active(connection, workflow_id)
    times = {} if definition is None else _time_triggers(definition, watched, now)
    by_signals = {} if definition is None else _signal_triggers(definition)
    by_changes = {} if definition is None else _incremental_triggers(definition, now)
    wanted = {**times, **by_changes, **{key: _signal_row(workflow_id, key) for key in by_signals}}
    gone = [key for key in watched if key not in wanted]
    new = [key for key in wanted if key not in watched]
    # Whoever announces a signal waits until that is settled.
    names = {signal for trigger in by_signals.values() for signal in trigger.definitions}
    signals.hold(connection, names | signal_triggers.subscribed(connection, workflow_id))
    triggers.forget(connection, [watched[key] for key in gone])
    triggers.add(connection, [wanted[key] for key in new])
    for kind, name in gone:
        if kind == triggers.SIGNAL:
            signal_triggers.unsubscribe(connection, workflow_id, name)
    for key in new:
        if key in by_signals:
            signal_triggers.subscribe(connection, workflow_id, key[1], by_signals[key].definitions)
    for key in times.keys() & watched.keys():
        triggers.change(connection, watched[key], next_at=times[key]["next_at"])


def _active(connection: Connection, workflow_id: str) -> Definition | None:
    row = run_queries.workflow_row(connection, workflow_id)
    if row is None or row["active_version"] is None:
        return None
    version = run_queries.version_row(connection, workflow_id, row["active_version"])
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


def _signal_triggers(definition: Definition) -> dict[tuple[str, str], SignalTrigger]:
    if definition.properties.is_signal_trigger_disabled:
        return {}
    found = named_triggers(definition.workflow.signal_triggers)
    return {(triggers.SIGNAL, name): trigger for name, trigger in found.items()}


def _signal_row(workflow_id: str, key: tuple[str, str]) -> dict[str, Any]:
    kind, name = key
    return {"workflow_id": workflow_id, "kind": kind, "name": name, "upto": None, "next_at": None, "state": {}}


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
