"""The steps of a version, as much of them as lists of steps need.

They are read from the definition as it is stored, which ``spec.canonical`` writes in one way only. To read it as a
workflow takes the whole language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: What a step that does something by itself is wrapped in; others are wrapped in what they are.
_JOB = "step"
_CAPTURES = frozenset({"ipcapture", "icdc"})
_DECLARED = "incremental"


@dataclass(frozen=True)
class StoredStep:
    """A step of a stored definition."""

    id: str
    #: The type of a job, or subworkflow, foreach or while.
    type: str
    #: Whether it waits for signals.
    has_signals: bool
    #: Of a loop: the steps that it repeats.
    inside: tuple[StoredStep, ...] = ()
    successors: tuple[str, ...] = ()

    @property
    def is_capture(self) -> bool:
        return self.type.lower() in _CAPTURES

    @property
    def is_declared(self) -> bool:
        """Whether it declares a table by its SELECT."""
        return self.type.lower() == _DECLARED


def stored_steps(definition: Mapping[str, Any]) -> tuple[StoredStep, ...]:
    """The steps of a version in their order; those of loops are inside of these."""
    return _steps(definition["workflow"]["steps"])


def _steps(wrapped: Sequence[Mapping[str, Any]]) -> tuple[StoredStep, ...]:
    found = []
    for each in wrapped:
        ((kind, step),) = each.items()
        type_ = step["type"] if kind == _JOB else kind
        found.append(
            StoredStep(
                step["id"],
                type_,
                bool(step.get("signal_dependencies")),
                _steps(step.get("steps", ())),
                tuple((step.get("transition") or {}).get("successors") or ()),
            )
        )
    return tuple(found)


def with_loops(steps: Sequence[StoredStep], loop: str | None = None) -> Iterator[tuple[StoredStep, str | None]]:
    """Every step, at any depth, and the loop that it is inside of."""
    for step in steps:
        yield step, loop
        yield from with_loops(step.inside, step.id)


def after(steps: Sequence[StoredStep], step_ids: Iterable[str]) -> set[str]:
    """All steps of one flow that come after these."""
    successors = {step.id: step.successors for step in steps}
    found: set[str] = set()
    waiting = list(step_ids)
    while waiting:
        new = [each for each in successors[waiting.pop()] if each not in found]
        found.update(new)
        waiting += new
    return found
