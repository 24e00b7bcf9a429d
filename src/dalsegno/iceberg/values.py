"""Stored values as people write them: fit for JSON, for paths of partitions and, in predicates, for SQL.

Iceberg's dates reach further than Python's, to year 5,881,580, so the calendar is counted in turns of 400 years, after
which it repeats. Years that do not have four digits have a sign, as in ISO 8601 and in Spark.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from pyiceberg.types import (
    DateType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

_EPOCH = date(1970, 1, 1).toordinal()
_TURN_YEARS, _TURN_DAYS = 400, 146_097
_DAY = 86_400_000_000
#: What Spark's dates and timestamps can hold.
_MOST_DAYS, _MOST_MICROSECONDS = 2**31 - 1, 2**63 - 1
_MOST_YEAR = 9_999
#: Hours are kept in 32 bits. Beyond so many, they may be those of a moment that did not fit.
_MOST_HOURS = 2**32 - _MOST_MICROSECONDS // 3_600_000_000
#: A year, month, day or hour as Iceberg writes it.
_UNIT = re.compile(r"([+-]?\d+)(?:-(\d\d))?(?:-(\d\d))?(?:-(\d\d))?")
_YEAR = re.compile(r"([+-]?\d+)-")
#: What Hive and Spark write for the partition of no value.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ENCODED: Mapping[str, str] = {"%": "%25", "/": "%2F", "=": "%3D"}


def said(kind: Any, value: Any) -> Any:
    """A value as people write it, fit for JSON."""
    match kind:
        case DateType():
            return said_date(value)
        case TimeType():
            return _said_time(value)
        case TimestampType():
            return _said_moment(value)
        case TimestamptzType():
            return f"{_said_moment(value)}+00:00"
        case TimestampNanoType() | TimestamptzNanoType():
            second, nanosecond = divmod(value, 1_000_000_000)
            zone = "+00:00" if isinstance(kind, TimestamptzNanoType) else ""
            return f"{_said_moment(second * 1_000_000)}.{nanosecond:09d}{zone}"
    return _json_value(value)


def said_unit(unit: str, value: int) -> str:
    """A partition's year, month, day or hour, each counted from 1970."""
    match unit:
        case "year":
            return _said_year(1970 + value)
        case "month":
            return f"{_said_year(1970 + value // 12)}-{value % 12 + 1:02d}"
        case "day":
            return said_date(value)
    return f"{said_date(value // 24)}-{value % 24:02d}"


def ends_of_unit(kind: Any, text: str) -> tuple[str, str] | None:
    """When a unit such as ``2026-11`` or ``2026-11-15-23`` begins, and when the next one does, as values of a column.

    None where a column cannot hold both.
    """
    found = _UNIT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour = (None if part is None else int(part) for part in found.groups())
    if month is None:
        ends = [(_days(each, 1, 1), 0) for each in (year or 0, (year or 0) + 1)]
    elif day is None:
        ahead = (year or 0) + month // 12, month % 12 + 1
        ends = [(_days(year or 0, month, 1), 0), (_days(*ahead, 1), 0)]
    elif hour is None:
        since = _days(year or 0, month, day)
        ends = [(since, 0), (since + 1, 0)]
    else:
        since = _days(year or 0, month, day)
        if abs(since * 24 + hour) >= _MOST_HOURS:
            return None
        ends = [(since, hour), (since + (hour + 1) // 24, (hour + 1) % 24)]
    if isinstance(kind, DateType):
        whole = [days for days, _ in ends]
        return None if max(map(abs, whole)) > _MOST_DAYS else (said_date(whole[0]), said_date(whole[1]))
    moments = [days * _DAY + hours * (_DAY // 24) for days, hours in ends]
    if max(map(abs, moments)) > _MOST_MICROSECONDS:
        return None
    zone = "+00:00" if isinstance(kind, TimestamptzType) else ""
    return f"{_said_moment(moments[0])}{zone}", f"{_said_moment(moments[1])}{zone}"


def partition_path(values: Mapping[str, Any]) -> str:
    """A partition as a path that stands for no other: null is Hive's word for it, texts are encoded where needed."""
    return "/".join(f"{_encoded(name)}={_value(value)}" for name, value in values.items())


def order_of(kind: str) -> Callable[[Any], Any]:
    """By what the written values of a type, as Iceberg calls it, are put in order."""
    if kind.startswith("decimal"):
        return Decimal
    if kind in ("float", "double"):
        return float
    if kind.startswith(("date", "timestamp")):
        return _by_year
    if kind.startswith(("binary", "fixed")):
        return base64.b64decode
    return lambda value: value


def said_date(days: int) -> str:
    turns, rest = divmod(days, _TURN_DAYS)
    found = date.fromordinal(_EPOCH + rest)
    return f"{_said_year(found.year + turns * _TURN_YEARS)}-{found.month:02d}-{found.day:02d}"


def _days(year: int, month: int, day: int) -> int:
    turns, rest = divmod(year - 1970, _TURN_YEARS)
    return date(1970 + rest, month, day).toordinal() - _EPOCH + turns * _TURN_DAYS


def _said_year(year: int) -> str:
    if 0 <= year <= _MOST_YEAR:
        return f"{year:04d}"
    return f"+{year}" if year > 0 else f"-{-year:04d}"


def _said_moment(microseconds: int) -> str:
    days, rest = divmod(microseconds, _DAY)
    return f"{said_date(days)}T{_said_time(rest)}"


def _said_time(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    said_fraction = f".{fraction:06d}" if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{said_fraction}"


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, bool | int | float | str) else str(value)


def _value(value: Any) -> str:
    if value is None:
        return _NULL
    text = _encoded(str(value))
    return f"%5F{text[1:]}" if text == _NULL else text


def _encoded(text: str) -> str:
    return "".join(_ENCODED.get(character, character) for character in text)


def _by_year(text: str) -> tuple[int, str]:
    found = _YEAR.match(text)
    return (int(found[1]), text[found.end() :]) if found else (0, text)
