"""Which layers of definitions there are, and in which order they lie: of a run, of a restart, of a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import replace

from dalsegno.model.params import (
    InternalMode,
    ParamDefinition,
    ParamDefinitions,
    ParamMode,
    Params,
    ParamSource,
    ParamType,
)
from dalsegno.spec.params.defaults import STEP_DEFAULTS, WORKFLOW_DEFAULTS
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.literals import all_references, as_definition
from dalsegno.spec.params.merging import Layer, merge, settled

_OF_RUNS = {name: default.definition for name, default in WORKFLOW_DEFAULTS.items()}
_OF_STEPS = {name: default.definition for name, default in STEP_DEFAULTS.items()}


def workflow_definitions(workflow: ParamDefinitions, *runs: Layer) -> dict[str, ParamDefinition]:
    """All definitions of a run: the workflow's own, overwritten by the layers that its start and restarts bring.

    Of the defaults, only those that somebody overwrites are part of it: the others are made when they are used.
    """
    layers = (Layer(workflow, ParamSource.DEFINITION), *runs)
    return settled(merge(_overwritten(_OF_RUNS, layers), *layers))


def step_definitions(
    step: ParamDefinitions,
    *runs: Layer,
    type_defaults: ParamDefinitions | None = None,
    template: ParamDefinitions | None = None,
    workflow: Params | None = None,
) -> dict[str, ParamDefinition]:
    """All definitions of a step: defaults of steps and of its type, its job template, its own, those of the run.

    Parameters of the workflow flow into those of a job template that have the same name. What a run gives beyond the
    step's own comes before them, so that the step's own can refer to it.
    """
    own = Layer(step, ParamSource.DEFINITION)
    return settled(
        merge(
            _overwritten(_OF_STEPS, (own, *runs)),
            Layer(type_defaults or {}, ParamSource.SYSTEM_DEFAULT),
            Layer(template or {}, ParamSource.TEMPLATE_SCHEMA),
            Layer(_flowing(workflow or {}, template or {}), ParamSource.WORKFLOW_PARAMETER, is_from_parent=True),
            *(_part(layer, layer.params.keys() - step.keys()) for layer in runs),
            own,
            *(_part(layer, layer.params.keys() & step.keys()) for layer in runs),
        )
    )


def _flowing(workflow: Params, template: ParamDefinitions) -> dict[str, ParamDefinition]:
    return {
        name: ParamDefinition(param.type, f"${{{name}}}") if param.is_secret else as_definition(param.value, param.type)
        for name, param in workflow.items()
        if name in template
    }


def _part(layer: Layer, names: Set[str]) -> Layer:
    return replace(layer, params={name: given for name, given in layer.params.items() if name in names})


def _overwritten(defaults: ParamDefinitions, layers: Iterable[Layer]) -> Layer:
    """Of the defaults, those that are given again above."""
    names = {name for layer in layers for name in layer.params if name in defaults}
    return Layer({name: defaults[name] for name in names}, ParamSource.SYSTEM_DEFAULT)


def handed_down(params: Params, definitions: ParamDefinitions) -> dict[str, ParamDefinition]:
    """What a run gives to one that it begins. Secrets go by their names; what was made of one stays behind."""
    found: dict[str, ParamDefinition] = {}
    for name, param in params.items():
        if name in WORKFLOW_DEFAULTS and WORKFLOW_DEFAULTS[name].internal_mode is InternalMode.RESERVED:
            continue
        if not param.is_secret:
            found[name] = replace(as_definition(param.value, param.type, mode=param.mode), source=param.source)
        elif name in definitions and definitions[name].secret is not None:
            found[name] = definitions[name]
    return found


def affected(definitions: ParamDefinitions, changed: Set[str], expressions: Expressions) -> set[str]:
    """The parameters whose value may be another one because these were changed, themselves included."""
    found = set(changed)
    uses = {name: _uses(definition, expressions) for name, definition in definitions.items()}
    while new := {name for name, used in uses.items() if name not in found and used & found}:
        found |= new
    return found


def _uses(definition: ParamDefinition, expressions: Expressions) -> set[str]:
    if definition.expression is not None:
        return set(expressions.names_of(definition.expression))
    if definition.type is ParamType.MAP and definition.value is not None:
        return {name for inner in definition.value.values() for name in _uses(inner, expressions)}
    return set(all_references(definition.value))


def made_anew(
    definitions: ParamDefinitions,
    versions: tuple[ParamDefinitions, ParamDefinitions],
    given: Collection[str],
    expressions: Expressions,
) -> set[str]:
    """The parameters of a restarted run that do not keep their values; ``versions`` are the old and the new workflow's.

    Those are what is given, what is written otherwise, all that is made of these, and what is IMMUTABLE.
    """
    was, now = versions
    rewritten = {name for name in {*was, *now} if was.get(name) != now.get(name)}
    immutable = {name for name, each in definitions.items() if each.mode is ParamMode.IMMUTABLE}
    return affected(definitions, {*given, *rewritten}, expressions) | immutable
