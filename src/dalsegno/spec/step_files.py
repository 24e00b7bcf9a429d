"""Which files a step or a job template names in its block: ``sql: {file: clean.sql}``. Nothing here looks at a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamDefinitions
from dalsegno.spec.params.literals import interpolate, references

#: The name of the file that a field's text stands for; None if it stands for none.
FileName = Callable[[str, str], str | None]


@dataclass(frozen=True)
class NamedFile:
    #: Such as ``sql.file``.
    field: str
    name: str
    #: False: the name holds parameters or is an expression.
    is_known: bool


def named_files(params: ParamDefinitions, fields: Iterable[str], file_name: FileName) -> Iterator[NamedFile]:
    """The files that these fields name, such as ``sql.file``."""
    for field in sorted(fields):
        block, _, name = field.partition(".")
        inside = params[block].value if block in params else None
        if not isinstance(inside, Mapping) or name not in inside:
            continue
        for text in _texts(inside[name]):
            if text is None:
                yield NamedFile(field, _written(inside[name]), is_known=False)
            elif (found := file_name(field, text)) is not None:
                is_known = not references(found)
                yield NamedFile(field, interpolate(found, str) if is_known else found, is_known)


def _texts(given: Any) -> list[str | None]:
    """The literals of a field; None stands for what only a run knows."""
    value = given
    if isinstance(given, ParamDefinition):
        if given.expression is not None or given.secret is not None:
            return [None]
        value = given.value
    match value:
        case str():
            return [value]
        case bool() | int() | float():
            # As ``steps.fields`` writes them.
            return [json.dumps(value)]
        case list():
            return [text for each in value for text in _texts(each)]
    return []


def _written(given: ParamDefinition) -> str:
    return given.expression if given.expression is not None else f"the secret {given.secret}"
