"""Durations in words, "1 day and 2 hours", as Joda's PeriodFormat reads them."""

from __future__ import annotations

import re

from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.calendar import DAY, HOUR, MINUTE, SECOND, WEEK

_UNITS = {"week": WEEK, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND, "millisecond": 1}
_LONGEST = 200
_SEPARATOR = r"(?:, and |, | and |,| )"
_PATTERN = re.compile(
    "".join(rf"(?:(?:^|(?<=[a-z]){_SEPARATOR})([+-]?\d{{1,10}}) {unit}s?)?" for unit in _UNITS),
    re.IGNORECASE,
)


def duration(text: str) -> int:
    """In milliseconds."""
    match = _PATTERN.fullmatch(text) if len(text) < _LONGEST else None
    if match is None:
        raise Fault(
            f"'{text:.60}' is not a duration",
            hint="Write it from weeks down to milliseconds: '1 day and 2 hours'. Months have no fixed length.",
        )
    return sum(int(count) * size for count, size in zip(match.groups(), _UNITS.values(), strict=True) if count)
