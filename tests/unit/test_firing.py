"""Which due times are started after downtime, when exactly, and under which key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.triggers.time_triggers.model import CatchUp, CatchUpRule, Schedule, Timetable, TimeTrigger
from dalsegno.triggers.time_triggers.plan.firing import Firing, key_of, next_start, start_of, to_fire
from dalsegno.triggers.time_triggers.spec.schedules import schedule_of

NONE, LATEST, TWO = CatchUp(CatchUpRule.NONE), CatchUp(), CatchUp(CatchUpRule.ALL, 2)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def asked(schedule: Schedule, after: str, now: str) -> Firing:
    return to_fire(Timetable("w", (schedule,)), schedule, moment(after), moment(now))


def told(firing: Firing) -> tuple[list[str], list[str]]:
    """What is started, and the first and the last that is missed."""
    missed = [] if firing.missed is None else [firing.missed.first, firing.missed.last]
    return [f"{each.at:%d %H:%M}" for each in firing.starts], [f"{each:%d %H:%M}" for each in missed]


@pytest.mark.parametrize(
    ("catch_up", "now", "starts", "missed"),
    [
        # In time, whatever the rule.
        (NONE, "01-10T00:00:00", ["10 00:00"], []),
        (LATEST, "01-10T00:01:59", ["10 00:00"], []),
        (TWO, "01-10T00:01:59", ["10 00:00"], []),
        # Late by hours.
        (NONE, "01-10T05:00", [], ["10 00:00", "10 00:00"]),
        (LATEST, "01-10T05:00", ["10 00:00"], []),
        (TWO, "01-10T05:00", ["10 00:00"], []),
        # Down for days.
        (NONE, "01-14T05:00", [], ["10 00:00", "14 00:00"]),
        (LATEST, "01-14T05:00", ["14 00:00"], ["10 00:00", "13 00:00"]),
        (TWO, "01-14T05:00", ["13 00:00", "14 00:00"], ["10 00:00", "12 00:00"]),
        # Up again right when it is due.
        (NONE, "01-14T00:00:30", ["14 00:00"], ["10 00:00", "13 00:00"]),
        (LATEST, "01-14T00:00:30", ["14 00:00"], ["10 00:00", "13 00:00"]),
        (TWO, "01-11T00:00:30", ["10 00:00", "11 00:00"], []),
        # Not yet, and a clock that was set back.
        (TWO, "01-09T23:59:59", [], []),
        (TWO, "01-01T00:00", [], []),
    ],
)
def test_catching_up(catch_up: CatchUp, now: str, starts: list[str], missed: list[str]) -> None:
    schedule = schedule_of(TimeTrigger("@daily", catch_up=catch_up))
    assert told(asked(schedule, "01-09T00:00", now)) == (starts, missed)


def test_nothing_to_do() -> None:
    schedule = schedule_of(TimeTrigger("@daily"))
    assert asked(schedule, "01-09T00:00", "01-09T12:00") == Firing((), None, moment("01-09T00:00"))
    assert asked(schedule, "01-09T00:00", "01-10T00:00").upto == moment("01-10T00:00")


def test_two_may_be_on_time() -> None:
    """The clock skips 02:01, which is due at 03:00 then, a minute before the next."""
    schedule = schedule_of(TimeTrigger("1 2,3 * * *", "Europe/Berlin"))
    assert told(asked(schedule, "03-29T00:00", "03-29T01:01:30")) == (["29 01:00", "29 01:01"], [])


def test_a_delayed_start_is_waited_for() -> None:
    schedule = schedule_of(TimeTrigger("@daily", fuzzy_max_delay="6h"))
    timetable = Timetable("w", (schedule,))
    start = next_start(timetable, schedule, moment("01-09T00:00"))
    assert start is not None
    assert moment("01-10T00:00") < start < moment("01-10T06:00")
    for now, count in ((start - timedelta(milliseconds=1), 0), (start, 1)):
        assert len(to_fire(timetable, schedule, moment("01-09T00:00"), now).starts) == count


def test_starts_are_spread() -> None:
    schedule = schedule_of(TimeTrigger("@daily", fuzzy_max_delay="1h"))
    due = datetime(2026, 1, 1, tzinfo=UTC)
    delays = [start_of(Timetable(f"w{number}", (schedule,)), schedule, due) - due for number in range(200)]
    assert min(delays) < timedelta(minutes=5) < timedelta(minutes=55) < max(delays) < timedelta(hours=1)


def test_a_key_is_that_of_the_trigger_wherever_it_stands() -> None:
    due = datetime(2026, 1, 1, tzinfo=UTC)
    daily = key_of("w", schedule_of(TimeTrigger("@daily")), due)
    assert daily.startswith("w/")
    assert daily.endswith("/2026-01-01T00:00:00Z")
    assert key_of("w", schedule_of(TimeTrigger(" 0 0  * * * ", "UTC", "5min", CatchUp(CatchUpRule.NONE))), due) == daily
    others = [
        key_of("v", schedule_of(TimeTrigger("@daily")), due),
        key_of("w", schedule_of(TimeTrigger("@daily", "Europe/Berlin")), due),
        key_of("w", schedule_of(TimeTrigger("@hourly")), due),
        key_of("w", schedule_of(TimeTrigger("@daily")), due + timedelta(days=1)),
    ]
    assert len({daily, *others}) == 5
