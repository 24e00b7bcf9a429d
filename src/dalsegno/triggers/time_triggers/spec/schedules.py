"""Time triggers as they are written → what decides when they are due."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from dalsegno.errors import UserError
from dalsegno.spec.durations import duration
from dalsegno.spec.problems import meant
from dalsegno.triggers.time_triggers.model import Schedule, Timetable, TimeTrigger
from dalsegno.triggers.time_triggers.spec import cron


def timetable_of(workflow_id: str, triggers: Iterable[TimeTrigger]) -> Timetable:
    return Timetable(workflow_id, tuple(map(schedule_of, triggers)))


def schedule_of(trigger: TimeTrigger) -> Schedule:
    """Of a trigger that nobody has checked yet, too."""
    line = cron.parsed(trigger.cron)
    if isinstance(line, str):
        raise UserError(f"{trigger.cron!r} is not a schedule: {line}.")
    zone = zone_of(trigger.timezone or "UTC")
    if zone is None:
        raise UserError(
            f"There is no time zone {trigger.timezone!r}.", hint=_sentence(zone_hint(str(trigger.timezone)))
        )
    return Schedule(
        name=f"{cron.normal(trigger.cron)} {zone.key}",
        line=line,
        zone=zone,
        longest_delay=duration(trigger.fuzzy_max_delay or "0") or timedelta(),
        catch_up=trigger.catch_up,
    )


def zone_of(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def zone_hint(name: str) -> str:
    return meant(name, available_timezones()) or "write for instance UTC or Europe/Berlin"


def _sentence(hint: str) -> str:
    return hint[0].upper() + hint[1:]
