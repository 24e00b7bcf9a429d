"""Parameters: typed values that workflows and steps are given, and hand on.

A *definition* is what somebody wrote: a literal, which may name other parameters as ``${name}``, or an expression. A
*parameter* is what became of it in a run: a value, and how it may still be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

#: What a value may be, by its type; MAP holds any of them by name.
Value = str | int | float | bool | list[Any] | dict[str, Any]


class ParamType(StrEnum):
    """Maestro's types; LONG has 64 bits."""

    STRING = "STRING"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING_MAP = "STRING_MAP"
    MAP = "MAP"
    STRING_ARRAY = "STRING_ARRAY"
    LONG_ARRAY = "LONG_ARRAY"
    DOUBLE_ARRAY = "DOUBLE_ARRAY"
    BOOLEAN_ARRAY = "BOOLEAN_ARRAY"

    @property
    def element(self) -> ParamType | None:
        """What an array of this type holds; None if it is no array."""
        name, _, array = self.value.rpartition("_")
        return ParamType(name) if array == "ARRAY" else None


class ParamMode(StrEnum):
    """Who may still overwrite a parameter, from anybody to nobody. A later layer may tighten it, never loosen it."""

    MUTABLE = "MUTABLE"
    MUTABLE_ON_START_RESTART = "MUTABLE_ON_START_RESTART"
    MUTABLE_ON_START = "MUTABLE_ON_START"
    IMMUTABLE = "IMMUTABLE"
    CONSTANT = "CONSTANT"

    @property
    def strictness(self) -> int:
        return list(ParamMode).index(self)


class InternalMode(StrEnum):
    """What the system itself thinks of a parameter."""

    REQUIRED = "REQUIRED"
    #: Left out if nobody gives it a value.
    OPTIONAL = "OPTIONAL"
    PROVIDED = "PROVIDED"
    #: Set by the system alone.
    RESERVED = "RESERVED"


class ParamSource(StrEnum):
    """Where a parameter comes from."""

    SYSTEM = "SYSTEM"
    TEMPLATE_SCHEMA = "TEMPLATE_SCHEMA"
    SYSTEM_INJECTED = "SYSTEM_INJECTED"
    SYSTEM_DEFAULT = "SYSTEM_DEFAULT"
    DEFINITION = "DEFINITION"
    SIGNAL = "SIGNAL"
    TIME_TRIGGER = "TIME_TRIGGER"
    OUTPUT_PARAMETER = "OUTPUT_PARAMETER"
    LAUNCH = "LAUNCH"
    RESTART = "RESTART"
    SUBWORKFLOW = "SUBWORKFLOW"
    TEMPLATE = "TEMPLATE"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    WORKFLOW_PARAMETER = "WORKFLOW_PARAMETER"


@dataclass(frozen=True)
class Tag:
    """A label; steps that carry one with a limit wait for a permit."""

    name: str
    namespace: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ParamDefinition:
    """A parameter as it was written: exactly one of value, expression and secret is given."""

    type: ParamType
    #: A literal; of a MAP, a ``ParamDefinition`` by name.
    value: Any = None
    #: SEL, evaluated in each run.
    expression: str | None = None
    #: The name of a secret, from the settings or the environment: its value is never stored or shown.
    secret: str | None = None
    mode: ParamMode | None = None
    internal_mode: InternalMode | None = None
    source: ParamSource = ParamSource.DEFINITION
    tags: tuple[Tag, ...] = ()
    #: SEL that must be true of the value, which it knows as ``param``; or ``@NotEmpty``.
    validator: str | None = None
    #: Whatever else was written, kept.
    meta: Mapping[str, Any] = field(default_factory=dict)


ParamDefinitions = Mapping[str, ParamDefinition]


@dataclass(frozen=True)
class Param:
    """A parameter with its value, in a run."""

    type: ParamType
    value: Value
    mode: ParamMode = ParamMode.MUTABLE
    source: ParamSource = ParamSource.DEFINITION
    #: Whether a secret went into the value: it is neither stored nor shown, and made anew where it is needed.
    is_secret: bool = False


Params = Mapping[str, Param]
