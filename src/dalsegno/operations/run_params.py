"""Parameters as somebody gives them to a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.given_names import refuse_hiding, refuse_hiding_in_step
from dalsegno.errors import ParamError
from dalsegno.model.params import ParamSource, ParamType
from dalsegno.model.stored_text import fault_of_value
from dalsegno.settings import Settings
from dalsegno.spec.names import fault_of_param_name
from dalsegno.spec.params.defaults import WORKFLOW_DEFAULTS
from dalsegno.spec.params.values import cast, type_of


@dataclass(frozen=True)
class TypedParams:
    values: Mapping[str, Any]
    #: Names that the workflow does not have, each with the one that may be meant.
    mistyped: Mapping[str, str]


def read_typed_params(blueprint: Blueprint, texts: Mapping[str, str]) -> TypedParams:
    return TypedParams(typed_params(blueprint, texts), mistyped_params(blueprint, texts))


def typed_params(blueprint: Blueprint, texts: Mapping[str, str]) -> dict[str, Any]:
    """What was typed, as values. What the workflow declares has its type there; what else looks like JSON is JSON."""
    return {name: text if name in blueprint.workflow.params else _value(text) for name, text in texts.items()}


def _value(text: str) -> Any:
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


def mistyped_params(blueprint: Blueprint, names: Iterable[str]) -> dict[str, str]:
    """Names that a workflow does not know, each with the one that may be meant. A run takes them all the same."""
    known = {*blueprint.workflow.params, *blueprint.steps}
    close = {name: get_close_matches(name, known, n=1) for name in names if name not in known}
    return {name: found[0] for name, found in close.items() if found}


def given_params(
    blueprint: Blueprint, params: Mapping[str, Any], settings: Settings, source: ParamSource = ParamSource.LAUNCH
) -> dict[str, dict[str, Any]]:
    """As a run keeps them, each with its type: the declared one, or that of the value."""
    declared = blueprint.workflow.params
    given = {}
    for name, value in params.items():
        if fault := fault_of_param_name(name):
            raise ParamError(f"{name!r} cannot be the name of a parameter: {fault}.")
        if fault := fault_of_value(value):
            raise ParamError(f"The parameter {name!r} cannot be set: it holds {fault}.")
        if name not in declared and name not in WORKFLOW_DEFAULTS:
            refuse_hiding(name, settings, f"the workflow {blueprint.workflow.id!r}")
        if name in declared:
            kind = declared[name].type
        elif name in blueprint.steps and isinstance(value, Mapping):
            kind = ParamType.MAP
        else:
            kind = type_of(value)
        try:
            cast_value = cast(value, kind)
        except ParamError as error:
            raise ParamError(f"The parameter {name!r} is a {kind}: {error.message}", hint=error.hint) from None
        # JSON in a text may have become a map, or a text with escapes other characters.
        if fault := fault_of_value(cast_value):
            raise ParamError(f"The parameter {name!r} cannot be set: it holds {fault}.")
        refuse_hiding_in_step(blueprint, name, cast_value, settings)
        given[name] = {"type": kind.value, "value": cast_value, "source": source.value}
    return given
