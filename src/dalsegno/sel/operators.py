"""What operators do to values of which types: Maestro's rules, with Java's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import BYTES_PER_CHARACTER, CHARACTERS_PER_STEP, Meter
from dalsegno.sel.values import NULL, Box, Type, charge, size_of, text_of

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}


def wrapped(number: int) -> int:
    """The 64 bits that Java would keep."""
    return (number + 2**63) % 2**64 - 2**63


def _divided(left: int, right: int) -> int:
    """Division that cuts towards zero."""
    if right == 0:
        raise Fault("division by zero")
    quotient = abs(left) // abs(right)
    return wrapped(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> int:
    """What is left has the sign of the dividend."""
    if right == 0:
        raise Fault("division by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _real_quotient(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def _real_remainder(left: float, right: float) -> float:
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


_ON_LONGS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: wrapped(left + right),
    "-": lambda left, right: wrapped(left - right),
    "*": lambda left, right: wrapped(left * right),
    "/": _divided,
    "%": _remainder,
}
_ON_DOUBLES: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _real_quotient,
    "%": _real_remainder,
}


def binary(operator: str, left: Box, right: Box, meter: Meter) -> Box:  # noqa: PLR0911 - one return for each rule
    """``left operator right``, for everything but && and ||."""
    match left.type, right.type:
        case Type.LONG, Type.LONG:
            if operator in _ON_LONGS:
                return Box(Type.LONG, _ON_LONGS[operator](left.value, right.value))
            return Box(Type.BOOLEAN, _COMPARISONS[operator](left.value, right.value))
        case ((Type.LONG | Type.DOUBLE), (Type.LONG | Type.DOUBLE)):
            one, other = float(left.value), float(right.value)
            if operator in _ON_DOUBLES:
                return Box(Type.DOUBLE, _ON_DOUBLES[operator](one, other))
            return Box(Type.BOOLEAN, _COMPARISONS[operator](one, other))
        case ((Type.LONG | Type.DOUBLE), Type.STRING) if operator in {"+", "==", "!="}:
            return binary(operator, Box(Type.STRING, text_of(left, meter)), right, meter)
        case Type.STRING, _ if operator == "+":
            return _joined(left, right, meter)
        case Type.NULL, _:
            return _with_null(operator, right, meter)
        case ((Type.STRING | Type.LONG | Type.DOUBLE | Type.BOOLEAN), Type.NULL) if operator in {"==", "!="}:
            return _with_null(operator, left, meter)
        case (Type.STRING, Type.STRING) | (Type.BOOLEAN, Type.BOOLEAN) if operator in {"==", "!="}:
            return Box(Type.BOOLEAN, _COMPARISONS[operator](left.value, right.value))
    raise _refused(operator, left, right)


def _joined(left: Box, right: Box, meter: Meter) -> Box:
    one, other = text_of(left, meter), text_of(right, meter)
    meter.text(len(one) + len(other))
    return Box(Type.STRING, one + other)


def _with_null(operator: str, other: Box, meter: Meter) -> Box:
    match operator:
        case "==" | "!=":
            return Box(Type.BOOLEAN, (other.value is None) == (operator == "=="))
        case "<" | ">":
            return Box(Type.BOOLEAN, False)
        case "+":
            return _joined(Box(Type.STRING, "null"), other, meter)
    raise _refused(operator, NULL, other)


def _refused(operator: str, left: Box, right: Box) -> Fault:
    hint = None
    if Type.NULL in {left.type, right.type}:
        hint = "A name that was given no value is NULL: look at its spelling."
    elif left.type is Type.STRING and operator in {"<", ">", "<=", ">="}:
        hint = "Use compareTo: a.compareTo(b) < 0."
    elif left.type is Type.STRING and operator in {"==", "!="}:
        hint = f"Use String.valueOf({right.type.lower()}) on the right."
    elif left.type is Type.DATETIME:
        hint = "Use isEqual, isBefore or isAfter."
    return Fault(f"{left.type} {operator} {right.type} is not defined", hint=hint)


def unary(operator: str, operand: Box) -> Box:
    match operator, operand.type:
        case "-", Type.LONG:
            return Box(Type.LONG, wrapped(-operand.value))
        case "-", Type.DOUBLE:
            return Box(Type.DOUBLE, -operand.value)
        case "+", (Type.LONG | Type.DOUBLE):
            return Box(operand.type, operand.value)
        case "!", Type.BOOLEAN:
            return Box(Type.BOOLEAN, not operand.value)
    raise Fault(f"{operator}{operand.type} is not defined")


def assign(operator: str, target: Box, value: Box, meter: Meter) -> None:
    """Put a value into a box, which keeps its type."""
    if operator == "+=" and target.type is Type.STRING:
        added = text_of(value, meter)
        text = target.value if target.value is not None else "null"
        if len(text) + len(added) > meter.limits.characters:
            meter.text(len(text) + len(added))
        charge(target, (len(text) + len(added)) * BYTES_PER_CHARACTER, meter)
        meter.step(1 + len(text) // CHARACTERS_PER_STEP)
        target.value = text + added
        return
    if target.type is not value.type:
        raise mismatch(target.type, value)
    if operator == "=":
        if target.type is Type.STRING_ARRAY:  # whose strings are measured one by one
            meter.step(len(value.value) // 4)
        charge(target, size_of(value), meter)
        target.value = value.value
    elif target.type is Type.LONG:
        target.value = _ON_LONGS[operator[0]](target.value, value.value)
    elif target.type is Type.DOUBLE:
        target.value = _ON_DOUBLES[operator[0]](target.value, value.value)
    else:
        raise Fault(f"{target.type} {operator} {value.type} is not defined")


def mismatch(expected: Type, value: Box) -> Fault:
    hint = None
    if value.type is Type.NULL:
        hint = "null cannot be assigned; and a name that was given no value is null."
    elif expected is Type.DOUBLE and value.type is Type.LONG:
        hint = f"Write it with a point: {value.value}.0."
    elif expected is Type.LONG and value.type is Type.DOUBLE:
        hint = "Use longValue()."
    return Fault(f"{value.type} cannot be assigned to {expected}", hint=hint)
