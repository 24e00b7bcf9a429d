"""What must hold of the steps of one list, and of loops."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dalsegno.model.params import ParamDefinitions, ParamType
from dalsegno.model.workflow import Step
from dalsegno.spec.fields import Fields
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.transitions import Edges


def check(steps: Sequence[Step], edges: Edges, path: str, reading: Reading) -> None:
    """Every edge leads from one of the steps to another, and none leads back."""
    ids = {step.id for step in steps}
    named = list(edges.named.items())
    for before, outgoing in edges.found.items():
        named += [(before, edge.mark) for edge in list(outgoing.values())[:1] if before not in edges.named]
        named += [(edge.after, edge.mark) for edge in outgoing.values()]
    for step, mark in named:
        if step not in ids:
            hint = None if reading.problems.is_full else meant(step, ids)
            if step in reading.steps:
                hint = "it stands in another loop, and only steps of one list can follow each other"
            reading.problems.add(f"there is no step {step!r}", mark, path, hint)
    for step, (given, mark) in edges.predecessors.items():
        found = {before for before, outgoing in edges.found.items() if step in outgoing}
        if given != found:
            message = f"the predecessors of {step!r} are {_listed(found)} by the transitions, not {_listed(given)}"
            reading.problems.add(message, mark, path)
    circle = circle_of({before: list(after) for before, after in edges.found.items()})
    if circle:
        mark = edges.found[circle[0]][circle[1]].mark
        reading.problems.add(f"the steps go in a circle: {' -> '.join(circle)}", mark, path)


def _listed(steps: set[str]) -> str:
    return ", ".join(sorted(steps)) or "none"


def circle_of(after: dict[str, list[str]]) -> list[str]:
    """Steps that follow on themselves, the first of them repeated at the end; nothing if there are none."""
    waiting: dict[str, int] = {}
    for followers in after.values():
        for step in followers:
            waiting[step] = waiting.get(step, 0) + 1
    ready = [step for step in after if not waiting.get(step)]
    while ready:
        for step in after.get(ready.pop(), ()):
            waiting[step] -= 1
            if not waiting[step]:
                ready.append(step)
    left = {step for step, count in waiting.items() if count}
    if not left:
        return []
    # Every one that is left has one before it that is left, so going back must meet itself.
    before = {step: each for each in left for step in after.get(each, ()) if step in left}
    walked = {min(left): 0}
    step = min(left)
    while before[step] not in walked:
        step = before[step]
        walked[step] = len(walked)
    begin = before[step]
    return [begin, *reversed(list(walked)[walked[begin] :])]


def check_loop_params(params: ParamDefinitions, fields: Fields, *, is_foreach: bool) -> None:
    loop = params.get("loop_params")
    kind = "foreach" if is_foreach else "while"
    if loop is None or loop.type is not ParamType.MAP or not loop.value:
        wanted = "lists to go through" if is_foreach else "values that its steps change"
        fields.add(f"a {kind} needs loop_params: {wanted}")
        return
    for name, each in loop.value.items():
        is_array = each.type.element is not None
        if is_foreach and not is_array:
            message = f"the loop parameter {name!r} must be a list, found a {each.type}"
            fields.add(message, _given(fields), hint=_as_expression(name, each.value))
        if not is_foreach and (is_array or each.type in (ParamType.MAP, ParamType.STRING_MAP)):
            fields.add(f"the loop parameter {name!r} must be a single value, found a {each.type}", _given(fields))


def _as_expression(name: str, value: object) -> str | None:
    """How to go through the list that a reference means, which as a text is a text."""
    named = re.fullmatch(r"\$\{?([_a-zA-Z]\w*)\}?", value) if isinstance(value, str) else None
    return f"write it as an expression: '!{name}<array<string>>': {named[1]}" if named else None


def _given(fields: Fields) -> str | None:
    return next((name for name in ("loop_params", "params") if name in fields.node.entries), None)
