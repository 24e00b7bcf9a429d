"""Which due times become runs: catching up after downtime, the delay that spreads starts, and the key of each.

A node remembers up to which due time a trigger was dealt with, and asks what there is to do now. Every due time is told
once, either to be started or as missed, in order. Its key follows from the workflow, the trigger and the due time, so
that there is one run for it, even if two nodes ask at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice

from dalsegno.triggers.time_triggers.model import CatchUpRule, Schedule, Timetable
from dalsegno.triggers.time_triggers.plan.schedule import next_due, past_due_times

#: A start is on time until then: a node needs a moment, and one that takes over from another half a minute.
ON_TIME = timedelta(minutes=2)
#: Due times are two minutes apart; but one that the clock skipped may come right before another.
_ON_TIME_AT_ONCE = 2
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class DueTime:
    """One start of a workflow by its clock."""

    at: datetime
    #: The same, or later, if starts are spread.
    start_at: datetime
    #: The run's idempotency key.
    key: str


@dataclass(frozen=True)
class Missed:
    """All due times from the first to the last are not started any more; these two may be the same."""

    first: datetime
    last: datetime


@dataclass(frozen=True)
class Firing:
    """What there is to do about a trigger."""

    #: The oldest first.
    starts: tuple[DueTime, ...]
    #: They are older than all that are started.
    missed: Missed | None
    #: Everything up to here is dealt with.
    upto: datetime


def due_time(timetable: Timetable, schedule: Schedule, due: datetime) -> DueTime:
    return DueTime(due, start_of(timetable, schedule, due), key_of(timetable.workflow_id, schedule, due))


def key_of(workflow_id: str, schedule: Schedule, due: datetime) -> str:
    """The same for a trigger that says the same in another version of the workflow, wherever it stands there."""
    trigger = sha256(schedule.name.encode()).hexdigest()[:12]
    return f"{workflow_id}/{trigger}/{due.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def start_of(timetable: Timetable, schedule: Schedule, due: datetime) -> datetime:
    """Some time after it is due, always the same, but before any trigger of the workflow is due again.

    So starts keep the order of due times, whichever trigger they are from.
    """
    if not schedule.longest_delay:
        return due
    following = filter(None, (next_due(each, due) for each in (schedule, *timetable.schedules)))
    longest = min([schedule.longest_delay, *(each - due for each in following)])
    digest = sha256(key_of(timetable.workflow_id, schedule, due).encode()).digest()
    share = int.from_bytes(digest[:8]) * (longest // _MILLISECOND) >> 64
    return due + share * _MILLISECOND


def next_start(timetable: Timetable, schedule: Schedule, after: datetime) -> datetime | None:
    """When to ask again, if everything up to ``after`` is dealt with."""
    due = next_due(schedule, after)
    return None if due is None else start_of(timetable, schedule, due)


def to_fire(timetable: Timetable, schedule: Schedule, after: datetime, now: datetime) -> Firing:
    """What to do about the due times that are not dealt with yet, as soon as their start has come.

    What is on time is started, whatever the rule; of what is late, the newest, so that all are not more than it allows.
    """
    limit = 0 if schedule.catch_up.rule is CatchUpRule.NONE else schedule.catch_up.most
    # One may have its start still ahead, and one more tells that some are missed.
    newest = islice(past_due_times(schedule, now, after), max(limit, _ON_TIME_AT_ONCE) + 2)
    ready = [each for each in (due_time(timetable, schedule, due) for due in newest) if each.start_at <= now]
    if not ready:
        return Firing((), None, after)
    count = max(limit, sum(each.start_at > now - ON_TIME for each in ready))
    first = next_due(schedule, after)
    missed = Missed(first, ready[count].at) if first and len(ready) > count else None
    return Firing(tuple(reversed(ready[:count])), missed, ready[0].at)
