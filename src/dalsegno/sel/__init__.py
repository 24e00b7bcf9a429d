"""SEL, the Simple Expression Language of Maestro, in an interpreter of our own.

lexer, parser, nodes      text → tree
values, operators         what values are, and what operators do to them
methods, joda, regex      what can be called: tables of ours, so that an expression reaches nothing else
interpreter, classes      tree → value
limits                    what an expression may use, and the meter that stops it
names                     which parameters an expression reads

An expression that gives a value in Maestro gives the same here. docs/reference/sel.md has the language, and the few
places where Maestro refuses what Java allows and we do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from random import Random, SystemRandom

from dalsegno.errors import SelError
from dalsegno.sel.context import Context, Extension
from dalsegno.sel.faults import Fault
from dalsegno.sel.interpreter import Interpreter
from dalsegno.sel.limits import Budget, Limits, Meter
from dalsegno.sel.names import names_of
from dalsegno.sel.parser import Program, parse
from dalsegno.sel.texts import from_utf16
from dalsegno.sel.values import PARAMETER_TYPES, Type, Value, to_value, type_of

__all__ = [
    "PARAMETER_TYPES",
    "Budget",
    "Extension",
    "Limits",
    "Program",
    "Type",
    "Value",
    "evaluate",
    "names_of",
    "parse",
    "value_of",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value_of(plain: object) -> Value:
    """Plain data with the type that it looks like."""
    try:
        return Value(type_of(plain), plain)
    except Fault as fault:
        raise SelError(f"{fault.message}.") from None


def evaluate(
    expression: str | Program,
    params: Mapping[str, Value],
    *,
    now: datetime,
    extension: Extension | None = None,
    limits: Limits | None = None,
    random: Random | None = None,
    budget: Budget | None = None,
) -> Value:
    """The value of an expression.

    Whatever the expression is, this returns or raises ``SelError``, within the limits. The result may be of a type
    that no parameter can have, such as NULL or DATETIME: compare with ``PARAMETER_TYPES``. Evaluations that share a
    budget stop when they have used it up together.
    """
    limits = limits or Limits()
    program = parse(expression, limits) if isinstance(expression, str) else expression
    meter = Meter(limits, budget=budget)
    millis = (now - _EPOCH) // timedelta(milliseconds=1)
    context = Context(params, millis, random or SystemRandom(), extension, meter)
    try:
        with meter.budget.running():
            return to_value(Interpreter(program, context).run(), meter)
    except Fault as fault:
        raise SelError(f"The result is not usable: {from_utf16(fault.message)}.", hint=fault.hint) from None
    except RecursionError:  # the caller's own stack was nearly full
        raise SelError("The expression is nested too deeply.", hint="Use variables for its parts.") from None
