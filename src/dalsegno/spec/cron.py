"""Cron lines: Unix's of five fields, Quartz's of six or seven, and names such as ``@daily``.

Here they are understood far enough to refuse what can never be meant; when they are due is decided elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

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
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_STEP = re.compile(r"(?P<range>[^/]+)(?:/(?P<step>[0-9]{1,4}))?")


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    #: What only Quartz knows: days such as ``L``, ``15W`` or ``6#3``, and ``?``.
    special: str = ""


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
    _Field("day of the month", 1, 31, special=r"\?|L|LW|L-[0-9]{1,2}|[0-9]{1,2}W"),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of the week", 1, 7, tuple(_DAYS), special=r"\?|L|[1-7]L|[1-7]#[1-5]|[A-Z]{3}(L|#[1-5])"),
    _Field("year", 1970, 2099),
)


def fault_of(line: str) -> str | None:
    """What is wrong with the line, if anything."""
    text = line.strip()
    if text.startswith("@"):
        known = ", ".join(ALIASES)
        return None if text.lower() in ALIASES else f"there is no schedule {text!r}; known are {known}"
    words = text.upper().split()
    fields = _UNIX if len(words) == len(_UNIX) else _QUARTZ[: len(words)]
    if not len(_UNIX) <= len(words) <= len(_QUARTZ):
        return f"a cron line has five fields, or Quartz's six or seven; found {len(words)}"
    values: dict[str, frozenset[int]] = {}
    for field, word in zip(fields, words, strict=True):
        found = _values(field, word)
        if isinstance(found, str):
            return found
        values[field.name] = found
    if len(words) > len(_UNIX) and "?" not in (words[3], words[5]):
        return "in Quartz's lines, either the day of the month or the day of the week must be '?'"
    if _shortest(values) < SHORTEST:
        return f"two starts would be less than {SHORTEST // 60} minutes apart"
    return None


def _values(field: _Field, word: str) -> frozenset[int] | str:
    """The numbers that the word stands for, or what is wrong with it."""
    found: set[int] = set()
    for part in word.split(","):
        if field.special and re.fullmatch(field.special, part):
            continue
        numbers = _numbers(field, part)
        if isinstance(numbers, str):
            return numbers
        found.update(numbers)
    return frozenset(found)


def _numbers(field: _Field, part: str) -> range | str:
    wrong = f"{part!r} is no {field.name}: expected {field.low} to {field.high}, '*', a range or a step"
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
