"""``-- schedule:`` of a model → a trigger."""

from __future__ import annotations

import re
from typing import Any

_TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_HOURS, _MINUTES = 24, 60


def trigger_of(text: str) -> dict[str, Any]:
    """``on change``, ``hourly``, ``daily [HH:MM]``, ``weekly [DAY] [HH:MM]`` or ``cron …``, then perhaps a time zone.

    A ``ValueError`` says what is wrong. Whether a cron line and a zone are right, the workflow's reader checks.
    """
    words = text.split()
    if [word.lower() for word in words] == ["on", "change"]:
        return {"incremental": {}}
    zone = words.pop() if len(words) > 1 and _is_zone(words[-1]) else None
    line = _cron_of(words, text)
    return {"cron": line} if zone is None else {"cron": line, "timezone": zone}


def _cron_of(words: list[str], text: str) -> str:
    kind, *rest = [words[0].lower(), *words[1:]]
    if kind == "cron" and rest:
        return " ".join(rest)
    if kind == "hourly" and not rest:
        return "@hourly"
    day = "*"
    if kind == "weekly":
        day = str(_DAYS.index(rest.pop(0).lower())) if rest and rest[0].lower() in _DAYS else "1"
    elif kind != "daily":
        raise ValueError(f"{text!r} is not a schedule")
    time = _TIME.fullmatch(rest[0]) if rest else _TIME.fullmatch("00:00")
    if time is None or len(rest) > 1:
        raise ValueError(f"{text!r} is not a schedule")
    hour, minute = int(time["hour"]), int(time["minute"])
    if hour >= _HOURS or minute >= _MINUTES:
        raise ValueError(f"{rest[0]!r} is not a time of day")
    return f"{minute} {hour} * * {day}"


def _is_zone(word: str) -> bool:
    """``Europe/Berlin`` or ``UTC``; in a cron line, a slash follows a star or a digit."""
    return word.upper() == "UTC" or re.fullmatch(r"[A-Z][A-Za-z_]+(/[A-Za-z_+\-0-9]+)+", word) is not None
