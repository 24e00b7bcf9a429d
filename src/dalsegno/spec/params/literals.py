"""References in texts: ``${name}`` and ``$name`` stand for a parameter's value, ``$$`` for a dollar sign.

A text is gone through once: what a value brings along is not looked at again. ``$S3{…}`` and ``$FILE{…}`` were taken
care of when the workflow was pushed, or are to stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamMode, ParamType
from dalsegno.spec.params.values import type_of

_REFERENCE = re.compile(
    r"""\$(?:
        (?P<dollar>\$)
      | (?P<file>(?:S3|FILE)\{[^}]*\})
      | \{(?P<braced>[a-zA-Z][-_./a-zA-Z0-9]*)\}
      | (?P<bare>[a-zA-Z][_a-zA-Z0-9]*)
    )""",
    re.VERBOSE,
)


def interpolate(text: str, value_of: Callable[[str], str]) -> str:
    """The text with the value of each name that it refers to."""
    if "$" not in text:
        return text

    def replacement(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = _name(found)
        return found[0] if name is None else value_of(name)

    return _REFERENCE.sub(replacement, text)


def references(text: str) -> list[str]:
    """The names that a text refers to, each once, in the order of the text."""
    if "$" not in text:
        return []
    names = (_name(found) for found in _REFERENCE.finditer(text))
    return list(dict.fromkeys(name for name in names if name is not None))


def escaped(text: str) -> str:
    """The literal that stands for exactly this text."""
    return text.replace("$", "$$")


def as_definition(value: Any, type_: ParamType | None = None, *, mode: ParamMode | None = None) -> ParamDefinition:
    """The literal that evaluates to exactly this value: dollar signs in it stay what they are."""
    type_ = type_ or type_of(value)
    match type_:
        case ParamType.MAP:
            literal: Any = {name: as_definition(item) for name, item in value.items()}
        case ParamType.STRING:
            literal = escaped(value)
        case ParamType.STRING_ARRAY:
            literal = [escaped(item) for item in value]
        case ParamType.STRING_MAP:
            literal = {escaped(key): escaped(item) for key, item in value.items()}
        case _:
            literal = value
    return ParamDefinition(type_, literal, mode=mode)


def interpolate_all(literal: Any, value_of: Callable[[str], str]) -> Any:
    """The same in every text of a literal: elements of lists, keys and values of maps."""
    match literal:
        case str():
            return interpolate(literal, value_of)
        case list() | tuple():
            return [interpolate_all(item, value_of) for item in literal]
        case Mapping():
            return {interpolate(key, value_of): interpolate_all(item, value_of) for key, item in literal.items()}
    return literal


def all_references(literal: Any) -> list[str]:
    """The names that a literal refers to, wherever in it."""
    return list(dict.fromkeys(name for text in _texts(literal) for name in references(text)))


def _texts(literal: Any) -> Iterator[str]:
    match literal:
        case str():
            yield literal
        case list() | tuple():
            for item in literal:
                yield from _texts(item)
        case Mapping():
            for key, item in literal.items():
                yield key
                yield from _texts(item)


def _name(found: re.Match[str]) -> str | None:
    return found["braced"] or found["bare"]
