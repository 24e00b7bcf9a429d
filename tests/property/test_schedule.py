"""Due times agree with looking at the clock in every single minute, wherever and whenever it is put forward or back."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dalsegno.triggers.time_triggers.model import TimeTrigger
from dalsegno.triggers.time_triggers.plan.schedule import (
    due_times,
    next_due,
    past_due_times,
    previous_due,
    skipped_before,
)
from dalsegno.triggers.time_triggers.spec.cron import fault_of
from dalsegno.triggers.time_triggers.spec.schedules import schedule_of

MINUTE = timedelta(minutes=1)
#: Zones, and days in the middle of what is looked at, with so many days to each side.
WINDOWS = [
    ("Europe/Berlin", "2026-03-29", 3),
    ("Europe/Berlin", "2026-10-25", 3),
    ("America/New_York", "2026-03-08", 3),
    ("America/New_York", "2026-11-01", 3),
    ("Australia/Lord_Howe", "2026-04-05", 3),
    ("Australia/Lord_Howe", "2026-10-04", 3),
    ("Asia/Kolkata", "2026-03-01", 3),
    # A day that never was.
    ("Pacific/Apia", "2011-12-30", 4),
    # A clock that is put back before Ramadan, and forward after it.
    ("Africa/Casablanca", "2026-02-15", 3),
    ("Africa/Casablanca", "2026-03-22", 3),
    # At midnight: forward to one o'clock, back into the day before.
    ("Africa/Cairo", "2026-04-24", 3),
    ("Africa/Cairo", "2026-10-30", 3),
    # A minute after midnight, back into the day before.
    ("America/St_Johns", "2010-11-07", 3),
    # Back by 23 hours.
    ("Pacific/Kwajalein", "1969-10-01", 4),
]


@dataclass(frozen=True)
class Minute:
    """A minute as somebody saw it who looked at the clock all the time."""

    at: datetime
    wall: datetime
    is_shown_again: bool
    #: What the clock would have shown since the last minute, if it had not been put forward.
    skipped: tuple[datetime, ...]


@cache
def minutes(zone: str, day: str, days: int) -> list[Minute]:
    middle = datetime.fromisoformat(day).replace(tzinfo=UTC)
    at, end = middle - timedelta(days=days), middle + timedelta(days=days)
    found: list[Minute] = []
    seen: set[datetime] = set()
    while at <= end:
        wall = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        missing = (wall - found[-1].wall) // MINUTE - 1 if found else 0
        skipped = tuple(wall - number * MINUTE for number in range(missing, 0, -1))
        found.append(Minute(at, wall, wall in seen, skipped))
        seen.add(wall)
        at += MINUTE
    return found


@dataclass(frozen=True)
class Line:
    """A cron line, and what it means."""

    text: str
    minutes: AbstractSet[int]
    hours: AbstractSet[int]
    days: AbstractSet[int]
    #: Sunday is 0.
    week_days: AbstractSet[int]

    def names(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        by_month, by_week = wall.day in self.days, wall.isoweekday() % 7 in self.week_days
        _, _, day, _, week_day = self.text.split()
        return by_month and by_week if "*" in (day[0], week_day[0]) else by_month or by_week

    @property
    def is_interval(self) -> bool:
        return "/" in self.text.split()[0] or len(self.hours) == 24

    def due(self, seen: list[Minute]) -> list[datetime]:
        if self.is_interval:
            return [each.at for each in seen if self.names(each.wall)]
        return [
            each.at
            for each in seen
            if (self.names(each.wall) and not each.is_shown_again)
            or (each.skipped and any(map(self.names, each.skipped)))
        ]


def stepped(low: int, high: int, *steps: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    return st.sampled_from([(f"*/{step}", frozenset(range(low, high + 1, step))) for step in steps])


def listed(low: int, high: int, most: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    numbers = st.frozensets(st.integers(low, high), min_size=1, max_size=most)
    return numbers.map(lambda chosen: (",".join(map(str, sorted(chosen))), chosen))


def ranged(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    return ends.map(lambda pair: (f"{pair[0]}-{pair[1]}", frozenset(range(pair[0], pair[1] + 1))))


def every(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    return st.just(("*", frozenset(range(low, high + 1))))


BEGINNINGS = st.sampled_from([("5/20", frozenset({5, 25, 45})), ("0/15", frozenset({0, 15, 30, 45}))])


@st.composite
def lines(draw: st.DrawFn) -> Line:
    fields = [
        draw(st.one_of(listed(0, 59, 4), stepped(0, 59, 2, 7, 15, 30), BEGINNINGS)),
        # Clocks are put forward and back at night.
        draw(st.one_of(listed(0, 4, 3), listed(0, 23, 4), ranged(0, 23), every(0, 23), stepped(0, 23, 2, 5, 12))),
        draw(st.one_of(every(1, 31), every(1, 31), listed(1, 31, 6), stepped(1, 31, 2, 3))),
        draw(st.one_of(every(0, 6), every(0, 6), listed(0, 6, 3), stepped(0, 6, 2))),
    ]
    texts = [text for text, _ in fields]
    line = Line(" ".join([*texts[:3], "*", texts[3]]), *(numbers for _, numbers in fields))
    assume(fault_of(line.text) is None)
    return line


def around_shifts(seen: list[Minute]) -> list[datetime]:
    """Moments near to where the clock is put forward or back."""
    shifts = [later.at for earlier, later in pairwise(seen) if later.wall - earlier.wall != MINUTE]
    return [shift + number * timedelta(minutes=17, seconds=1) for shift in shifts for number in range(-6, 7)]


@settings(deadline=None, max_examples=100)
@given(lines(), st.sampled_from(WINDOWS), st.data())
def test_due_times_are_those_that_a_clock_shows(line: Line, window: tuple[str, str, int], data: st.DataObject) -> None:
    seen = minutes(*window)
    begin, end = seen[0].at, seen[-1].at
    expected = [due for due in line.due(seen) if due > begin]
    schedule = schedule_of(TimeTrigger(line.text, window[0]))
    assert schedule.line.is_interval == line.is_interval
    assert list(due_times(schedule, begin, end)) == expected
    assert list(past_due_times(schedule, end, begin)) == expected[::-1]
    # From anywhere in between, it is the same.
    at = begin + data.draw(st.integers(1, int((end - begin).total_seconds()) - 1)) * timedelta(seconds=1)
    assert list(due_times(schedule, at, end)) == [due for due in expected if due > at]
    assert list(past_due_times(schedule, at, begin)) == [due for due in expected if due <= at][::-1]
    for near in around_shifts(seen):
        following, before = next_due(schedule, near), previous_due(schedule, near)
        assert following == next((due for due in expected if due > near), following)
        assert before == next((due for due in reversed(expected) if due <= near), before)


@settings(deadline=None, max_examples=60)
@given(lines(), st.sampled_from(WINDOWS))
def test_what_is_skipped_is_told(line: Line, window: tuple[str, str, int]) -> None:
    """Each time of the line that the clock skips is told with the next due time, and no other."""
    seen = minutes(*window)
    schedule = schedule_of(TimeTrigger(line.text, window[0]))
    found = list(due_times(schedule, seen[0].at, seen[-1].at))
    told = [wall for due in found for wall in skipped_before(schedule, due)]
    skipped = [(each.at, wall) for each in seen for wall in each.skipped if line.names(wall)]
    assert told == [wall for at, wall in skipped if any(due >= at for due in found)]


def test_the_windows_have_what_they_are_there_for() -> None:
    forward = {window for window in WINDOWS if any(each.skipped for each in minutes(*window))}
    back = {window for window in WINDOWS if any(each.is_shown_again for each in minutes(*window))}
    assert {window[0] for window in WINDOWS if window not in forward | back} == {"Asia/Kolkata"}
    assert (len(forward), len(back)) == (6, 7)
    assert all(len(around_shifts(minutes(*window))) == 13 for window in forward | back)
