"""What can be said about definitions when a workflow is pushed, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.errors import ParamError, SelError
from dalsegno.model.params import Param, ParamDefinition, ParamDefinitions, ParamType
from dalsegno.spec.params import validators
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.literals import all_references, interpolate_all
from dalsegno.spec.params.values import cast


@dataclass(frozen=True)
class Problem:
    """Something that cannot work."""

    #: Where: names of parameters, the outer one first.
    path: tuple[str, ...]
    message: str
    hint: str | None = None
    #: Whether it works in spite of it.
    is_warning: bool = False


def problems_of(definitions: ParamDefinitions, expressions: Expressions, now: datetime) -> Iterator[Problem]:
    """Expressions that cannot be read, values that are not of their type, rules that they break already."""
    for name, definition in definitions.items():
        yield from _problems((name,), definition, expressions, now)


def _problems(
    path: tuple[str, ...], definition: ParamDefinition, expressions: Expressions, now: datetime
) -> Iterator[Problem]:
    try:
        if definition.validator is not None:
            validators.check_rule(definition.validator, expressions)
        if definition.expression is not None:
            expressions.names_of(definition.expression)
        if definition.type is ParamType.MAP and definition.value is not None:
            inner = [
                problem
                for key, entry in definition.value.items()
                for problem in _problems((*path, key), entry, expressions, now)
            ]
            yield from inner
            if any(not problem.is_warning for problem in inner):
                return
        if _is_known(definition):
            param = Param(definition.type, _known(definition))
            if definition.validator is not None:
                yield from _broken(path, definition.validator, param, expressions, now)
    except (ParamError, SelError) as found:
        yield Problem(path, found.message, found.hint)


def _broken(
    path: tuple[str, ...], rule: str, param: Param, expressions: Expressions, now: datetime
) -> Iterator[Problem]:
    name = ".".join(path)
    try:
        validators.check(name, rule, param, expressions, now)
    except ParamError as broken:
        yield Problem(path, broken.message, broken.hint, is_warning=validators.lets_pass(name))


def _is_known(definition: ParamDefinition) -> bool:
    """Whether the value is a literal without references."""
    if definition.value is None:
        return False
    if definition.type is ParamType.MAP:
        return all(_is_known(entry) for entry in definition.value.values())
    return not all_references(definition.value)


def _known(definition: ParamDefinition) -> Any:
    if definition.type is ParamType.MAP:
        return {key: _known(entry) for key, entry in definition.value.items()}
    return cast(interpolate_all(definition.value, str), definition.type)
