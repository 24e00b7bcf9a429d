"""Values: typed ones that go in and come out, and the boxes that expressions work with.

A box is a place that holds a value of one type for good, as a variable, an array's element or a map's entry does.
Assigning copies the value into the box; putting a variable into a map puts its box there, so both see later
assignments. Maestro does the same, and its users have come to rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.moments import Days, Moment, Property
from dalsegno.sel.joda.patterns import Pattern
from dalsegno.sel.joda.zones import Zone
from dalsegno.sel.limits import BYTES_PER_CHARACTER, BYTES_PER_ELEMENT, BYTES_PER_ENTRY, Meter
from dalsegno.sel.texts import from_utf16, hash_map_order, java_double, to_utf16

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Type(StrEnum):
    """Maestro's names of types."""

    STRING = "STRING"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING_ARRAY = "STRING_ARRAY"
    LONG_ARRAY = "LONG_ARRAY"
    DOUBLE_ARRAY = "DOUBLE_ARRAY"
    BOOLEAN_ARRAY = "BOOLEAN_ARRAY"
    MAP = "MAP"
    #: A type of parameters only: inside an expression it is a MAP.
    STRING_MAP = "STRING_MAP"
    # What an expression may have in hand, but a parameter cannot be.
    NULL = "NULL"
    VOID = "VOID"
    DATETIME = "DATETIME"
    DATETIME_ZONE = "DATETIME_ZONE"
    DATETIME_FORMATTER = "DATETIME_FORMATTER"
    DATETIME_PROPERTY = "DATETIME_PROPERTY"
    DATETIME_DAYS = "DATETIME_DAYS"
    UUID = "UUID"
    # What methods are called on by name.
    MATH = "MATH"
    UTIL = "PRESET_UTIL_FUNCTION"
    MISCELLANEOUS = "PRESET_MISC_FUNC_FIELDS"
    PARAMS = "PRESET_PARAMS"


ARRAY_OF = {
    Type.STRING: Type.STRING_ARRAY,
    Type.LONG: Type.LONG_ARRAY,
    Type.DOUBLE: Type.DOUBLE_ARRAY,
    Type.BOOLEAN: Type.BOOLEAN_ARRAY,
}
ELEMENT_OF = {array: element for element, array in ARRAY_OF.items()}
#: What a parameter may be.
PARAMETER_TYPES = frozenset({*ARRAY_OF, *ELEMENT_OF, Type.MAP, Type.STRING_MAP})


@dataclass(frozen=True)
class Value:
    """A value with its type: ``value`` is a str, int, float, bool, list or dict of those, or None."""

    type: Type
    value: Any


class Box:
    """A place for values of one type."""

    __slots__ = ("charged", "type", "value")

    def __init__(self, type_: Type, value: Any) -> None:
        self.type = type_
        self.value = value
        #: The bytes that are given back when another value takes the place; None if the box stays alive in a map.
        self.charged: int | None = 0

    def __repr__(self) -> str:
        return f"Box({self.type}, {self.value!r})"


NULL = Box(Type.NULL, None)
VOID = Box(Type.VOID, None)

_DEFAULTS: dict[Type, Callable[[], Any]] = {
    Type.STRING: lambda: None,
    Type.LONG: int,
    Type.DOUBLE: float,
    Type.BOOLEAN: bool,
    **dict.fromkeys(ELEMENT_OF, list),
    Type.MAP: lambda: None,
    Type.DATETIME: lambda: None,
    Type.DATETIME_ZONE: lambda: None,
    Type.DATETIME_FORMATTER: lambda: None,
    Type.DATETIME_PROPERTY: lambda: None,
    Type.DATETIME_DAYS: lambda: None,
    Type.UUID: lambda: None,
}


def empty(type_: Type) -> Box:
    """What a variable holds that is declared without a value."""
    if type_ not in _DEFAULTS:
        raise Fault(f"a variable cannot hold {type_}")
    return Box(type_, _DEFAULTS[type_]())


def array(element: Type, values: list[Any]) -> Box:
    return Box(ARRAY_OF[element], [Box(element, value) for value in values])


def boxed(value: Any) -> Box:  # noqa: PLR0911 - one return for each type
    """The box of what a method of ours returned."""
    match value:
        case Box():
            return value
        case None:
            return NULL
        case bool():
            return Box(Type.BOOLEAN, value)
        case str():
            return Box(Type.STRING, value)
        case int():
            return Box(Type.LONG, value)
        case float():
            return Box(Type.DOUBLE, value)
        case Moment():
            return Box(Type.DATETIME, value)
        case Zone():
            return Box(Type.DATETIME_ZONE, value)
        case Pattern():
            return Box(Type.DATETIME_FORMATTER, value)
        case Property():
            return Box(Type.DATETIME_PROPERTY, value)
        case Days():
            return Box(Type.DATETIME_DAYS, value)
    raise AssertionError(type(value))


def size_of(box: Box) -> int:
    """What storing the box's value costs; what a map holds was charged when it was put there."""
    if box.type is Type.STRING:
        return len(box.value) * BYTES_PER_CHARACTER if box.value else 0
    if box.type in ELEMENT_OF:
        own = len(box.value) * BYTES_PER_ELEMENT
        return own + sum(map(size_of, box.value)) if box.type is Type.STRING_ARRAY else own
    return 0


