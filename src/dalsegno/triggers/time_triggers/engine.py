"""Runs that start by the clock.

Which due times are started is decided in ``plan``; here it is done. A due time's run has a key that follows from
it, and how far a trigger was dealt with is saved behind its runs: whoever dies in between, or does the same at the same
time, starts no second run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from dalsegno.clock import to_millis
from dalsegno.engine.blueprints import Blueprint
from dalsegno.errors import DalsegnoError
from dalsegno.store import Store, triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers.engine import LOOK_SECONDS, Start, TriggerContext, TriggerStarter, Watcher
from dalsegno.triggers.time_triggers.model import Schedule, TimeTrigger
from dalsegno.triggers.time_triggers.plan.firing import DueTime, Firing, next_start, to_fire
from dalsegno.triggers.time_triggers.spec.schedules import timetable_of

log = logging.getLogger(__name__)


class TimeStarter(TriggerStarter[TimeTrigger]):
    def register(
        self,
        connection: Connection,
        workflow_id: str,
        wanted: Sequence[TimeTrigger],
        registered: Mapping[str, Row],
        now: datetime,
    ) -> None:
        timetable = timetable_of(workflow_id, wanted)
        rows = {}
        for schedule in timetable.schedules:
            upto = registered[schedule.name]["upto"] if schedule.name in registered else now
            rows[schedule.name] = triggers.NewTrigger(upto, next_start(timetable, schedule, upto))
        triggers.replace(connection, workflow_id, TimeTrigger.kind, rows, registered)
        for name in rows.keys() & registered.keys():
            # Starts may be spread in another way than before.
            triggers.change(connection, registered[name], next_at=rows[name].next_at)

    def watcher(self, context: TriggerContext) -> Watcher:
        return TimeWatcher(TimeTriggers(context.store, context.active, context.start), context.clock)


@dataclass(frozen=True)
class TimeWatcher:
    triggers: TimeTriggers
    clock: Callable[[], datetime]

    def look(self) -> float:
        """Again soon, whatever is due next: a clock may be set, and triggers come and go."""
        next_at = self.triggers.fire(self.clock())
        if next_at is None:
            return LOOK_SECONDS
        return min(max((next_at - self.clock()).total_seconds(), 0), LOOK_SECONDS)


class TimeTriggers:
    def __init__(self, store: Store, active: Callable[[str], Blueprint | None], start: Start) -> None:
        self.store = store
        #: The version of a workflow that is active.
        self.active = active
        self.start = start

    def fire(self, now: datetime) -> datetime | None:
        """Start what is due; when there is something to do next."""
        with self.store.database.reading() as connection:
            due = triggers.due(connection, TimeTrigger.kind, now)
        for row in due:
            try:
                self._fire(row, now)
            except DalsegnoError as error:
                # It stays due. The others must not wait for it.
                log.warning("%s is due, but cannot be started: %s", row["workflow_id"], error)
        with self.store.database.reading() as connection:
            return triggers.next_at(connection, TimeTrigger.kind)

    def _fire(self, row: Row, now: datetime) -> None:
        blueprint = self.active(row["workflow_id"])
        found = blueprint.workflow.triggers_of(TimeTrigger) if blueprint else ()
        timetable = timetable_of(row["workflow_id"], found)
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


STARTER = TimeStarter()
