"""Schedules and durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dalsegno.spec.durations import duration
from dalsegno.triggers.time_triggers.spec.cron import fault_of


@pytest.mark.parametrize(
    "line",
    [
        "@daily",
        "@Hourly",
        "*/2 * * * *",
        "0 0 * * *",
        "15,45 1-5 1 JAN-MAR mon,FRI",
        "0 0 1 1 *",
        "0 0 * * 7",
        "0 0 12 1/1 * ? *",
        "0 0 12 ? * MON-FRI",
        "0 15 10 L * ?",
        "0 15 10 15W * ?",
        "0 15 10 ? * 6#3",
        "0 15 10 ? * FRIL",
        "0 0 0 ? * 1 2026-2030",
        "59 * * * *",
        "0,58 3,5 * * *",
        "0 0 29 2 *",
        "0 0 30 2 1",
        "0 0 0 L-28 2 ?",
    ],
)
def test_schedules(line: str) -> None:
    assert fault_of(line) is None


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("", "found 0"),
        ("* * *", "found 3"),
        ("60 0 * * *", "'60' is not a valid minute"),
        ("0 24 * * *", "'24' is not a valid hour"),
        ("0 0 0 * *", "'0' is not a valid day of the month"),
        ("0 0 * 13 *", "'13' is not a valid month"),
        ("0 0 * * 8", "'8' is not a valid day of the week"),
        ("0 0 * FOO *", "'FOO' is not a valid month"),
        ("5-1 0 * * *", "'5-1' goes backwards"),
        ("*/0 * * * *", "the step of '*/0' is 0"),
        ("* * * * *", "less than 2 minutes"),
        ("0,1 0 * * *", "less than 2 minutes"),
        ("0,59 * * * *", "less than 2 minutes"),
        ("0/30 0 12 * * ?", "less than 2 minutes"),
        ("0 0 12 * * *", "must be '?'"),
        ("@fortnightly", "there is no schedule"),
        ("0 0 12 ? * 8", "'8' is not a valid day of the week"),
        ("0 0 12 ? * ?", "must be '?'"),
        ("0 0 12 1,? * MON", "'?' is not a valid day of the month"),
        ("0 0 12 32W * ?", "'32W' is not a valid day of the month"),
        ("0 0 12 L-31 * ?", "'L-31' is not a valid day of the month"),
        ("0 0 12 ? * XYZL", "'XYZL' is not a valid day of the week"),
        ("0 0 12 ? * 6#6", "'6#6' is not a valid day of the week"),
        ("0 0 L * *", "'L' is not a valid day of the month"),
        ("0 0 30 2 *", "never comes due"),
        ("0 0 31 4,6,9,11 */2", "never comes due"),
        ("0 0 0 L-29 2 ?", "never comes due"),
    ],
)
def test_no_schedules(line: str, fault: str) -> None:
    assert fault in (fault_of(line) or "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(milliseconds=90_000)),
        ("90s", timedelta(milliseconds=90_000)),
        ("1 day 2h", timedelta(milliseconds=93_600_000)),
        ("10 minutes 5 seconds 1 day", timedelta(milliseconds=87_005_000)),
        ("2Hours30MIN", timedelta(milliseconds=9_000_000)),
        ("5 ms", timedelta(milliseconds=5)),
        ("", None),
        (" ", None),
        ("5 parsecs", None),
        ("1h x", None),
        ("-5s", None),
        ("9" * 50, None),
    ],
)
def test_durations(text: str, expected: timedelta | None) -> None:
    assert duration(text) == expected
