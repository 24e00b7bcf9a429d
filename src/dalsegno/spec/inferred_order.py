"""The order that references give to steps, where the author wrote none.

``${a.output}`` in ``b`` can only be filled in if ``a`` runs before ``b``: every run would fail otherwise. So where the
steps of a list have no order between them, one is inferred and said. A commit comes last: what it commits must be
processed, and not every step says in its parameters that it does so. Maestro's JSON keeps the order that it gives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from dalsegno.model.workflow import ForeachStep, Step, WhileStep, Workflow
from dalsegno.spec.captures import committed_by, is_commit
from dalsegno.spec.nodes import SourceLocation
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.graph import circle_of
from dalsegno.spec.step_order import StepOrder, following, order_of
from dalsegno.spec.step_references import inner_steps, named_step, place_of, references_of

#: How many edges a message names.
_NAMED = 10

_Edges = dict[tuple[str, str], SourceLocation]
_Following = dict[str, dict[str, str | None]]


def with_inferred_order(workflow: Workflow, reading: Reading) -> Workflow:
    return replace(workflow, steps=_ordered(workflow.steps, workflow.params.keys(), reading))


def _ordered(steps: Sequence[Step], plain: Collection[str], reading: Reading) -> tuple[Step, ...]:
    steps = tuple(
        replace(step, steps=_ordered(step.steps, plain, reading)) if isinstance(step, ForeachStep | WhileStep) else step
        for step in steps
    )
    edges = following(steps)
    order = order_of(edges)
    if order is None or len(edges) != len(steps):
        # A circle, or two of one name, which is said elsewhere.
        return steps
    inferred = _inferred(steps, order, plain, reading)
    whole: _Following = {step: dict(outgoing) for step, outgoing in edges.items()}
    for before, after in inferred:
        whole[before].setdefault(after, None)
    if circle := circle_of({step: list(outgoing) for step, outgoing in whole.items()}):
        mark = next(inferred[pair] for pair in pairwise(circle) if pair in inferred)
        hint = "remove one of the references: a step can only use outputs of steps before it"
        reading.problems.add(f"the steps refer to each other in a circle: {' -> '.join(circle)}", mark, hint=hint)
    else:
        _put_commits_last(steps, whole, inferred)
        _say(steps, inferred, edges, reading)
    return tuple(replace(step, successors={**step.successors, **whole[step.id]}) for step in steps)


def _inferred(steps: Sequence[Step], order: StepOrder, plain: Collection[str], reading: Reading) -> _Edges:
    """Edges that are missing: references to steps that come neither before nor after."""
    found: _Edges = {}
    ids = set(order.ids)
    for step in steps:
        if not _may_wait(step, order, reading):
            continue
        for inner in inner_steps(step):
            for reference in references_of(inner):
                named = None if reference.name in plain else named_step(reference.name, ids)
                before = named[0] if named else step.id
                if before != step.id and not order.is_before(before, step.id) and not order.is_before(step.id, before):
                    found.setdefault((before, step.id), place_of(inner.id, reference, reading))
    return found


def _may_wait(step: Step, order: StepOrder, reading: Reading) -> bool:
    """Whether one more edge only makes the step wait: behind a condition, it would also make it run."""
    return step.id not in reading.typed and step.id not in order.conditional


def _put_commits_last(steps: Sequence[Step], whole: _Following, inferred: _Edges) -> None:
    """Let each commit whose order is inferred come after every step that does not come after it."""
    commits = {step.id: committed_by(step) or "" for step in steps if is_commit(step)}
    for commit, captured in commits.items():
        mark = inferred.pop((captured, commit), None)
        if mark is None:
            continue
        del whole[captured][commit]
        known = order_of(whole)
        if known is None:
            raise AssertionError("fewer edges cannot make a circle")
        others = [step.id for step in steps if step.id not in commits and not known.is_before(commit, step.id)]
        for last in known.last_of(others):
            whole[last][commit] = None
            inferred[last, commit] = mark


def _say(steps: Sequence[Step], inferred: _Edges, edges: _Following, reading: Reading) -> None:
    without_dag = reading.without_dag.get(steps[0].id) if steps else None
    if inferred:
        listed = [f"{before} -> {after}" for before, after in inferred]
        more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
        message = f"the order of these steps follows from their references: {', '.join(listed[:_NAMED])}{more}"
        hint = f"write it: dag: [{', '.join(listed[:_NAMED])}]" if not more else "write it under 'dag'"
        reading.notes.append((message, min(inferred.values(), key=_position), hint))
    elif without_dag is not None and len(steps) > 1 and not any(edges.values()):
        message = f"there is no 'dag', so the {len(steps)} steps run in parallel"
        hint = "write dag: sequential, dag: [a -> b] or, if that is meant, dag: parallel"
        reading.notes.append((message, without_dag, hint))


def _position(mark: SourceLocation) -> tuple[int, int]:
    return mark.line, mark.column
