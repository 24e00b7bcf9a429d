"""Layers of definitions become one: defaults, the workflow's own, those of a run, those of a restart.

A later layer overwrites an earlier one where the parameter's mode lets it. Types stay those of the first layer, and
values are cast to them. Maps are merged entry by entry, all else is replaced. Modes get stricter, never looser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dalsegno.errors import ParamError
from dalsegno.model.params import (
    InternalMode,
    ParamDefinition,
    ParamDefinitions,
    ParamMode,
    ParamSource,
    ParamType,
)
from dalsegno.spec.params.literals import all_references, as_definition
from dalsegno.spec.params.values import cast, shown

#: The system itself; it may overwrite anything.
SYSTEM = frozenset(
    {ParamSource.SYSTEM, ParamSource.TEMPLATE_SCHEMA, ParamSource.SYSTEM_INJECTED, ParamSource.SYSTEM_DEFAULT}
)
_AT_START = frozenset({ParamMode.MUTABLE, ParamMode.MUTABLE_ON_START, ParamMode.MUTABLE_ON_START_RESTART})
_AT_RESTART = frozenset({ParamMode.MUTABLE, ParamMode.MUTABLE_ON_START_RESTART})
_MAY_OVERWRITE = {
    ParamSource.RESTART: _AT_RESTART,
    ParamSource.OUTPUT_PARAMETER: frozenset({ParamMode.MUTABLE}),
}
_WHO_MAY_SET = {
    ParamMode.MUTABLE: "anybody may set it, the running job included",
    ParamMode.MUTABLE_ON_START_RESTART: "only the definition, a start and a restart may set it",
    ParamMode.MUTABLE_ON_START: "only the definition and a start may set it",
    ParamMode.IMMUTABLE: "only who defines it first may set it",
    ParamMode.CONSTANT: "only who defines it first may set it",
}
_STRICTNESS = {mode: mode.strictness for mode in ParamMode}
_AS_WRITTEN = {ParamType.MAP: "literal MAP", ParamType.STRING_MAP: "literal STRING_MAP"}


@dataclass(frozen=True)
class Layer:
    """Definitions, and who gives them."""

    params: ParamDefinitions
    source: ParamSource
    #: Handed down by a parent run: a loop or a subworkflow step. It cannot know of stricter modes, so they just stay.
    is_from_parent: bool = False
    is_restart: bool = False

    @property
    def may_overwrite(self) -> frozenset[ParamMode]:
        modes = _MAY_OVERWRITE.get(self.source, _AT_START)
        return modes & _AT_RESTART if self.is_restart else modes


def merge(*layers: Layer) -> dict[str, ParamDefinition]:
    """One definition per name, in the order in which the names first occur."""
    merged: dict[str, ParamDefinition] = {}
    for layer in layers:
        for name, definition in layer.params.items():
            merged[name] = _merged(name, definition, merged.get(name), layer, ParamMode.MUTABLE)
    return merged


def settled(definitions: ParamDefinitions, inside: str = "") -> dict[str, ParamDefinition]:
    """The definitions that have a value: optional ones without are left out, required ones must have one."""
    found: dict[str, ParamDefinition] = {}
    for name, definition in definitions.items():
        path = f"{inside}{name}"
        is_optional = definition.internal_mode is InternalMode.OPTIONAL
        if definition.type is ParamType.MAP and definition.value is not None:
            definition = replace(definition, value=settled(definition.value, f"{path}."))  # noqa: PLW2901
            if is_optional and not definition.value:
                continue
        if not _has_value(definition):
            if is_optional:
                continue
            raise ParamError(f"Parameter '{path}' ({definition.type}) is required, and nobody gives it a value.")
        found[name] = definition
    return found


def _merged(
    name: str, new: ParamDefinition, old: ParamDefinition | None, layer: Layer, parents_mode: ParamMode
) -> ParamDefinition:
    is_system = layer.source in SYSTEM
    if old is None:
        mode = _strictest(new.mode, _implied(new), parents_mode)
        value = new.value
        if new.type is ParamType.MAP and value is not None:
            inner = Layer(value, layer.source, layer.is_from_parent, layer.is_restart)
            value = {
                key: _merged(f"{name}.{key}", item, None, inner, _strictest(parents_mode, new.mode))
                for key, item in value.items()
            }
        return replace(new, value=value, mode=mode, source=_source(new, layer))

    if new.type is not old.type:
        new = _converted(name, new, old)
    mode = _strictest(new.mode, old.mode, _implied(old), _implied(new), parents_mode)
    candidate = replace(
        new,
        value=_merged_value(name, new, old, layer, _strictest(parents_mode, old.mode)),
        mode=mode,
        internal_mode=old.internal_mode or new.internal_mode,
        tags=(*old.tags, *(tag for tag in new.tags if tag not in old.tags)),
        validator=new.validator or old.validator,
        meta={**old.meta, **new.meta},
        source=old.source,
    )
    is_changed = candidate != replace(old, meta=candidate.meta, mode=old.mode or ParamMode.MUTABLE)
    if is_changed and not is_system:
        _check(name, new, old, candidate, layer)
    keeps_source = not is_changed and (is_system or layer.is_from_parent)
    if keeps_source:
        return candidate
    return replace(candidate, source=_source(new, layer))


def _check(name: str, new: ParamDefinition, old: ParamDefinition, candidate: ParamDefinition, layer: Layer) -> None:
    """Whether this layer may do what it does to the parameter."""
    if layer.is_from_parent and new.source in SYSTEM:
        # The parent hands down what the system gave to it.
        return
    mode = old.mode or ParamMode.MUTABLE
    if candidate.internal_mode is InternalMode.RESERVED:
        raise ParamError(f"Parameter '{name}' is set by dalsegno alone; {layer.source} cannot set it.")
    if new.mode is not None and _STRICTNESS[new.mode] < _STRICTNESS[mode] and not layer.is_from_parent:
        raise ParamError(
            f"Parameter '{name}' is {mode}; {layer.source} cannot loosen it to {new.mode}.",
            hint=f"Leave the mode out, or give a stricter one than {mode}.",
        )
    if mode not in layer.may_overwrite:
        raise ParamError(f"Parameter '{name}' is {mode}: {_WHO_MAY_SET[mode]}. {layer.source} tried to.")
    if new.internal_mode not in {None, old.internal_mode}:
        raise ParamError(f"Parameter '{name}': {layer.source} cannot give it the internal mode {new.internal_mode}.")
    if new.source not in {ParamSource.DEFINITION, layer.source} and not layer.is_from_parent:
        raise ParamError(f"Parameter '{name}': {layer.source} cannot say that it comes from {new.source}.")
    if old.secret is not None and new.secret is None:
        raise ParamError(
            f"Parameter '{name}' is a secret: {layer.source} cannot replace it by a value that would be seen.",
            hint="Give the name of another secret: {secret: NAME}.",
        )


def _merged_value(name: str, new: ParamDefinition, old: ParamDefinition, layer: Layer, mode: ParamMode) -> Any:
    is_literal_map = new.type in _AS_WRITTEN and new.value is not None
    if not is_literal_map or old.value is None:
        if is_literal_map and _has_value(old):
            raise ParamError(
                f"Parameter '{name}' is not a {_AS_WRITTEN[new.type]} but comes of "
                f"{'an expression' if old.expression is not None else 'a secret'}: nothing can be merged into it.",
                hint="Give an expression that replaces it.",
            )
        return new.value
    if new.type is ParamType.STRING_MAP:
        return {**old.value, **new.value}
    inner = replace(layer, params=new.value)
    entries = {key: _merged(f"{name}.{key}", item, old.value.get(key), inner, mode) for key, item in new.value.items()}
    return {**old.value, **entries}


def _converted(name: str, new: ParamDefinition, old: ParamDefinition) -> ParamDefinition:
    """The new definition with the type of the old one; expressions are cast when they are evaluated."""
    is_text_of_later = new.type is ParamType.STRING and old.type is not ParamType.MAP and all_references(new.value)
    if new.value is None or is_text_of_later:
        return replace(new, type=old.type)
    try:
        match new.type, old.type:
            case ParamType.STRING_MAP, ParamType.MAP:
                value: Any = {key: ParamDefinition(ParamType.STRING, item) for key, item in new.value.items()}
            case ParamType.MAP, ParamType.STRING_MAP:
                value = cast({key: _literal_of(item) for key, item in new.value.items()}, old.type)
            case ParamType.STRING, ParamType.MAP:
                value = as_definition(cast(new.value, old.type), ParamType.MAP).value
            case _:
                value = cast(new.value, old.type)
    except ParamError as mismatch:
        raise ParamError(
            f"Parameter '{name}' is a {old.type}; {new.type} {shown(new.value)} cannot become one.",
            hint=f"Give a value that is a {old.type}, or an expression that yields one.",
        ) from mismatch
    return replace(new, type=old.type, value=value)


def _literal_of(definition: ParamDefinition) -> Any:
    if definition.value is None:
        raise ParamError("Only literals can become a STRING_MAP.")
    return definition.value


def _has_value(definition: ParamDefinition) -> bool:
    return definition.value is not None or definition.expression is not None or definition.secret is not None


def _source(definition: ParamDefinition, layer: Layer) -> ParamSource:
    """Who set it; what a previous run had keeps where it came from."""
    return definition.source if layer.source is ParamSource.SYSTEM else layer.source


def _implied(definition: ParamDefinition) -> ParamMode:
    return ParamMode.CONSTANT if definition.internal_mode is InternalMode.RESERVED else ParamMode.MUTABLE


def _strictest(*modes: ParamMode | None) -> ParamMode:
    return max((mode for mode in modes if mode is not None), key=_STRICTNESS.__getitem__, default=ParamMode.MUTABLE)
