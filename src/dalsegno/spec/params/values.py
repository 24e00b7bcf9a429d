"""Values and their types: what is one of which, what can become one, and how it is written into a text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.errors import ParamError
from dalsegno.model.params import ParamType, Value
from dalsegno.sel.texts import java_double

_SMALLEST_LONG, _LARGEST_LONG = -(2**63), 2**63 - 1
_BOOLEANS = {"true": True, "false": False}
_ARRAYS: dict[ParamType | None, ParamType] = {type_.element: type_ for type_ in ParamType if type_.element is not None}
_SHOWN = 80
_NUMBER_SIZE = 8


def type_of(value: Any) -> ParamType:
    """The type of plain data, where nobody says it. An empty list is one of texts."""
    match value:
        case list():
            if found := array_type(value):
                return found
            raise ParamError(
                f"A list holds texts, whole numbers, numbers or booleans, all of one kind; {shown(value)} does not.",
                hint="Give it as text, such as JSON.",
            )
        case Mapping():
            is_all_text = bool(value) and all(isinstance(item, str) for item in value.values())
            return ParamType.STRING_MAP if is_all_text else ParamType.MAP
    if found := scalar_type(value):
        return found
    raise ParamError(f"{shown(value)} is of no type that a parameter can have.", hint=f"Types: {', '.join(ParamType)}.")


def scalar_type(value: Any) -> ParamType | None:
    """The type of a single value; None of anything else."""
    match value:
        case bool():
            return ParamType.BOOLEAN
        case int():
            return ParamType.LONG
        case float():
            return ParamType.DOUBLE
        case str():
            return ParamType.STRING
    return None


def array_type(items: Iterable[Any]) -> ParamType | None:
    """The type of a list of these; None if they differ, or are not single values. An empty one is of texts."""
    kinds = {scalar_type(item) for item in items} or {ParamType.STRING}
    if kinds == {ParamType.LONG, ParamType.DOUBLE}:
        return ParamType.DOUBLE_ARRAY
    return _ARRAYS.get(kinds.pop()) if len(kinds) == 1 else None


def cast(value: Any, to: ParamType) -> Value:
    """The value as one of this type; ``ParamError`` if it cannot be.

    Maestro's rules: texts become numbers and booleans if they are written like one, scalars become texts, LONG becomes
    DOUBLE, and lists likewise, element by element. Beyond Maestro's, JSON text becomes a list or a map.
    """
    try:
        match to:
            case ParamType.MAP:
                return {str(key): _map_entry(item) for key, item in _mapping(value).items()}
            case ParamType.STRING_MAP:
                return {str(key): _scalar(item, ParamType.STRING) for key, item in _mapping(value).items()}
            case _ if to.element is not None:
                return [_scalar(item, to.element) for item in _list(value)]
            case _:
                return _scalar(value, to)
    except (ValueError, TypeError, OverflowError, RecursionError) as mismatch:
        raise ParamError(f"{shown(value)} is not a {to}.") from mismatch


def _scalar(value: Any, to: ParamType) -> str | int | float | bool:
    match to, value:
        case ParamType.STRING, str() | bool() | int() | float():
            return value if isinstance(value, str) else text_of(value)
        case ParamType.BOOLEAN, bool():
            return value
        case ParamType.BOOLEAN, str() if value.lower() in _BOOLEANS:
            return _BOOLEANS[value.lower()]
        case (ParamType.LONG | ParamType.DOUBLE, str() | int() | float()) if not isinstance(value, bool):
            return _long(value) if to is ParamType.LONG else _double(value)
    raise TypeError


def _long(value: Any) -> int:
    if isinstance(value, float):
        raise TypeError
    number = int(_as_java_reads(value)) if isinstance(value, str) else value
    if not _SMALLEST_LONG <= number <= _LARGEST_LONG:
        raise OverflowError
    return number


def _double(value: Any) -> float:
    number = float(_as_java_reads(value) if isinstance(value, str) else value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _as_java_reads(number: str) -> str:
    """Python would also take digits in groups, and digits that are not ASCII."""
    if "_" in number or not number.isascii():
        raise ValueError
    return number


def _list(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, list | tuple):
        raise TypeError
    return list(value)


def _mapping(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _map_entry(item: Any) -> Value:
    return cast(item, type_of(item))


def text_of(value: Value) -> str:
    """How a value stands in a text: lists and maps as JSON, numbers as Java writes them, which SEL does as well."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case int():
            return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size_of(value: Value) -> int:
    """About how many characters it takes to write the value down."""
    match value:
        case str():
            return len(value)
        case list():
            return sum(map(size_of, value))
        case Mapping():
            return sum(len(key) + size_of(item) for key, item in value.items())
    return _NUMBER_SIZE


def shown(value: Any) -> str:
    """A value in a message: short, and such that a text is seen to be one."""
    written = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= _SHOWN else f"{written[: _SHOWN - 1]}…"
