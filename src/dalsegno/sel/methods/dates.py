"""DateTime, DateTimeZone, DateTimeFormat, its formatters, Property and Days."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.joda import zones
from dalsegno.sel.joda.moments import Days, Moment, Property, days_between, moment_of
from dalsegno.sel.joda.parsing import read, read_iso
from dalsegno.sel.joda.patterns import Pattern, pattern
from dalsegno.sel.joda.zones import UTC_ZONE, Zone
from dalsegno.sel.methods.registry import field, formatter, integer, method, moment, text, zone
from dalsegno.sel.values import Box, Type

_UNITS = ("Years", "Months", "Weeks", "Days", "Hours", "Minutes", "Seconds", "Millis")
_PROPERTIES = (
    "monthOfYear",
    "weekyear",
    "weekOfWeekyear",
    "dayOfYear",
    "dayOfMonth",
    "dayOfWeek",
    "hourOfDay",
    "minuteOfDay",
    "minuteOfHour",
    "secondOfDay",
    "secondOfMinute",
    "millisOfDay",
    "millisOfSecond",
)
_GETTERS = ("year", *_PROPERTIES)
_SETTERS = tuple(name for name in _GETTERS if name not in {"minuteOfDay", "secondOfDay"})


def this_year(context: Context) -> int:
    return Moment(context.now).field("year")


def construct(context: Context, arguments: list[Box]) -> Moment:
    """``new DateTime(...)``: now; a time; a time in a zone; or seven fields and a zone."""
    match len(arguments):
        case 0:
            return Moment(context.now)
        case 1:
            return _instant(context, arguments[0], None)
        case 2:
            return _instant(context, arguments[0], zone(arguments[1]))
        case 8:
            return moment_of([integer(argument) for argument in arguments[:7]], zone(arguments[7]))
    raise Fault(
        f"DateTime takes 0, 1, 2 or 8 arguments, not {len(arguments)}",
        hint="new DateTime(millis), new DateTime('2026-01-31'), new DateTime(year, month, day, h, min, s, ms, zone)",
    )


def _instant(context: Context, given: Box, seen: Zone | None) -> Moment:
    if given.value is None:
        return Moment(context.now, seen or UTC_ZONE)
    match given.type:
        case Type.LONG:
            return Moment(given.value, seen or UTC_ZONE)
        case Type.STRING:
            return read_iso(given.value, seen or UTC_ZONE)
        case Type.DATETIME:
            return Moment(given.value.millis, seen or given.value.zone)
    raise Fault(f"a DateTime cannot be made of {given.type}")


def _enter_by_name() -> None:
    """Methods that come in families: plusDays and its like, getYear, withYear, dayOfWeek."""
    for unit in _UNITS:
        method(Type.DATETIME, f"plus{unit}", integer)(_adding(unit, 1))
        method(Type.DATETIME, f"minus{unit}", integer)(_adding(unit, -1))
    for name in _GETTERS:
        method(Type.DATETIME, f"get{name[0].upper()}{name[1:]}")(_getting(name))
    for name in _SETTERS:
        method(Type.DATETIME, f"with{name[0].upper()}{name[1:]}", integer)(_setting(name))
    for name in _PROPERTIES:
        method(Type.DATETIME, name)(_property(name))


def _adding(unit: str, sign: int) -> Callable[[Context, Moment, int], Moment]:
    return lambda _, one, count: one.plus(unit, sign * count)


def _getting(name: str) -> Callable[[Context, Moment], int]:
    return lambda _, one: one.field(name)


def _setting(name: str) -> Callable[[Context, Moment, int], Moment]:
    return lambda _, one, value: one.with_field(name, value)


def _property(name: str) -> Callable[[Context, Moment], Property]:
    return lambda _, one: Property(one, name)


_enter_by_name()


@method(Type.DATETIME, "getMillis")
def _millis(_: Context, one: Moment) -> int:
    return one.millis


@method(Type.DATETIME, "toString")
def _text(_: Context, one: Moment) -> str:
    return str(one)


@method(Type.DATETIME, "toString", text)
def _text_by(_: Context, one: Moment, source: str) -> str:
    return pattern(source).print(one)


@method(Type.DATETIME, "parse", text, formatter, static=True)
def _parse(context: Context, written: str, by: Pattern) -> Moment:
    return read(by, written, this_year=this_year(context))


@method(Type.DATETIME, "withZone", zone)
@method(Type.DATETIME, "toDateTime", zone)
def _in_zone(_: Context, one: Moment, seen: Zone) -> Moment:
    return one.in_zone(seen)


@method(Type.DATETIME, "withTimeAtStartOfDay")
def _start_of_day(_: Context, one: Moment) -> Moment:
    return one.start_of_day()


@method(Type.DATETIME, "isAfter", moment)
def _after(_: Context, one: Moment, other: Moment) -> bool:
    return one.millis > other.millis


@method(Type.DATETIME, "isBefore", moment)
def _before(_: Context, one: Moment, other: Moment) -> bool:
    return one.millis < other.millis


@method(Type.DATETIME, "isEqual", moment)
def _equal(_: Context, one: Moment, other: Moment) -> bool:
    return one.millis == other.millis


@method(Type.DATETIME_PROPERTY, "getAsText")
def _as_text(_: Context, one: Property) -> str:
    return one.text


@method(Type.DATETIME_PROPERTY, "get")
def _get(_: Context, one: Property) -> int:
    return one.value


@method(Type.DATETIME_PROPERTY, "withMinimumValue")
def _smallest(_: Context, one: Property) -> Moment:
    return one.smallest


@method(Type.DATETIME_PROPERTY, "withMaximumValue")
def _largest(_: Context, one: Property) -> Moment:
    return one.largest


@method(Type.DATETIME_ZONE, "forID", text, static=True)
def _for_id(_: Context, identifier: str) -> Zone:
    return zones.zone(identifier)


@method(Type.DATETIME_ZONE, "getOffset", moment)
def _offset(_: Context, seen: Zone, one: Moment) -> int:
    return seen.offset(one.millis)


@field(Type.DATETIME_ZONE, "UTC")
def _utc(_: Box) -> Zone:
    return UTC_ZONE


@method(Type.DATETIME_FORMATTER, "forPattern", text, static=True)
def _for_pattern(_: Context, source: str) -> Pattern:
    return pattern(source)


@method(Type.DATETIME_FORMATTER, "withZone", zone)
def _formatter_in_zone(_: Context, by: Pattern, seen: Zone) -> Pattern:
    return by.in_zone(seen)


def _written(box: Box) -> str:
    return str(box.value) if box.type is Type.LONG else str(text(box))


@method(Type.DATETIME_FORMATTER, "parseDateTime", _written)
def _parse_date_time(context: Context, by: Pattern, written: str) -> Moment:
    return read(by, written, this_year=this_year(context))


@method(Type.DATETIME_FORMATTER, "parseMillis", text)
def _parse_millis(context: Context, by: Pattern, written: str) -> int:
    return read(by, written, this_year=this_year(context)).millis


def _printable(box: Box) -> Any:
    return Moment(box.value) if box.type is Type.LONG else moment(box)


@method(Type.DATETIME_FORMATTER, "print", _printable)
def _print(_: Context, by: Pattern, one: Moment) -> str:
    return by.print(one)


@method(Type.DATETIME_DAYS, "daysBetween", moment, moment, static=True)
def _days_between(_: Context, start: Moment, end: Moment) -> Days:
    return days_between(start, end)


@method(Type.DATETIME_DAYS, "getDays")
def _days(_: Context, days: Days) -> int:
    return days.count
