"""When time triggers are due: cron lines in a time zone, with the hours that its clock skips or shows twice.

Times of a line are what a clock on the wall shows. Where the clock is put forward or back, two kinds of lines differ:

**Appointments** name hours of the day: ``30 2 * * *``, ``0 */6 * * *``. Each comes due exactly once. One that the clock
skips is due at the moment the clock goes on, as with Vixie's cron; several that are skipped together, and one that is
due at that moment anyway, are one. One that the clock shows twice is due the first time.

**Intervals** go on with real time: whatever is due in every hour (``30 * * * *``), or every so many minutes
(``*/15``, ``0/15``, also within some hours). They are due whenever the clock shows one of their times: not in the
hour that is skipped, in both of the hours that are shown twice. So ``*/15`` is due every 15 minutes all through.

How much the clock is put forward does not matter: where a whole day is skipped, as in Apia in 2011, the appointments of
that day are due once, when the next day begins.

A day must fit both fields for days. Only where a line of five fields restricts both, with neither beginning with
``*``, one is enough: cron's own rule. ``15W`` and ``LW`` stay in their month, as in Quartz; a month that does not have
the day is left out.

All moments are in UTC. Ranges are half-open: after ``after``, up to and including ``upto``. Only days that a line names
are looked at, so nothing is spent on the time between two of them. The search ends after 400 years: the calendar
repeats itself then, so what has not come due will never do so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta

from dalsegno.triggers.time_triggers.model import CronLine, MonthDay, Schedule, WeekDay

#: More than any offset from UTC, and than the clock was ever put back by.
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_CYCLE = timedelta(days=146_097)
#: Nothing is due before and after.
_EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def due_times(schedule: Schedule, after: datetime, upto: datetime = _LATEST) -> Iterator[datetime]:
    """When it is due, the oldest first."""
    after, upto = _within(after), _within(upto)
    # What is due later may show an earlier time, if the clock is put back in between.
    begin = _naive(after) + min(_offset(schedule, after), _offset(schedule, after + _DAY))
    end = min(_naive(upto) + _DAY, begin + _CYCLE)
    walls = _walls(schedule.line, begin, end, newest_first=False)
    for moment in _in_order((_moments(schedule, wall) for wall in walls), newest_first=False):
        if moment > upto:
            return
        if moment > after:
            yield moment


def past_due_times(schedule: Schedule, upto: datetime, after: datetime = _EARLIEST) -> Iterator[datetime]:
    """When it was due, the newest first."""
    after, upto = _within(after), _within(upto)
    end = _naive(upto) + max(_offset(schedule, upto), _offset(schedule, upto - _DAY))
    begin = max(_naive(after) - _DAY, end - _CYCLE)
    walls = _walls(schedule.line, begin, end, newest_first=True)
    for moment in _in_order((_moments(schedule, wall) for wall in walls), newest_first=True):
        if moment <= after:
            return
        if moment <= upto:
            yield moment


def next_due(schedule: Schedule, after: datetime) -> datetime | None:
    return next(due_times(schedule, after), None)


def previous_due(schedule: Schedule, upto: datetime) -> datetime | None:
    return next(past_due_times(schedule, upto), None)


# What is odd about a due time.


def skipped_before(schedule: Schedule, due: datetime) -> list[datetime]:
    """The times of the line that no clock showed since it was due before; appointments are due now in their place."""
    before = previous_due(schedule, due - _SECOND) or due - 2 * _DAY
    begin, end = (_naive(moment) + _offset(schedule, moment) for moment in (before, due))
    return [wall for wall in _walls(schedule.line, begin, end, newest_first=False) if begin < wall < end]


def is_shown_twice(schedule: Schedule, due: datetime) -> bool:
    """Whether the clock shows this time once more, or did before: ``fold`` of the local time says which one it is."""
    local = due.astimezone(schedule.zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


# From days to what the clock shows, and from there to moments.


def _walls(line: CronLine, begin: datetime, end: datetime, *, newest_first: bool) -> Iterator[datetime]:
    """The times of the line from begin to end, as a clock on the wall would show them."""
    for day in _days(line, begin.date(), end.date(), newest_first=newest_first):
        midnight = datetime.combine(day, time())
        first = bisect_left(line.times, (begin - midnight) / _SECOND) if day == begin.date() else 0
        last = bisect_right(line.times, (end - midnight) / _SECOND) if day == end.date() else None
        for seconds in line.times[first:last][:: -1 if newest_first else 1]:
            yield midnight + timedelta(seconds=seconds)


def _days(line: CronLine, first: date, last: date, *, newest_first: bool) -> Iterator[date]:
    step = -1 if newest_first else 1
    for year in range(first.year, last.year + 1)[::step]:
        if line.years is not None and year not in line.years:
            continue
        for month in line.months[::step]:
            if not (first.year, first.month) <= (year, month) <= (last.year, last.month):
                continue
            for number in _days_of(line, year, month)[::step]:
                if first <= (day := date(year, month, number)) <= last:
                    yield day


def _days_of(line: CronLine, year: int, month: int) -> list[int]:
    """The days of the month that the line names."""
    first = date(year, month, 1)
    length = ((first + timedelta(days=31)).replace(day=1) - first).days
    days = set(range(1, length + 1))
    by_month = days if line.month_days is None else {_month_day(each, first, length) for each in line.month_days}
    by_week = (
        days if line.week_days is None else {day for each in line.week_days for day in _week_days(each, first, length)}
    )
    return sorted(days & (by_month | by_week if line.is_either_enough else by_month & by_week))


def _month_day(rule: MonthDay, first: date, length: int) -> int:
    """Outside of the month, if it does not have it."""
    number = rule.number if rule.number > 0 else length + rule.number
    if not rule.is_moved_off_weekends or not 1 <= number <= length:
        return number
    match date(first.year, first.month, number).isoweekday():
        case 6:  # Saturday
            return number - 1 if number > 1 else number + 2
        case 7:  # Sunday
            return number + 1 if number < length else number - 2
    return number


def _week_days(rule: WeekDay, first: date, length: int) -> Iterable[int]:
    every = range((rule.number - first.isoweekday()) % 7 + 1, length + 1, 7)
    if rule.which == 0:
        return every
    return every[-1:] if rule.which < 0 else every[rule.which - 1 : rule.which]


def _moments(schedule: Schedule, wall: datetime) -> list[datetime]:
    """When it is due for what the clock shows: the first of them is the first time that it shows it."""
    first, second = (wall.replace(tzinfo=schedule.zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    if first == second:
        return [_moment(wall - first)]
    if first > second:
        shown = [_moment(wall - first), _moment(wall - second)]
        return shown if schedule.line.is_interval else shown[:1]
    # The clock skips it: at one of these moments it is earlier, at the other later.
    return [] if schedule.line.is_interval else [_shift(schedule, _moment(wall - second), _moment(wall - first))]


def _shift(schedule: Schedule, before: datetime, behind: datetime) -> datetime:
    """The moment between the two at which the clock is put forward."""
    offset = _offset(schedule, before)
    while behind - before > _SECOND:
        middle = before + (behind - before) // 2
        middle = middle.replace(microsecond=0)
        if _offset(schedule, middle) == offset:
            before = middle
        else:
            behind = middle
    return behind


def _in_order(found: Iterable[list[datetime]], *, newest_first: bool) -> Iterator[datetime]:
    """What is due, in order and each once: where the clock is put back, what it shows goes back and forth.

    Whatever comes is not before the first of its moments, nor, from the newest on, behind the last of them.
    """
    waiting: list[datetime] = []
    for moments in found:
        if not moments:
            continue
        edge = moments[-1] if newest_first else moments[0]
        ready = [each for each in waiting if (each > edge if newest_first else each < edge)]
        yield from ready
        waiting = sorted({*waiting[len(ready) :], *moments}, reverse=newest_first)
    yield from waiting


def _within(moment: datetime) -> datetime:
    return min(max(moment, _EARLIEST), _LATEST)


def _offset(schedule: Schedule, moment: datetime) -> timedelta:
    return moment.astimezone(schedule.zone).utcoffset() or timedelta()


def _moment(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
