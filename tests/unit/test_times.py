"""Times for people are local, and say of which zone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.cli import times

NOON = datetime(2026, 11, 17, 12, 0, 9, tzinfo=UTC)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("UTC", NOON, "2026-11-17 12:00 UTC"),
        ("Europe/Berlin", NOON, "2026-11-17 13:00 CET"),
        ("Europe/Berlin", NOON.replace(month=7), "2026-07-17 14:00 CEST"),
        ("America/Sao_Paulo", NOON, "2026-11-17 09:00 -03"),
        ("Asia/Kolkata", NOON, "2026-11-17 17:30 IST"),
        ("Pacific/Kiritimati", NOON, "2026-11-18 02:00 +14"),
        ("Europe/Berlin", datetime(9999, 12, 31, 23, 59, tzinfo=UTC), "9999-12-31 23:59 UTC"),
        ("Europe/Berlin", None, "never"),
    ],
)
def test_a_moment(zone: Callable[[str], None], name: str, value: datetime | None, expected: str) -> None:
    zone(name)
    assert times.moment(value) == expected


def test_seconds_and_clocks(zone: Callable[[str], None]) -> None:
    zone("Europe/Berlin")
    assert times.moment(NOON, seconds=True) == "2026-11-17 13:00:09 CET"
    assert times.clock(NOON) == "13:00:09"


def test_an_hour_that_the_clock_shows_twice_is_told_apart(zone: Callable[[str], None]) -> None:
    zone("Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert [times.moment(first + timedelta(hours=hours)) for hours in (0, 1)] == [
        "2026-10-25 02:30 CEST",
        "2026-10-25 02:30 CET",
    ]


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (timedelta(), "now"),
        (timedelta(seconds=42), "42 s ago"),
        (timedelta(minutes=3, seconds=5), "3 min ago"),
        (timedelta(hours=-2, minutes=-5), "in 2 h 5 min"),
        (timedelta(hours=25), "2026-11-16 11:00 UTC"),
    ],
)
def test_recent_times_are_relative_on_a_terminal(
    zone: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, ago: timedelta, expected: str
) -> None:
    zone("UTC")
    assert times.when(NOON - ago, NOON) == times.moment(NOON - ago), "a pipe gets the time itself"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert times.when(NOON - ago, NOON) == expected
