"""Long, Integer, Double, Boolean, Math, UUID, System, Arrays and DateTimeConstants."""

from __future__ import annotations

import math
import re
from uuid import UUID

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.methods.registry import anything, field, long, method, number, taking, text
from dalsegno.sel.texts import java_double
from dalsegno.sel.values import Box, Type

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_LONG = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_DIGITS = 40


def parsed_long(written: str) -> int:
    """Long.parseLong."""
    if not _LONG.fullmatch(written) or len(written) > _DIGITS or not _SMALLEST <= int(written) <= _LARGEST:
        raise Fault(f"'{written:.60}' is not a whole number of 64 bits")
    return int(written)


def parsed_double(written: str) -> float:
    """Double.parseDouble."""
    trimmed = written.strip("".join(map(chr, range(33))))
    if not _DOUBLE.fullmatch(trimmed):
        raise Fault(f"'{written:.60}' is not a number")
    return float(trimmed.rstrip("fFdD") if trimmed[-1:] in "fFdD" else trimmed)


def long_of(box: Box) -> int:
    """A long, also if it is written in a string."""
    if box.type is Type.STRING and box.value is not None:
        return parsed_long(box.value)
    return int(long(box))


def double_of(box: Box) -> float:
    """A double, also if it is written in a string."""
    if box.type is Type.STRING and box.value is not None:
        return parsed_double(box.value)
    return float(taking(Type.DOUBLE)(box))


def truncated(value: float) -> int:
    """A cast to long: towards zero, and as near as 64 bits allow."""
    if math.isnan(value):
        return 0
    return int(min(max(value, float(_SMALLEST)), float(_LARGEST))) if abs(value) < float(_LARGEST) else _end(value)


def _end(value: float) -> int:
    return _LARGEST if value > 0 else _SMALLEST


@method(Type.LONG, "toString")
@method(Type.LONG, "toString", long, static=True)
def _text_of_long(_: Context, value: int) -> str:
    return str(value)


@method(Type.LONG, "valueOf", long_of, static=True)
@method(Type.LONG, "intValue")
def _long(_: Context, value: int) -> int:
    return value


@method(Type.LONG, "parseLong", text, static=True)
def _parse_long(_: Context, written: str) -> int:
    return parsed_long(written)


@method(Type.DOUBLE, "toString")
@method(Type.DOUBLE, "toString", taking(Type.DOUBLE), static=True)
def _text_of_double(_: Context, value: float) -> str:
    return java_double(value)


@method(Type.DOUBLE, "valueOf", double_of, static=True)
def _double(_: Context, value: float) -> float:
    return value


@method(Type.DOUBLE, "parseDouble", text, static=True)
def _parse_double(_: Context, written: str) -> float:
    return parsed_double(written)


@method(Type.DOUBLE, "intValue")
@method(Type.DOUBLE, "longValue")
def _long_value(_: Context, value: float) -> int:
    return truncated(value)


@method(Type.MATH, "min", long, long, static=True)
def _min(_: Context, one: int, other: int) -> int:
    return min(one, other)


@method(Type.MATH, "max", long, long, static=True)
def _max(_: Context, one: int, other: int) -> int:
    return max(one, other)


@method(Type.MATH, "random", static=True)
def _random(context: Context) -> float:
    return context.random.random()


@method(Type.MATH, "pow", number, number, static=True)
def _pow(_: Context, base: float, exponent: float) -> float:
    """Math.pow, which differs from C's where one is an infinity or no number."""
    if exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    odd = exponent.is_integer() and abs(exponent) < 2**53 and int(exponent) % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:  # zero to a negative power, or a negative number to a broken one
        if base == 0:
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


@method(Type.UUID, "randomUUID", static=True)
def _random_uuid(context: Context) -> Box:
    return Box(Type.UUID, str(UUID(int=context.random.getrandbits(128), version=4)))


@method(Type.UUID, "toString")
def _uuid_text(_: Context, value: str) -> str:
    return value


@method(Type.MISCELLANEOUS, "currentTimeMillis", static=True)
def _now(context: Context) -> int:
    return context.now


@method(Type.MISCELLANEOUS, "asList", anything, static=True)
def _as_list(_: Context, items: Box) -> Box:
    return items


@field(Type.MISCELLANEOUS, "SUNDAY")
def _sunday(_: Box) -> int:
    return 7
