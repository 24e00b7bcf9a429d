"""Tables of methods by type and name, and the checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault, nearest
from dalsegno.sel.limits import CHARACTERS_PER_STEP
from dalsegno.sel.values import Box, Type, boxed

#: Turns an argument into what the method takes, or refuses it.
Taker: TypeAlias = Callable[[Box], Any]
Function: TypeAlias = Callable[..., Any]
AnyFunction = TypeVar("AnyFunction", bound=Function)


@dataclass(frozen=True)
class _Form:
    """One of a method's forms, told apart by how many arguments it takes; None takes any."""

    takers: tuple[Taker, ...] | None
    function: Function
    static: bool
    on_null: bool


METHODS: dict[Type, dict[str, list[_Form]]] = {}
_FIELDS: dict[tuple[Type, str], Callable[[Box], Any]] = {}
_INTEGERS = range(-(2**31), 2**31)


def taking(type_: Type) -> Taker:
    """An argument of one type, never null."""

    def take(box: Box) -> Any:
        if box.type is not type_ or box.value is None:
            raise Fault(f"expected {type_}, found {'null' if box.value is None else box.type}")
        return box.value

    return take


text = taking(Type.STRING)
long = taking(Type.LONG)
moment = taking(Type.DATETIME)
zone = taking(Type.DATETIME_ZONE)
formatter = taking(Type.DATETIME_FORMATTER)


def integer(box: Box) -> int:
    """An int of Java: 32 bits."""
    number: int = long(box)
    if number not in _INTEGERS:
        raise Fault(f"{number} does not fit into 32 bits")
    return number


def number(box: Box) -> float:
    if box.type not in {Type.LONG, Type.DOUBLE}:
        raise Fault(f"expected a number, found {box.type}")
    return float(box.value)


def anything(box: Box) -> Box:
    return box


def method(
    type_: Type, name: str, *takers: Taker, static: bool = False, variadic: bool = False, on_null: bool = False
) -> Callable[[AnyFunction], AnyFunction]:
    """Enter a function in the table.

    It is given the context, the receiver's value unless it is static, and the arguments; all of them as boxes in one
    list if it is variadic. Only some methods can be called on a variable that was given no value.
    """

    def enter(function: AnyFunction) -> AnyFunction:
        forms = METHODS.setdefault(type_, {}).setdefault(name, [])
        forms.append(_Form(None if variadic else takers, function, static=static, on_null=on_null))
        return function

    return enter


def field(type_: Type, name: str) -> Callable[[Callable[[Box], Any]], Callable[[Box], Any]]:
    def enter(function: Callable[[Box], Any]) -> Callable[[Box], Any]:
        _FIELDS[type_, name] = function
        return function

    return enter


def call(context: Context, receiver: Box, name: str, arguments: list[Box]) -> Box:
    """What the method returns."""
    known = METHODS.get(receiver.type, {})
    if name not in known:
        raise Fault(f"{receiver.type} has no method {name}", hint=nearest(name, known) or _listed(known))
    if receiver.type is Type.STRING and receiver.value is not None:
        context.meter.step(len(receiver.value) // CHARACTERS_PER_STEP)
    for form in known[name]:
        if form.takers is None:
            given: list[Any] = [arguments]
        elif len(form.takers) == len(arguments):
            given = [take(argument) for take, argument in zip(form.takers, arguments, strict=True)]
        else:
            continue
        if not form.static:
            if receiver.value is None and not form.on_null:
                raise Fault(f"{name} is called on no value", hint=f"Call it on a {receiver.type}, not on its class.")
            given.insert(0, receiver.value)
        result = boxed(form.function(context, *given))
        if result.type is Type.STRING and result.value is not None:
            context.meter.text(len(result.value))
        return result
    counts = " or ".join(str(len(form.takers)) for form in known[name] if form.takers is not None)
    raise Fault(f"{name} takes {counts} arguments, not {len(arguments)}")


def field_of(receiver: Box, name: str) -> Box:
    """The value of a field."""
    if (receiver.type, name) not in _FIELDS:
        known = [known for type_, known in _FIELDS if type_ is receiver.type]
        hint = nearest(name, known)
        if name in METHODS.get(receiver.type, {}):
            hint = f"It is a method: {name}()."
        elif receiver.type is Type.NULL:
            hint = "A name that was given no value is NULL: look at its spelling."
        raise Fault(f"{receiver.type} has no field {name}", hint=hint)
    return boxed(_FIELDS[receiver.type, name](receiver))


def _listed(known: dict[str, Any]) -> str | None:
    if not known:
        return None
    return f"It has {', '.join(sorted(known)[:12])}{', …' if len(known) > 12 else ''}."  # noqa: PLR2004 - one line
