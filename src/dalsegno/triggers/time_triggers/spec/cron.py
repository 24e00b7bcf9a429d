"""Cron lines: Unix's of five fields, Quartz's of six or seven, and names such as ``@daily``.

Here they are read, and what can never be meant is refused; when they are due, ``plan`` decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from dalsegno.triggers.time_triggers.model import CronLine, MonthDay, WeekDay

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
#: The shortest time between two starts, in seconds.
SHORTEST = 120

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_HOURS = 24
_STEP = re.compile(r"(?P<range>[^/]+)(?:/(?P<step>[0-9]{1,4}))?")
#: What only Quartz knows: L, L-3, LW and 15W; L alone, 6#3 and FRIL.
_MONTH_DAY = re.compile(r"(?:L(?:-(?P<before>[12]?[0-9]|30))?|(?P<day>[1-9]|[12][0-9]|3[01])(?=W))(?P<moved>W)?")
_WEEK_DAY = re.compile(rf"L|(?P<day>[1-7]|{'|'.join(_DAYS)})(?:L|#(?P<which>[1-5]))")
_ANY = ("*", "?")


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    special: re.Pattern[str] | None = None


_UNIX = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of the week", 0, 7, tuple(_DAYS)),
)
_QUARTZ = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31, special=_MONTH_DAY),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of the week", 1, 7, tuple(_DAYS), special=_WEEK_DAY),
    _Field("year", 1970, 2099),
)


def normal(line: str) -> str:
    """The same in one way of writing: without names for whole lines, in capitals, with single spaces."""
    text = line.strip()
    return " ".join(ALIASES.get(text.lower(), text).upper().split())


def fault_of(line: str) -> str | None:
    """What is wrong with the line, if anything."""
    found = parsed(line)
    return found if isinstance(found, str) else None


def parsed(line: str) -> CronLine | str:
    """What the line says, or what is wrong with it."""
    text = line.strip()
    if text.startswith("@") and text.lower() not in ALIASES:
        return f"there is no schedule {text!r}; known are {', '.join(ALIASES)}"
    words = normal(line).split()
    if not len(_UNIX) <= len(words) <= len(_QUARTZ):
        return f"a cron line has five fields, or Quartz's six or seven; found {len(words)}"
    fields = _UNIX if len(words) == len(_UNIX) else _QUARTZ[: len(words)]
    written = {field.name: word for field, word in zip(fields, words, strict=True)}
    values: dict[str, frozenset[int]] = {}
    for field in fields:
        found = _values(field, written[field.name])
        if isinstance(found, str):
            return found
        values[field.name] = found
    if fields is not _UNIX and (written["day of the month"] == "?") == (written["day of the week"] == "?"):
        return "in Quartz's lines, either the day of the month or the day of the week must be '?'"
    if _shortest(values) < SHORTEST:
        return f"two starts would be less than {SHORTEST // 60} minutes apart"
    made = _line(written, values)
    return made if _is_ever_due(made) else "it never comes due, because none of its months has such a day"


def _line(written: dict[str, str], values: dict[str, frozenset[int]]) -> CronLine:
    is_unix, seconds = "second" not in written, values.get("second", frozenset({0}))
    minutes, day, weekday = written["minute"], written["day of the month"], written["day of the week"]
    times = (
        hour * 3600 + minute * 60 + second
        for hour in values["hour"]
        for minute in values["minute"]
        for second in seconds
    )
    return CronLine(
        times=tuple(sorted(times)),
        months=tuple(sorted(values["month"])),
        month_days=None if day in _ANY else _month_days(day, values["day of the month"]),
        week_days=None if weekday in _ANY else _week_days(weekday, values["day of the week"], 1 if is_unix else 2),
        is_either_enough=is_unix and not day.startswith("*") and not weekday.startswith("*"),
        years=None if written.get("year", "*") == "*" else values["year"],
        is_interval=len(values["hour"]) == _HOURS or "*" in minutes or "/" in minutes,
    )


def _month_days(word: str, numbers: frozenset[int]) -> frozenset[MonthDay]:
    found = {MonthDay(number) for number in numbers}
    for special in filter(None, map(_MONTH_DAY.fullmatch, word.split(","))):
        number = int(special["day"]) if special["day"] else -int(special["before"] or 0)
        found.add(MonthDay(number, special["moved"] is not None))
    return frozenset(found)


def _week_days(word: str, numbers: frozenset[int], monday: int) -> frozenset[WeekDay]:
    """Quartz counts Monday as 2 and Sunday as 1; Unix Monday as 1, and Sunday both as 0 and as 7."""

    def iso(number: int) -> int:
        return (number - monday) % 7 + 1

    found = {WeekDay(iso(number)) for number in numbers}
    for special in filter(None, map(_WEEK_DAY.fullmatch, word.split(","))):
        if special["day"] is None:
            # Quartz: the last day of the week, which is Saturday.
            found.add(WeekDay(iso(7)))
            continue
        day = special["day"]
        number = _DAYS.index(day) + 1 if day in _DAYS else int(day)
        found.add(WeekDay(iso(number), int(special["which"] or -1)))
    return frozenset(found)


def _is_ever_due(line: CronLine) -> bool:
    """Whether there are days such as it wants: February has no 30th."""
    if line.month_days is None or line.is_either_enough:
        return True
    return any(
        -_LONGEST[month - 1] < day.number <= _LONGEST[month - 1] for month in line.months for day in line.month_days
    )


def _values(field: _Field, word: str) -> frozenset[int] | str:
    """The numbers that the word stands for, or what is wrong with it."""
    if field.special and word == "?":
        return frozenset()
    found: set[int] = set()
    for part in word.split(","):
        if field.special and field.special.fullmatch(part):
            continue
        numbers = _numbers(field, part)
        if isinstance(numbers, str):
            return numbers
        found.update(numbers)
    return frozenset(found)


def _numbers(field: _Field, part: str) -> range | str:
    wrong = f"{part!r} is not a valid {field.name}: expected {field.low} to {field.high}, '*', a range or a step"
    match = _STEP.fullmatch(part)
    if match is None:
        return wrong
    step = int(match["step"]) if match["step"] else 1
    if step == 0:
        return f"the step of {part!r} is 0"
    first, _, last = match["range"].partition("-")
    if first == "*":
        return range(field.low, field.high + 1, step) if not last else wrong
    begin = _number(field, first)
    end = _number(field, last) if last else (field.high if match["step"] else begin)
    if begin is None or end is None:
        return wrong
    if begin > end:
        return f"{part!r} goes backwards"
    return range(begin, end + 1, step)


def _number(field: _Field, word: str) -> int | None:
    if word in field.names:
        # Quartz counts Sunday as 1, Unix as 0; months begin at 1 in both.
        return field.names.index(word) + field.low
    if not re.fullmatch(r"[0-9]{1,4}", word):
        return None
    return int(word) if field.low <= int(word) <= field.high else None


def _shortest(values: dict[str, frozenset[int]]) -> int:
    """The shortest time between two starts inside of hours that follow each other."""
    seconds = values.get("second", frozenset({0}))
    moments = sorted(minute * 60 + second for minute in values["minute"] for second in seconds)
    hours = values["hour"]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    if any((hour + 1) % 24 in hours for hour in hours):
        gaps.append(moments[0] + 3600 - moments[-1])
    return min(gaps, default=SHORTEST)
