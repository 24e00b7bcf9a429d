"""Values of parameters: their types, and what may stand for each."""

from __future__ import annotations

import math
from typing import Any

from dalsegno.model.params import ParamType
from dalsegno.spec.fields import kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar
from dalsegno.spec.params import values
from dalsegno.spec.problems import Problems

_LONGEST = 2**63
_SCALARS = (ParamType.STRING, ParamType.LONG, ParamType.DOUBLE, ParamType.BOOLEAN)
_EXPECTED = {
    ParamType.STRING: "a text",
    ParamType.LONG: "a whole number of 64 bits",
    ParamType.DOUBLE: "a number",
    ParamType.BOOLEAN: "true or false",
}


def scalar_type(node: Node) -> ParamType | None:
    """The type that a single value has by itself."""
    return values.scalar_type(_value(node))


def array_type(node: ListNode) -> ParamType | None:
    """The type of a list; None if its items differ, or are not single values."""
    return values.array_type(_value(item) for item in node.items)


def _value(node: Node) -> Any:
    return node.value if isinstance(node, Scalar) else None


def literal(kind: ParamType, node: Node, name: str, path: str, problems: Problems) -> Any:
    """The value of this type; a problem and None if the node holds none. MAP is read elsewhere."""

    def wrong(expected: str, found: Node) -> None:
        hint = None
        if isinstance(found, Scalar) and isinstance(found.value, str) and "$" in found.value:
            hint = f"only texts may hold ${{…}}; write an expression: '!{name}<{kind.lower()}>'"
        problems.add(f"{name!r} is a {kind} and needs {expected}, found {kind_of(found)}", found.mark, path, hint)

    if kind in _SCALARS:
        value = _scalar(kind, node)
        if value is None:
            wrong(_EXPECTED[kind], node)
        return value
    if kind is ParamType.STRING_MAP:
        if not isinstance(node, MapNode):
            return wrong("a mapping of texts", node)
        texts = {key: _scalar(ParamType.STRING, item) for key, (_, item) in node.entries.items()}
        for key, text in texts.items():
            if text is None:
                wrong("a mapping of texts", node.entries[key][1])
        return texts
    element = kind.element
    if element is None or not isinstance(node, ListNode):
        return wrong("a list", node)
    found = [_scalar(element, item) for item in node.items]
    for value, item in zip(found, node.items, strict=True):
        if value is None:
            wrong(f"a list, each item {_EXPECTED[element]}", item)
    return found


def _scalar(kind: ParamType, node: Node) -> str | int | float | bool | None:  # noqa: PLR0911 - one for each type
    if not isinstance(node, Scalar) or node.value is None:
        return None
    value = node.value
    if kind is ParamType.STRING:
        return value if isinstance(value, str) else node.text
    if kind is ParamType.BOOLEAN:
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    number = _number(value)
    if number is None or not math.isfinite(number):
        return None
    if kind is ParamType.DOUBLE:
        return float(number) if abs(number) < 1e308 else None  # noqa: PLR2004 - where doubles end
    return number if isinstance(number, int) and -_LONGEST <= number < _LONGEST else None


def _number(value: str | int | float) -> int | float | None:
    """A number, which Maestro's JSON may also give as a text."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
    except ValueError:
        return None
