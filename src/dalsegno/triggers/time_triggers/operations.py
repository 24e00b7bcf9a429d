"""Time triggers as they are shown: when they are due, and what is odd about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from dalsegno.model.workflow import Workflow
from dalsegno.triggers.operations import OutlookRequest, TriggerViews
from dalsegno.triggers.time_triggers.model import CatchUp, Schedule, Timetable, TimeTrigger
from dalsegno.triggers.time_triggers.plan.firing import due_time
from dalsegno.triggers.time_triggers.plan.schedule import due_times, is_shown_twice, past_due_times, skipped_before
from dalsegno.triggers.time_triggers.spec.schedules import schedule_of


@dataclass(frozen=True)
class DueView:
    """One due time."""

    due_at: datetime
    #: What a clock in the trigger's time zone shows then.
    local: datetime
    start_at: datetime
    #: The key of the run that is started for it; None if there is no such trigger in a workflow.
    key: str | None
    #: Times of the line that the clock skipped before it.
    skipped: tuple[datetime, ...]
    #: Whether it is the first or the second time that the clock shows this; None if it does so once.
    shown: str | None


@dataclass(frozen=True)
class TimeTriggerView:
    """One time trigger, seen from a moment; both lists begin with the oldest."""

    kind: str
    cron: str
    timezone: str
    #: Whether it goes on with real time, where the clock is put forward or back.
    is_interval: bool
    fuzzy_max_delay: str | None
    catch_up: CatchUp
    past: tuple[DueView, ...]
    next: tuple[DueView, ...]


class TimeViews(TriggerViews[TimeTrigger]):
    def views(
        self, triggers: Sequence[TimeTrigger], workflow: Workflow | None, request: OutlookRequest
    ) -> list[TimeTriggerView]:
        if request.is_simulated:
            return []
        workflow_id = workflow.id if workflow else None
        return due_views(triggers, workflow_id, timezone=request.timezone, at=request.at, count=request.count)

    def next_start(self, triggers: Sequence[TimeTrigger], workflow_id: str, now: datetime) -> datetime | None:
        found = due_views(triggers, workflow_id, at=now, count=1)
        return min((each.start_at for view in found for each in view.next), default=None)


VIEWS = TimeViews()


def due_views(
    triggers: Sequence[TimeTrigger],
    workflow_id: str | None,
    *,
    timezone: str | None = None,
    at: datetime,
    count: int,
) -> list[TimeTriggerView]:
    """So many due times of each trigger before and after a moment; in another time zone, if one is given."""
    chosen = [replace(each, timezone=timezone or each.timezone) for each in triggers]
    timetable = Timetable(workflow_id or "", tuple(map(schedule_of, chosen)))

    def view(schedule: Schedule, due: datetime) -> DueView:
        found = due_time(timetable, schedule, due)
        local = due.astimezone(schedule.zone)
        return DueView(
            due_at=due,
            local=local,
            start_at=found.start_at,
            key=found.key if workflow_id and timezone is None else None,
            skipped=tuple(skipped_before(schedule, due)),
            shown=("first", "second")[local.fold] if is_shown_twice(schedule, due) else None,
        )

    return [
        TimeTriggerView(
            kind=TimeTrigger.kind,
            cron=trigger.cron,
            timezone=trigger.timezone or "UTC",
            is_interval=schedule.line.is_interval,
            fuzzy_max_delay=trigger.fuzzy_max_delay,
            catch_up=trigger.catch_up,
            past=tuple(view(schedule, due) for due in reversed(list(islice(past_due_times(schedule, at), count)))),
            next=tuple(view(schedule, due) for due in islice(due_times(schedule, at), count)),
        )
        for trigger, schedule in zip(chosen, timetable.schedules, strict=True)
    ]
