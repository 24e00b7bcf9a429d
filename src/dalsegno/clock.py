"""The only source of "now": everything else is given the time it works with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

#: What code that needs the time asks for, so that tests can hand in their own.
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_millis(moment: datetime) -> int:
    """Milliseconds since 1970, the unit of Iceberg's own timestamps."""
    return round(moment.timestamp() * 1000)


def from_millis(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)
