"""When schedules are due: days checked by hand against a calendar, clocks against their zone's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from time import perf_counter

import pytest

from dalsegno.triggers.time_triggers.model import CronLine, MonthDay, Schedule, TimeTrigger
from dalsegno.triggers.time_triggers.plan.schedule import (
    due_times,
    is_shown_twice,
    next_due,
    past_due_times,
    previous_due,
    skipped_before,
)
from dalsegno.triggers.time_triggers.spec.schedules import schedule_of


def schedule(line: str, zone: str | None = None) -> Schedule:
    return schedule_of(TimeTrigger(line, zone))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(text: str) -> datetime:
    """What a clock on the wall shows."""
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("line", "days"),
    [
        # In 2026, February begins on a Sunday and ends on a Saturday; so does, on other days, August.
        ("0 0 0 L * ?", "01-31 02-28 03-31 04-30"),
        ("0 0 0 LW * ?", "01-30 02-27 03-31 04-30 05-29"),
        ("0 0 0 L-3 * ?", "01-28 02-25 03-28"),
        ("0 0 0 L-30 * ?", "01-01 03-01 05-01"),
        ("0 0 0 L-1W * ?", "01-30 02-27 03-30"),
        ("0 0 0 15W * ?", "01-15 02-16 03-16 04-15 05-15 06-15 07-15 08-14"),
        ("0 0 0 1W * ?", "01-01 02-02 03-02 04-01 05-01 06-01 07-01 08-03"),
        ("0 0 0 31W * ?", "01-30 03-31 05-29 07-31 08-31"),
        ("0 0 0 1,L * ?", "01-01 01-31 02-01 02-28"),
        ("0 0 0 ? * 6#3", "01-16 02-20 03-20"),
        ("0 0 0 ? * FRI#5", "01-30 05-29 07-31 10-30"),
        ("0 0 0 ? * 2#1", "01-05 02-02 03-02"),
        ("0 0 0 ? * FRIL", "01-30 02-27 03-27"),
        ("0 0 0 ? * 1L", "01-25 02-22 03-29"),
        ("0 0 0 ? * L", "01-03 01-10 01-17"),
        ("0 0 0 ? * MON-FRI", "01-01 01-02 01-05 01-06"),
        ("0 0 0 ? * 1", "01-04 01-11"),
        ("0 0 * * 0", "01-04 01-11"),
        ("0 0 * * 7", "01-04 01-11"),
        ("0 0 * * 5-7", "01-02 01-03 01-04 01-09"),
        # Both are restricted: either is enough.
        ("0 0 13 * 5", "01-02 01-09 01-13 01-16 01-23 01-30 02-06 02-13 02-20"),
        # One begins with a star: both must hold.
        ("0 0 */2 * 1", "01-05 01-19 02-09 02-23"),
        ("0 0 1 * */6", "02-01 03-01 08-01 11-01"),
        ("0 0 31 * *", "01-31 03-31 05-31 07-31 08-31 10-31 12-31"),
        ("0 0 1 FEB,apr *", "02-01 04-01"),
        ("@weekly", "01-04 01-11"),
        ("@monthly", "01-01 02-01"),
    ],
)
def test_days(line: str, days: str) -> None:
    expected = [moment(f"2026-{day}") for day in days.split()]
    assert list(islice(due_times(schedule(line), moment("2025-12-31T23:59")), len(expected))) == expected
    before = past_due_times(schedule(line), expected[-1], moment("2025-12-31T23:59"))
    assert list(before) == expected[::-1]


def test_years() -> None:
    found = due_times(schedule("0 0 0 1 1 ? 2028-2030/2"), moment("2020-01-01"))
    assert list(found) == [moment("2028-01-01"), moment("2030-01-01")]
    assert previous_due(schedule("0 0 0 1 1 ? 2028"), moment("2027-12-31")) is None


def test_seconds() -> None:
    assert next_due(schedule("30 15 10 * * ?"), moment("2026-01-01")) == moment("2026-01-01T10:15:30")


def test_ranges_are_half_open() -> None:
    hourly = schedule("@hourly")
    found = list(due_times(hourly, moment("2026-01-01T01:00"), moment("2026-01-01T03:00")))
    assert found == [moment("2026-01-01T02:00"), moment("2026-01-01T03:00")]
    assert list(past_due_times(hourly, moment("2026-01-01T03:00"), moment("2026-01-01T01:00"))) == found[::-1]
    assert list(due_times(hourly, found[1], found[0])) == []
    assert list(past_due_times(hourly, found[0], found[1])) == []


@pytest.mark.parametrize(
    ("line", "zone", "day", "clock"),
    [
        # Put forward: an appointment is due when the clock goes on, once.
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", "03:00+02:00"),
        ("15,45 2 * * *", "Europe/Berlin", "2026-03-29", "03:00+02:00"),
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-29", "03:00+02:00"),
        ("0 */2 * * *", "Africa/Cairo", "2026-04-24", "01:00+03:00 02:00+03:00"),
        ("@daily", "Africa/Cairo", "2026-04-24", "01:00+03:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04", "02:30+11:00"),
        # An interval goes on with real time.
        ("30 * * * *", "Europe/Berlin", "2026-03-29", "00:30+01:00 01:30+01:00 03:30+02:00"),
        ("*/30 1-3 * * *", "Europe/Berlin", "2026-03-29", "01:00+01:00 01:30+01:00 03:00+02:00 03:30+02:00"),
        ("0 0/30 2 * * ?", "Europe/Berlin", "2026-03-29", ""),
        # Put back: an appointment is due the first time.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", "02:30+02:00"),
        ("30 1 * * *", "America/New_York", "2026-11-01", "01:30-04:00"),
        ("0 */2 * * *", "Europe/Berlin", "2026-10-25", "00:00+02:00 02:00+02:00 04:00+01:00"),
        # An interval both times.
        ("30 * * * *", "Europe/Berlin", "2026-10-25", "00:30+02:00 01:30+02:00 02:30+02:00 02:30+01:00 03:30+01:00"),
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25", "02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00"),
        # The clock goes from a minute past midnight back into the day before.
        ("*/30 23 * * *", "America/St_Johns", "2010-11-06", "23:00-02:30 23:30-02:30 23:30-03:30"),
        ("1 0 * * *", "America/St_Johns", "2010-11-07", "00:01-03:30"),
        # A day that never was.
        ("0 9 * * *", "Pacific/Apia", "2011-12-31", "00:00+14:00 09:00+14:00"),
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-31", "00:00+14:00"),
        ("0 9 * * *", "Pacific/Apia", "2011-12-30", ""),
    ],
)
def test_clocks_that_are_put_forward_and_back(line: str, zone: str, day: str, clock: str) -> None:
    found = schedule(line, zone)
    around = due_times(found, moment(day) - timedelta(days=2), moment(day) + timedelta(days=3))
    shown = [due.astimezone(found.zone).isoformat() for due in around]
    expected = clock.split()
    on_the_day = [text[11:16] + text[19:] for text in shown if text.startswith(day)]
    # Of lines that are due all day long, the beginning.
    assert on_the_day[: len(expected) or None] == expected


def test_from_within_an_hour_that_is_shown_twice() -> None:
    beats = schedule("*/15 * * * *", "Europe/Berlin")
    # At 02:50 the first time, the next is 02:00; and before 02:05 the second time, after that, comes 02:45.
    assert next_due(beats, moment("2026-10-25T00:50")) == moment("2026-10-25T01:00")
    assert list(islice(past_due_times(beats, moment("2026-10-25T01:05")), 2)) == [
        moment("2026-10-25T01:00"),
        moment("2026-10-25T00:45"),
    ]
    fixed = schedule("45 2 * * *", "Europe/Berlin")
    assert next_due(fixed, moment("2026-10-25T00:50")) == moment("2026-10-26T01:45")
    assert previous_due(fixed, moment("2026-10-25T01:05")) == moment("2026-10-25T00:45")


def test_what_is_odd() -> None:
    fixed, beats = schedule("30 2 * * *", "Europe/Berlin"), schedule("*/30 * * * *", "Europe/Berlin")
    gap = moment("2026-03-29T01:00")
    assert skipped_before(fixed, gap) == [wall("2026-03-29T02:30")]
    assert skipped_before(beats, gap) == [wall("2026-03-29T02:00"), wall("2026-03-29T02:30")]
    assert skipped_before(fixed, moment("2026-03-28T01:30")) == []
    assert skipped_before(beats, moment("2026-10-25T01:00")) == []
    # Once a year, and last year it was skipped as well.
    yearly = schedule("30 2 28,29 3 *", "Europe/Berlin")
    assert skipped_before(yearly, moment("2027-03-28T01:00")) == [wall("2027-03-28T02:30")]
    assert [is_shown_twice(fixed, moment(f"2026-10-{day}")) for day in ("24T00:30", "25T00:30")] == [False, True]
    assert is_shown_twice(beats, moment("2026-10-25T01:30"))


def test_far_away_years_cost_nothing() -> None:
    began = perf_counter()
    # The 29th of February is a Sunday every 28 years, but for 2100, which has none.
    assert next_due(schedule("0 0 29 2 */7"), moment("2088-03-01")) == moment("2128-02-29")
    assert previous_due(schedule("0 0 29 2 */7"), moment("2128-02-28")) == moment("2088-02-29")
    assert next_due(schedule("0 0 0 1 1 ? 2099"), moment("1970-01-01")) == moment("2099-01-01")
    never = Schedule("never", CronLine((0,), (2, 4), frozenset({MonthDay(31)})))
    assert next_due(never, moment("2026-01-01")) is None
    assert previous_due(never, moment("2026-01-01")) is None
    assert perf_counter() - began < 2


def test_the_ends_of_time() -> None:
    daily = schedule("@daily", "Pacific/Apia")
    earliest, latest = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert next_due(daily, latest) is None
    assert previous_due(daily, earliest) is None
    assert next_due(daily, earliest) is not None
    assert previous_due(daily, latest) is not None
