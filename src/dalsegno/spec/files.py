"""References to files in texts: ``$S3{my_script.sql}``, ``$GS{…}`` and ``$FILE{…}`` stand for what the file holds.

They are resolved when a workflow is pushed, so that a version stays what it is, whatever becomes of the file. Reading
is left to the caller: nothing in this package looks at a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamType
from dalsegno.model.workflow import Definition, ForeachStep, Step, WhileStep

#: ``$$S3{…}`` is a text.
_REFERENCE = re.compile(r"(?<!\$)\$(?P<kind>S3|GS|FILE)\{\s*(?P<name>[^{}\n]+?)\s*\}")


class Reference(NamedTuple):
    #: S3, GS or FILE.
    kind: str
    #: An address, or a name relative to where files are kept.
    name: str


Read = Callable[[Reference], str]


def resolve_files(text: str, read: Read) -> str:
    """The text with every reference replaced by what ``read`` returns for it; that is not searched again."""
    return _REFERENCE.sub(lambda found: read(Reference(found["kind"], found["name"])), text)


def references(definition: Definition) -> Iterator[Reference]:
    """The files that parameters and oracles refer to."""
    found: list[Reference] = []

    def note(reference: Reference) -> str:
        found.append(reference)
        return ""

    with_files(definition, note)
    yield from dict.fromkeys(found)


def with_files(definition: Definition, read: Read) -> Definition:
    """The definition with all its references resolved."""
    workflow = definition.workflow
    params = _params(workflow.params, read)
    steps = tuple(_step(step, read) for step in workflow.steps)
    oracle = {table: resolve_files(query, read) for table, query in workflow.oracle.items()}
    return replace(definition, workflow=replace(workflow, params=params, steps=steps, oracle=oracle))


def _step(step: Step, read: Read) -> Step:
    step = replace(step, params=_params(step.params, read))
    if isinstance(step, ForeachStep | WhileStep):
        return replace(step, steps=tuple(_step(inner, read) for inner in step.steps))
    return step


def _params(params: ParamDefinitions, read: Read) -> dict[str, ParamDefinition]:
    return {name: replace(param, value=_value(param.type, param.value, read)) for name, param in params.items()}


def _value(kind: ParamType, value: Any, read: Read) -> Any:
    match value:
        case str() if kind is ParamType.STRING:
            return resolve_files(value, read)
        case list() if kind is ParamType.STRING_ARRAY:
            return [resolve_files(item, read) for item in value]
        case Mapping() if kind is ParamType.STRING_MAP:
            return {key: resolve_files(item, read) for key, item in value.items()}
        case Mapping():
            return _params(value, read)
    return value