def charge(box: Box, size: int, meter: Meter) -> None:
    """Charge for what a box is about to hold, and give back exactly what was charged for what it held."""
    meter.hold(size - (box.charged or 0))
    if box.charged is not None:
        box.charged = size


def to_box(given: Value, meter: Meter) -> Box:
    """The box of a parameter. Everything is copied: an expression cannot reach what the caller holds."""
    if given.type in ELEMENT_OF and isinstance(given.value, list | tuple):
        element = ELEMENT_OF[given.type]
        items = [Box(element, _checked(element, item)) for item in given.value]
        box = Box(given.type, items)
        meter.hold(size_of(box))
        return box
    if given.type in {Type.MAP, Type.STRING_MAP} and isinstance(given.value, Mapping):
        return Box(Type.MAP, {to_utf16(str(key)): _entry(item, meter) for key, item in given.value.items()})
    box = Box(given.type, _checked(given.type, given.value))
    meter.hold(size_of(box))
    return box


def _entry(item: Any, meter: Meter) -> Box:
    meter.hold(BYTES_PER_ENTRY)
    return to_box(item if isinstance(item, Value) else Value(type_of(item), item), meter)


def _checked(type_: Type, value: Any) -> Any:
    match type_, value:
        case Type.STRING, str():
            return to_utf16(value)
        case Type.BOOLEAN, bool():
            return value
        case Type.LONG, int() if not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST:
            return value
        case Type.DOUBLE, float() | int() if not isinstance(value, bool):
            return float(value)
    raise Fault(f"{value!r:.80} is not a {type_}")


def type_of(value: Any) -> Type:  # noqa: PLR0911 - one return for each type
    """The type that plain data has, where nobody says it."""
    match value:
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.LONG
        case float():
            return Type.DOUBLE
        case str():
            return Type.STRING
        case Mapping():
            return Type.MAP
        case [] | [str(), *_]:
            return Type.STRING_ARRAY
        case [bool(), *_]:
            return Type.BOOLEAN_ARRAY
        case [_, *_] if all(isinstance(item, int) for item in value):
            return Type.LONG_ARRAY
        case [int() | float(), *_]:
            return Type.DOUBLE_ARRAY
    raise Fault(f"{value!r:.80} is not a value that an expression can use")


def to_value(box: Box, meter: Meter) -> Value:
    """The result of an expression, as plain data."""
    return Value(box.type, _plain(box, meter, meter.limits.depth))


def _plain(box: Box, meter: Meter, depth: int) -> Any:
    meter.step()
    if depth <= 0:
        raise Fault("the map holds itself, or is nested too deeply")
    if box.type is Type.STRING:
        return None if box.value is None else from_utf16(box.value)
    if box.type in ARRAY_OF:
        return box.value
    if box.type in ELEMENT_OF:
        meter.make(len(box.value) * BYTES_PER_ELEMENT)
        return [_plain(item, meter, depth - 1) for item in box.value]
    if box.type is Type.MAP:
        if box.value is None:
            return None
        meter.make(len(box.value) * BYTES_PER_ENTRY)
        return {
            from_utf16(key): _plain(_storable(key, box.value[key]), meter, depth - 1)
            for key in _in_order(box.value, meter)
        }
    return None if box.value is None or box.type is Type.PARAMS else text_of(box, meter)


def _storable(key: str, entry: Box) -> Box:
    if entry.type not in PARAMETER_TYPES:
        raise Fault(f"the map holds {entry.type} under '{key}', which a parameter cannot be")
    return entry


def _in_order(entries: dict[str, Box], meter: Meter) -> list[str]:
    meter.step(len(entries) + sum(map(len, entries)) // 16)
    return hash_map_order(entries)


def text_of(box: Box, meter: Meter) -> str:
    """What ``'' + box`` gives."""
    if box.type is Type.PARAMS:
        raise Fault("params is not a value; name one of its entries: params['name']")
    if box.type is Type.STRING:
        return "null" if box.value is None else str(box.value)
    text = _text(box, meter, meter.limits.depth)
    meter.text(len(text))
    return text


def _text(box: Box, meter: Meter, depth: int) -> str:
    meter.step()
    if depth <= 0:
        raise Fault("the map holds itself, or is nested too deeply")
    if box.value is None:
        return "null"
    match box.type:
        case Type.BOOLEAN:
            return "true" if box.value else "false"
        case Type.DOUBLE:
            return java_double(box.value)
        case Type.MAP:
            parts = [f"{key}={_inner(box.value[key], meter, depth)}" for key in _in_order(box.value, meter)]
            meter.make(sum(map(len, parts)) * BYTES_PER_CHARACTER)
            return "{" + ", ".join(parts) + "}"
        case _ if box.type in ELEMENT_OF:
            parts = [_inner(item, meter, depth) for item in box.value]
            meter.make(sum(map(len, parts)) * BYTES_PER_CHARACTER)
            return "[" + ", ".join(parts) + "]"
    return str(box.value)


def _inner(box: Box, meter: Meter, depth: int) -> str:
    return "NULL" if box.type is Type.NULL else _text(box, meter, depth - 1)
