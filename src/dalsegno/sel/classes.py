"""The names of classes, and what ``new`` makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault, nearest
from dalsegno.sel.methods import dates, numbers, strings, util  # noqa: F401 - entered in the tables by importing
from dalsegno.sel.methods.registry import taking
from dalsegno.sel.values import Box, Type, boxed, empty

_CLASSES: Mapping[str, Type] = {
    "int": Type.LONG,
    "long": Type.LONG,
    "Integer": Type.LONG,
    "Long": Type.LONG,
    "float": Type.DOUBLE,
    "double": Type.DOUBLE,
    "Float": Type.DOUBLE,
    "Double": Type.DOUBLE,
    "boolean": Type.BOOLEAN,
    "Boolean": Type.BOOLEAN,
    "String": Type.STRING,
    "Map": Type.MAP,
    "HashMap": Type.MAP,
    "LinkedHashMap": Type.MAP,
    "DateTime": Type.DATETIME,
    "DateTimeZone": Type.DATETIME_ZONE,
    "DateTimeFormatter": Type.DATETIME_FORMATTER,
    "DateTimeFormat": Type.DATETIME_FORMATTER,
    "Property": Type.DATETIME_PROPERTY,
    "Days": Type.DATETIME_DAYS,
    "UUID": Type.UUID,
}
#: Names that mean something before anybody has assigned to them.
PRESETS: Mapping[str, Type] = {
    **_CLASSES,
    "DateTimeConstants": Type.MISCELLANEOUS,
    "System": Type.MISCELLANEOUS,
    "Arrays": Type.MISCELLANEOUS,
    "Math": Type.MATH,
    "Util": Type.UTIL,
    "params": Type.PARAMS,
}


def class_named(name: str) -> Type:
    if name not in _CLASSES:
        raise Fault(f"there is no class {name}", hint=nearest(name, _CLASSES) or f"There are {', '.join(_CLASSES)}.")
    return _CLASSES[name]


def preset(name: str) -> Box:
    """What such a name stands for: of a class that has values, one that was given none."""
    type_ = PRESETS[name]
    return empty(type_) if name in _CLASSES else Box(type_, None)


def construct(context: Context, type_: Type, arguments: list[Box]) -> Box:  # noqa: PLR0911 - one for each class
    """``new``, for the classes that allow it."""
    match type_, arguments:
        case Type.STRING, _:
            return boxed(strings.construct(arguments))
        case Type.DATETIME, _:
            return boxed(dates.construct(context, arguments))
        case Type.LONG, [only]:
            return boxed(numbers.long_of(only))
        case Type.DOUBLE, [only]:
            return boxed(numbers.double_of(only))
        case Type.BOOLEAN, [Box(type=Type.STRING, value=value)]:
            return boxed(value is not None and value.lower() == "true")
        case Type.BOOLEAN, [only]:
            return boxed(taking(Type.BOOLEAN)(only))
        case Type.MAP, []:
            return Box(Type.MAP, {})
    raise Fault(f"a new {type_} cannot be made of {len(arguments)} arguments")
