"""Runs that start by the clock.

Which due times are started is decided in ``plan.firing``; here it is done. A due time's run has a key that follows from
it, and how far a trigger was dealt with is saved behind its runs: whoever dies in between, or does the same at the same
time, starts no second run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.engine.blueprints import Blueprint
from dalsegno.errors import DalsegnoError
from dalsegno.model.schedules import Schedule, Timetable
from dalsegno.plan.firing import DueTime, Firing, next_start, to_fire
from dalsegno.spec.schedules import timetable_of
from dalsegno.store import Store, triggers
from dalsegno.store.row_queries import Row

log = logging.getLogger(__name__)

#: Starts a run of a version with a key and an initiator, unless there is one with this key.
Start = Callable[[Blueprint, str, Mapping[str, Any]], object]


class TimeTriggers:
    def __init__(self, store: Store, active: Callable[[str], Blueprint | None], start: Start) -> None:
        self.store = store
        #: The version of a workflow that is active.
        self.active = active
        self.start = start

    def fire(self, now: datetime) -> datetime | None:
        """Start what is due; when there is something to do next."""
        with self.store.database.reading() as connection:
            due = triggers.due(connection, triggers.TIME, now)
        for row in due:
            try:
                self._fire(row, now)
            except DalsegnoError as error:
                # It stays due. The others must not wait for it.
                log.warning("%s is due, but cannot be started: %s", row["workflow_id"], error)
        with self.store.database.reading() as connection:
            return triggers.next_at(connection, triggers.TIME)

    def _fire(self, row: Row, now: datetime) -> None:
        blueprint = self.active(row["workflow_id"])
        timetable = timetable_of(blueprint.workflow) if blueprint else Timetable(row["workflow_id"], ())
        schedule = next((each for each in timetable.schedules if each.name == row["name"]), None)
        if blueprint is None or schedule is None:
            # Another version has become active since we looked: its triggers are watched by now.
            return
        firing = to_fire(timetable, schedule, row["upto"], now)
        for due in firing.starts:
            self.start(blueprint, due.key, _initiator(schedule, due))
        with self.store.database.writing() as connection:
            triggers.change(
                connection,
                row,
                upto=firing.upto,
                next_at=next_start(timetable, schedule, firing.upto),
                state={**row["state"], **_remembered(row["workflow_id"], firing)},
            )


def _initiator(schedule: Schedule, due: DueTime) -> dict[str, object]:
    zone = str(schedule.zone)
    return {
        "type": "TIME",
        "by": "dalsegno",
        "trigger": schedule.name,
        "planned_ms": to_millis(due.at),
        "timezone": zone,
        "trigger_timezone": zone,
    }


def _remembered(workflow_id: str, firing: Firing) -> dict[str, object]:
    remembered: dict[str, object] = {}
    if firing.starts:
        remembered["last_started"] = firing.starts[-1].at.isoformat()
    if firing.missed:
        missed = {"first": firing.missed.first.isoformat(), "last": firing.missed.last.isoformat()}
        log.warning("%s was not started for what was due from %s to %s", workflow_id, missed["first"], missed["last"])
        remembered["missed"] = missed
    return remembered
