"""Lengths of time as people write them: ``90s``, ``1 day 2h``, ``10 minutes 5 seconds``; bare numbers are seconds."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("s", "sec", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), timedelta(milliseconds=1)),
}
_PART = re.compile(r"\s*([0-9]{1,12})\s*([a-z]+)\s*")
_NUMBER = re.compile(r"\s*([0-9]{1,12})\s*")


def duration(text: str) -> timedelta | None:
    """How long that is; None if it is no duration."""
    try:
        if number := _NUMBER.fullmatch(text):
            return timedelta(seconds=int(number[1]))
        return _sum(text.strip().lower())
    except OverflowError:
        return None


def _sum(text: str) -> timedelta | None:
    total, index = timedelta(), 0
    while index < len(text):
        part = _PART.match(text, index)
        if part is None or part[2] not in _UNITS:
            return None
        total += int(part[1]) * _UNITS[part[2]]
        index = part.end()
    return total if text else None


def names_params(text: str) -> bool:
    """Whether the text is only known in a run, when ``${name}`` or ``$name`` in it is replaced."""
    return "$" in text
