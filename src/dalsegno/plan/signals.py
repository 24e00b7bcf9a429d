"""Which signals will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dalsegno.model.signals import Match, Signal, SignalValue, Wanted
from dalsegno.model.workflow import Operator

#: Of a LONG.
_MOST_DIGITS = 19


def fits(signal: Signal, wanted: Wanted) -> bool:
    return signal.name == wanted.name and all(
        name in signal.params and is_met(match, signal.params[name]) for name, match in wanted.match.items()
    )


def is_met(match: Match, value: SignalValue) -> bool:
    """Compared as what the match says: a number that was announced is a text for a text, and the other way round."""
    if isinstance(match.value, str):
        return _HOLDS[match.operator](str(value), match.value)
    number = _number(value)
    return number is not None and _HOLDS[match.operator](number, match.value)


def _number(value: SignalValue) -> int | None:
    if isinstance(value, int):
        return value
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


_HOLDS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: lambda found, wanted: found == wanted,
    Operator.GREATER: lambda found, wanted: found > wanted,
    Operator.GREATER_OR_EQUAL: lambda found, wanted: found >= wanted,
    Operator.LESS: lambda found, wanted: found < wanted,
    Operator.LESS_OR_EQUAL: lambda found, wanted: found <= wanted,
}


def newest(signals: Iterable[Signal], wanted: Wanted) -> Signal | None:
    """Of those that will do."""
    return max((signal for signal in signals if fits(signal, wanted)), key=lambda signal: signal.id, default=None)
