"""Util: days written as whole numbers, 20260131, and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.moments import Moment, days_between
from dalsegno.sel.joda.parsing import read
from dalsegno.sel.joda.patterns import pattern
from dalsegno.sel.joda.words import duration
from dalsegno.sel.joda.zones import UTC_ZONE, zone
from dalsegno.sel.limits import BYTES_PER_ELEMENT
from dalsegno.sel.methods.dates import this_year
from dalsegno.sel.methods.numbers import long_of
from dalsegno.sel.methods.registry import anything, integer, method, moment, text
from dalsegno.sel.texts import java_double, to_utf16
from dalsegno.sel.values import Box, Type, array, to_value

_DAY = pattern("YYYYMMdd").in_zone(UTC_ZONE)
_INTEGERS = range(-(2**31), 2**31)


def _written(box: Box) -> str:
    """A string, or a long as it is written."""
    return str(box.value) if box.type is Type.LONG else str(text(box))


def _count(box: Box) -> int:
    number = long_of(box)
    if number not in _INTEGERS:
        raise Fault(f"{number} does not fit into 32 bits")
    return number


def _day(context: Context, written: str) -> Moment:
    return read(_DAY, written, this_year=this_year(context))


@method(Type.UTIL, "dateIntToTs", _written, static=True)
def _to_millis(context: Context, day: str) -> int:
    return _day(context, day).millis


@method(Type.UTIL, "tsToDateInt", long_of, static=True)
def _to_day(_: Context, millis: int) -> str:
    return _DAY.print(Moment(millis))


@method(Type.UTIL, "incrementDateInt", _written, integer, static=True)
def _increment(context: Context, day: str, count: int) -> str:
    return _DAY.print(_day(context, day).plus("Days", count))


@method(Type.UTIL, "dateIntHourToTs", _written, _written, text, _count, _count, static=True)
def _hour_to_millis(context: Context, day: str, hour: str, seen: str, days_before: int, hours_before: int) -> int:
    formatter = pattern("YYYYMMddHH").in_zone(zone(seen))
    start = read(formatter, day + hour, this_year=this_year(context))
    return start.plus("Days", -days_before).plus("Hours", -hours_before).millis


@method(Type.UTIL, "timeoutForDateTimeDeadline", moment, text, static=True)
def _timeout_of_moment(context: Context, start: Moment, span: str) -> str:
    return f"{max(start.millis + duration(span) - context.now, 0)} milliseconds"


@method(Type.UTIL, "timeoutForDateIntDeadline", _written, text, static=True)
def _timeout_of_day(context: Context, day: str, span: str) -> str:
    return _timeout_of_moment(context, _day(context, day), span)


@method(Type.UTIL, "dateIntsBetween", _written, _written, _count, static=True)
def _days_between(context: Context, start: str, end: str, step: int) -> Box:
    """From the start up to, but not including, the end; backwards, the same days in the other order."""
    if step == 0:
        raise Fault("the step between days must not be 0")
    first, last = (start, end) if step > 0 else (end, start)
    one = _day(context, first)
    count = days_between(one, _day(context, last)).count
    span = range(0, count, abs(step))
    _announce(context, len(span))
    days = [int(_DAY.print(one.plus("Days", offset))) for offset in span]
    return array(Type.LONG, days if step > 0 else days[::-1])


@method(Type.UTIL, "intsBetween", _count, _count, _count, static=True)
def _ints_between(context: Context, start: int, end: int, step: int) -> Box:
    """From the start up to, but not including, the end."""
    if step == 0:
        raise Fault("the step between numbers must not be 0")
    span = range(start, end, step)
    _announce(context, len(span))
    return array(Type.LONG, list(span))


def _announce(context: Context, count: int) -> None:
    context.meter.step(count)
    context.meter.make(count * BYTES_PER_ELEMENT)


@method(Type.UTIL, "toJson", anything, static=True)
def _to_json(context: Context, value: Box) -> str:
    plain = None if value.type is Type.NULL else to_value(value, context.meter).value
    return to_utf16(_json(plain, context))


def _json(value: Any, context: Context) -> str:
    context.meter.step()
    match value:
        case float():
            shown = java_double(value)
            return shown if math.isfinite(value) else f'"{shown}"'
        case str():
            context.meter.text(len(value))
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{','.join(_json(item, context) for item in value)}]"
        case dict():
            entries = (f"{_json(key, context)}:{_json(item, context)}" for key, item in value.items())
            return f"{{{','.join(entries)}}}"
    return json.dumps(value)
