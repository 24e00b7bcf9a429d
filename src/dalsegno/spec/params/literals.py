"""References in texts: ``${name}`` and ``$name`` stand for a parameter's value, ``$$`` for a dollar sign.

``${name('t')}`` stands for a predicate about the table that is called ``t`` in the text. A text is gone through once:
what a value brings along is not looked at again. ``$S3{…}`` and ``$FILE{…}`` were taken care of when the workflow was
pushed, or are to stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamMode, ParamType
from dalsegno.spec.params.calls import called
from dalsegno.spec.params.values import type_of

_REFERENCE = re.compile(
    r"""\$(?:
        (?P<dollar>\$)
      | (?P<file>(?:S3|FILE)\{[^}]*\})
      | \{(?P<braced>[a-zA-Z][-_./a-zA-Z0-9]*)(?:\((?P<arguments>[^{}]*)\))?\}
      | (?P<bare>[a-zA-Z][_a-zA-Z0-9]*)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Reference:
    """What stands between ``${`` and ``}``."""

    name: str
    #: Between parentheses, if there are any.
    arguments: str | None = None

    @property
    def written(self) -> str:
        return self.name if self.arguments is None else f"{self.name}({self.arguments})"

    def text(self, value: str) -> str:
        """What it stands for, given the parameter's value."""
        return value if self.arguments is None else called(self.name, self.arguments, value)


def interpolate(text: str, value_of: Callable[[str], str]) -> str:
    """The text with the value of each name that it refers to."""
    if "$" not in text:
        return text

    def replacement(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        reference = _reference(found)
        return found[0] if reference is None else reference.text(value_of(reference.name))

    return _REFERENCE.sub(replacement, text)


def references(text: str) -> list[str]:
    """The names that a text refers to, each once, in the order of the text."""
    return list(dict.fromkeys(reference.name for reference in _references(text)))


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


def uses(literal: Any) -> list[Reference]:
    """The references in a literal, wherever in it, each once."""
    return list(dict.fromkeys(reference for text in _texts(literal) for reference in _references(text)))


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


def _references(text: str) -> Iterator[Reference]:
    if "$" in text:
        yield from filter(None, map(_reference, _REFERENCE.finditer(text)))


def _reference(found: re.Match[str]) -> Reference | None:
    name = found["braced"] or found["bare"]
    return Reference(name, found["arguments"]) if name else None
