"""References that mean nothing: to steps that do not exist or do not come before, and to outputs that no step has.

What every run would stumble over is refused; what a run may be given is only warned of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from dalsegno.model.params import ParamType
from dalsegno.model.workflow import ForeachStep, JobStep, Step, WhileStep, Workflow
from dalsegno.spec.names import SEPARATOR
from dalsegno.spec.params.defaults import STEP_DEFAULTS, WORKFLOW_DEFAULTS
from dalsegno.spec.params.loops import LOOP_PARAMS
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.step_order import StepOrder, following, order_of
from dalsegno.spec.step_outputs import Outputs, outputs_by_step
from dalsegno.spec.step_references import (
    TRANSITION,
    Reference,
    named_step,
    of_conditions,
    place_of,
    references_in,
    references_of,
)
from dalsegno.triggers.spec import language_of

#: How many steps a hint names.
_NAMED = 10


@dataclass(frozen=True)
class Fault:
    """What is wrong with a reference."""

    message: str
    hint: str | None
    #: Whether a run may still find what is meant.
    is_warning: bool


@dataclass(frozen=True)
class _List:
    """The list that a step stands in."""

    ids: frozenset[str]
    #: None if its steps go in a circle.
    order: StepOrder | None
    #: The loop that the list is of, if it is of one.
    loop: str | None


@dataclass
class StepReferences:
    """Judges the references of one workflow."""

    workflow: Workflow
    #: Steps in the form of Maestro's JSON, whose order is not judged.
    typed: Collection[str] = ()
    _outputs: Mapping[str, Outputs] = field(init=False)
    _lists: dict[str, _List] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._outputs = outputs_by_step(self.workflow)
        self._enlist(self.workflow.steps, None)
        self._plain = plain_names(self.workflow)
        self._given = {name for each in self.workflow.triggers for name in language_of(each.kind).params(each)}

    def _enlist(self, steps: Sequence[Step], loop: str | None) -> None:
        found = _List(frozenset(step.id for step in steps), order_of(following(steps)), loop)
        for step in steps:
            self._lists[step.id] = found
            if isinstance(step, ForeachStep | WhileStep):
                self._enlist(step.steps, step.id)

    def fault(self, owner: str, reference: Reference) -> Fault | None:
        """``owner`` is the step that refers; nothing, for the workflow's own parameters."""
        name = reference.name
        if name in self._plain or name.partition(SEPARATOR)[0] in self._given:
            return None
        named = named_step(name, self._lists)
        if named is None:
            return self._fault_of_unknown(owner, reference)
        step_id, output = named
        if not owner:
            message = f"a workflow's own parameter cannot refer to {name!r}: it is evaluated before any step runs"
            return Fault(message, "move the parameter into the step that uses it", is_warning=not reference.is_certain)
        if owner == step_id:
            # Its own parameters; when it has ended, its outputs as well.
            return self._fault_of_output(step_id, output, reference) if reference.param == TRANSITION else None
        return self._fault_of_order(owner, step_id, output, reference) or self._fault_of_output(
            step_id, output, reference
        )

    def _fault_of_unknown(self, owner: str, reference: Reference) -> Fault | None:
        name = reference.name
        if reference.param == TRANSITION and owner in self._outputs:
            near = None if self._outputs[owner].has(name) else meant(name, self._outputs[owner].names, cutoff=0.75)
            return Fault(f"{owner!r} has no output {name!r}", near, is_warning=True) if near else None
        step_id, dot, _ = name.rpartition(".")
        if not dot or SEPARATOR in name or any(each in self._lists for each in _beginnings(name)):
            return None
        near = meant(step_id, self._lists, cutoff=0.75)
        if not near and not reference.is_certain:
            return None
        hint = near or f"write ${{STEP.OUTPUT}}; the steps are {', '.join(islice(self._lists, _NAMED))}"
        # A workflow that calls this one may hand over a parameter with a dot in its name.
        is_warning = not near or not reference.is_certain
        return Fault(f"there is no step {step_id!r}, which {name!r} refers to", hint, is_warning)

    def _fault_of_order(self, owner: str, step_id: str, output: str, reference: Reference) -> Fault | None:
        """None if the step comes before the one that refers to it, or nothing is known about that."""
        at = owner
        while step_id not in self._lists[at].ids:
            around, inside = self._lists[at].loop, self._lists[step_id].loop
            if around is None:
                message = (
                    f"{owner!r} cannot refer to {reference.name!r}: {step_id!r} runs inside of the loop {inside!r}"
                )
                hint = f"write an expression: params.getFromForeach({inside!r}, {step_id!r}, {output!r})"
                return Fault(message, hint, is_warning=not reference.is_certain)
            at = around
        order = self._lists[at].order
        if at == step_id or order is None or order.is_before(step_id, at):
            return None
        is_warning = not reference.is_certain or owner in self.typed
        if order.is_before(at, step_id):
            return Fault(f"{owner!r} refers to {step_id!r}, which runs after it", "swap their order", is_warning)
        hint = f"let {at!r} follow it: add '{step_id} -> {at}' to dag"
        return Fault(f"{owner!r} refers to {step_id!r}, but does not wait for it", hint, is_warning)

    def _fault_of_output(self, step_id: str, output: str, reference: Reference) -> Fault | None:
        known = self._outputs.get(step_id)
        if known is None or known.has(output):
            return None
        near = dict(known.elsewhere).get(output) or meant(output, sorted(known.names))
        # A run may be given more parameters of a step.
        is_warning = near is None or not reference.is_certain
        hint = near or f"it has {', '.join(sorted(known.names - STEP_DEFAULTS.keys()))}"
        return Fault(f"{step_id!r} has no output {output!r}", hint, is_warning)


def _beginnings(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def plain_names(workflow: Workflow) -> set[str]:
    """The names of all parameters that are written, or there by default."""
    found = {*workflow.params, *STEP_DEFAULTS, *WORKFLOW_DEFAULTS}
    for step in workflow.all_steps():
        loop = step.params.get(LOOP_PARAMS)
        looped = loop.value if loop is not None and loop.type is ParamType.MAP and loop.value else {}
        found.update(step.params, looped)
    return found


def check(workflow: Workflow, reading: Reading) -> None:
    references = StepReferences(workflow, reading.typed)
    for owner, reference in _all_references(workflow):
        if reading.problems.is_full:
            return
        if fault := references.fault(owner, reference):
            path = f"{owner}.{reference.param}" if owner else reference.param
            mark = place_of(owner, reference, reading)
            reading.problems.add(fault.message, mark, path, fault.hint, warning=fault.is_warning)


def _all_references(workflow: Workflow) -> Iterator[tuple[str, Reference]]:
    yield from (("", reference) for reference in references_in(workflow.params))
    for step in workflow.all_steps():
        if isinstance(step, JobStep) and step.sub_type is not None:
            # Its template may have parameters of any name.
            continue
        # Which capture a commit names is checked elsewhere.
        yield from ((step.id, reference) for reference in references_of(step) if reference.param != "ip_commit")
        yield from ((step.id, reference) for reference in of_conditions(step))
