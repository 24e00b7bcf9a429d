"""Whether a run can resume with another version of its workflow, and how its steps stand then.

A step that completed keeps its result. That is exact only if the new version would have reached it in the same way: the
step is there, nothing new comes before it, and the conditions that led to it are the same. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from dalsegno.errors import UserError
from dalsegno.model.runs import Flow, Graph, Restarted, RestartFrom, StepState, StepStatus
from dalsegno.model.workflow import JobStep, Step
from dalsegno.plan.restarts import ancestors, fresh, to_repeat


@dataclass(frozen=True)
class CarriedOver:
    """What another version takes over of a run."""

    #: The states that differ because the graph does.
    changed: tuple[StepState, ...]
    #: The steps whose work counts as this run's own: they keep their results, or resume as they are written.
    resumed: frozenset[str]


def carry_over(flow: Flow, wish: Restarted, new: Graph, fixed: Set[str]) -> CarriedOver:
    """Raise ``UserError`` if a completed step cannot keep its result; ``fixed``: steps that must be the same for that.

    ``flow`` has the graph of the version that it ran with.
    """
    removed = [fresh(state) for step_id, state in flow.steps.items() if step_id not in new.steps]
    if wish.restart is RestartFrom.BEGINNING:
        return CarriedOver(tuple(removed), frozenset())
    there = {step_id: state for step_id, state in flow.steps.items() if step_id in new.steps}
    repeated = to_repeat(replace(flow, graph=new, steps=there), wish)
    kept = {
        step_id: state
        for step_id, state in flow.steps.items()
        if state.status.is_complete and state.status is not StepStatus.UNSATISFIED and step_id not in repeated
    }
    for step_id in kept:
        _refuse_other_step(flow.graph, new, step_id, fixed)
    taken = {
        step_id: _taken(state, flow.graph.steps[step_id], new.steps[step_id], may_halt=step_id in fixed)
        for step_id, state in kept.items()
    }
    for step_id in kept:
        _refuse_other_way(flow, new, step_id, taken)
    same = {step_id for step_id in there if _is_same(flow.graph.steps[step_id], new.steps[step_id])}
    changed = [
        *removed,
        *(replace(kept[step_id], taken=after) for step_id, after in taken.items() if after != kept[step_id].taken),
        *_decided_anew(there, repeated),
        *(
            # Its iterations may be others now: all of them run again.
            replace(state, loop=None)
            for step_id, state in there.items()
            if state.loop is not None and step_id not in kept and step_id not in same
        ),
    ]
    return CarriedOver(tuple(changed), frozenset(kept.keys() | same))


def _refuse_other_step(old: Graph, new: Graph, step_id: str, fixed: Set[str]) -> None:
    if step_id not in new.steps:
        raise UserError(f"Step {step_id!r} has completed, and the new version does not have it.")
    before, after = old.steps[step_id], new.steps[step_id]
    if _kind(before) != _kind(after):
        raise UserError(f"Step {step_id!r} has completed, and is of another type in the new version.")
    if step_id in fixed and not _is_same(before, after):
        raise UserError(f"Step {step_id!r} has completed, and captures or commits something else in the new version.")


def _taken(state: StepState, before: Step, after: Step, *, may_halt: bool) -> tuple[str, ...]:
    """The successors that follow in the new version; nobody has evaluated a condition that is new.

    ``may_halt``: nothing may follow the step although it succeeded, as if a capture finds nothing new.
    """
    if state.status is StepStatus.SKIPPED:
        return tuple(after.successors)
    certain = [successor for successor, condition in before.successors.items() if condition is None]
    if certain and not set(certain) & set(state.taken):
        return ()
    found = []
    for successor, condition in after.successors.items():
        if successor in before.successors and before.successors[successor] == condition:
            is_taken = successor in state.taken
        elif condition is None and (certain or not may_halt):
            is_taken = True
        else:
            raise UserError(
                f"Step {state.step_id!r} has completed, and nobody knows whether {successor!r} would have followed it: "
                "the new version has added or changed that."
            )
        if is_taken:
            found.append(successor)
    return tuple(found)


def _refuse_other_way(flow: Flow, new: Graph, step_id: str, taken: dict[str, tuple[str, ...]]) -> None:
    """Raise unless the new version reaches a completed step by what has completed before it."""
    known, now = ancestors(flow.graph, step_id), ancestors(new, step_id)
    for each in sorted(now):
        is_reached = not new.before[each] or any(each in taken.get(before, ()) for before in new.before[each])
        if each not in known or (each not in taken and is_reached):
            raise UserError(f"Step {step_id!r} has completed, and the new version runs {each!r} before it.")
    if new.before[step_id] and not any(step_id in taken.get(before, ()) for before in new.before[step_id]):
        raise UserError(f"Step {step_id!r} has completed, and no step that has completed leads to it any more.")


def _decided_anew(there: dict[str, StepState], repeated: Set[str]) -> Iterator[StepState]:
    """Steps that no condition led to: the new version may lead there."""
    for step_id, state in there.items():
        if state.status is StepStatus.UNSATISFIED and step_id not in repeated:
            yield replace(state, status=StepStatus.NOT_CREATED)


def _is_same(before: Step, after: Step) -> bool:
    """Whether two steps do the same; what follows them does not matter."""
    return replace(before, successors={}) == replace(after, successors={})


def _kind(step: Step) -> tuple[object, ...]:
    return (type(step), *((step.type.lower(), step.sub_type) if isinstance(step, JobStep) else ()))
