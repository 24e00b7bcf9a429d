"""What is known and gathered while one document is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dalsegno.model.workflow import Step, Trigger
from dalsegno.spec.expressions import Written
from dalsegno.spec.nodes import NOWHERE, Scalar, SourceLocation
from dalsegno.spec.problems import Problems
from dalsegno.spec.step_types import STEP_TYPES, added_types, step_type

#: The type of a step whose template is not at hand.
TEMPLATE = "template"


class StepTypes:
    """The step types there are, and the job templates with the type that each is made from."""

    def __init__(self, templates: Mapping[str, str] | None = None) -> None:
        self._templates = dict(templates or {})

    @property
    def names(self) -> list[str]:
        return [*(each.name for each in STEP_TYPES.values()), *self._templates, *self._added.values()]

    def find(self, written: str) -> tuple[str, str | None] | None:
        """The type and, if it was a template's name that was written, the template."""
        if known := step_type(written):
            return known.name, None
        if written in self._templates:
            return self._templates[written], written
        if written.lower() == TEMPLATE:
            return TEMPLATE, None
        added = self._added.get(written.lower())
        return (added, None) if added else None

    @cached_property
    def _added(self) -> dict[str, str]:
        """The types of other packages, which are looked for once: that takes milliseconds."""
        return {name: point.name for name, point in added_types().items()}


class AnyStepType(StepTypes):
    """Takes every unknown name for a job template, where it does not matter which there are."""

    def find(self, written: str) -> tuple[str, str | None]:
        return super().find(written) or (TEMPLATE, written)


@dataclass
class Reading:
    """One document being read."""

    problems: Problems
    types: StepTypes
    #: Whether it is the store's own: then what only the system may write is accepted.
    trusted: bool = False
    expressions: list[Written] = field(default_factory=list)
    #: Where steps, parameters and the fields of a block stand, as ("step", id), ("param", the step's id or "", name),
    #: ("key", the step's id or "", block, name, …) or, for the value, ("field", the step's id or "", block, name, …).
    marks: dict[tuple[str, ...], SourceLocation] = field(default_factory=dict)
    #: Ids of all steps, in the order in which they stand.
    ids: list[tuple[str, SourceLocation]] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    #: Steps in the form of Maestro's JSON.
    typed: set[str] = field(default_factory=set)
    #: Where the lists of steps stand that have no ``dag``, by the id of the first step.
    without_dag: dict[str, SourceLocation] = field(default_factory=dict)
    #: Triggers that are checked with the whole workflow: where each stands, and where parts of it do.
    triggers: list[tuple[Trigger, SourceLocation, Mapping[str, SourceLocation]]] = field(default_factory=list)

    #: Parameters that may be misspelt fields: where each stands, and a hint.
    lookalikes: list[tuple[Scalar, str, str]] = field(default_factory=list)

    #: What is worth saying of a workflow without problems: a message, its place and a hint.
    notes: list[tuple[str, SourceLocation, str]] = field(default_factory=list)

    def note_lookalikes(self, path: str, found: Iterable[tuple[Scalar, str]]) -> None:
        self.lookalikes += [(key, f"{path}.{key.text}", hint) for key, hint in found]

    def expression(self, text: str, source: Scalar, path: str, offset: int = 0) -> str:
        """Remember that this must be SEL."""
        self.expressions.append(Written(text, source, path, offset))
        return text

    def mark(self, *key: str) -> SourceLocation:
        return self.marks.get(key, NOWHERE)
