"""Times for people: in the local time zone, which ``TZ`` sets, with its name. JSON has UTC."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


def local(value: datetime) -> datetime:
    try:
        return value.astimezone()
    except (OverflowError, ValueError, OSError):
        # No clock of this machine can show it.
        return value


def moment(value: datetime | None, *, seconds: bool = False) -> str:
    """Such as ``2026-11-17 23:05 CET``."""
    return f"{local(value):%Y-%m-%d %H:%M{':%S' * seconds} %Z}" if value else "never"


def clock(value: datetime) -> str:
    """Such as ``23:05:09``."""
    return f"{local(value):%H:%M:%S}"


def when(value: datetime | None, now: datetime | None, *, seconds: bool = False) -> str:
    """The same as ``moment``; on a terminal, how long ago it was if that is less than a day."""
    if value is None or now is None or not sys.stdout.isatty() or abs(now - value) >= _DAY:
        return moment(value, seconds=seconds)
    return relative(value, now)


def relative(value: datetime, now: datetime) -> str:
    """Such as ``3 min ago`` or ``in 2 h 5 min``."""
    distance = (now - value) / _SECOND
    if abs(distance) < 1:
        return "now"
    return f"{duration(distance)} ago" if distance > 0 else f"in {duration(-distance)}"


def duration(seconds: float) -> str:
    """The two largest units, such as ``2 d 3 h`` or ``5 min``."""
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    parts = [f"{days} d"] * bool(days) + [f"{hours} h"] * bool(hours) + [f"{rest // 60} min"] * bool(rest // 60)
    return " ".join(parts[:2]) or f"{int(seconds)} s"


def lasted(started: datetime | None, ended: datetime | None, now: datetime | None = None) -> str:
    """How long something took, or has taken."""
    if started is None or (ended is None and now is None):
        return ""
    seconds = max(((ended or now or started) - started) / _SECOND, 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"  # noqa: PLR2004
