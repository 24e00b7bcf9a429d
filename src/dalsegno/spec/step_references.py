"""Which outputs of other steps a step refers to, as it is written: ``${capture.change_table}`` and the like."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.errors import DalsegnoError
from dalsegno.model.params import ParamDefinition, ParamDefinitions
from dalsegno.model.workflow import ForeachStep, JobStep, Step, WhileStep
from dalsegno.spec.captures import committed_by
from dalsegno.spec.nodes import SourceLocation
from dalsegno.spec.params.literals import all_references
from dalsegno.spec.params.names import splits
from dalsegno.spec.reading.context import Reading

#: Where the conditions of a step are said to stand.
TRANSITION = "transition"
_GET = re.compile(r"""\bgetFromStep\(\s*(["'])([^"']+)\1\s*,\s*(["'])([^"']+)\3\s*\)""")
#: What a shell does not look at: comments, and texts in single quotes.
_NOT_SHELL = re.compile(
    r"""\\.|"(?:\\.|[^"\\])*"|(?P<skipped>(?:^|(?<=\s))\#[^\n]*|'[^']*')""", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Reference:
    """A name that a parameter refers to."""

    #: The parameter, and which part of it: ``shell.script``.
    param: str
    name: str
    #: Whether a run fails if the name means nothing. Otherwise it may be a text of another language.
    is_certain: bool = True


def references_of(step: Step) -> Iterator[Reference]:
    """Those of the step's own parameters and, if it is a loop, of its condition."""
    code = step.type.lower() if isinstance(step, JobStep) else ""
    for name, definition in step.params.items():
        yield from _references(name, definition, code)
    if isinstance(step, WhileStep):
        yield from _of_expression("condition", step.condition)
    if (named := committed_by(step)) and "$" not in named:
        yield Reference("ip_commit", f"{named}.capture_id")


def references_in(params: ParamDefinitions) -> Iterator[Reference]:
    """Those of a workflow's own parameters."""
    for name, definition in params.items():
        yield from _references(name, definition, "")


def of_conditions(step: Step) -> Iterator[Reference]:
    """Those of the conditions under which other steps follow."""
    for condition in step.successors.values():
        if condition is not None:
            yield from _of_expression(TRANSITION, condition)


def in_text(text: str) -> Iterator[Reference]:
    """Those of a file whose references a step fills in."""
    yield from (Reference("", name) for name in all_references(text))


def inner_steps(step: Step) -> Iterator[Step]:
    """The step, and those inside of it if it is a loop."""
    yield step
    if isinstance(step, ForeachStep | WhileStep):
        for each in step.steps:
            yield from inner_steps(each)


def named_step(name: str, steps: Collection[str]) -> tuple[str, str] | None:
    """The step and the output that a name means; None if it means neither, or could mean two."""
    found = [(step_id, rest) for step_id, rest in splits(name) if step_id in steps]
    return found[0] if len({step_id for step_id, _ in found}) == 1 else None


def place_of(owner: str, reference: Reference, reading: Reading) -> SourceLocation:
    """Where the parameter stands that refers, as near as it is known."""
    name, *inner = reference.param.split(".")
    while inner:
        if found := reading.marks.get(("field", owner, name, *inner)):
            return found
        inner.pop()
    return reading.marks.get(("param", owner, name)) or reading.mark("step", owner)


def _references(path: str, given: Any, code: str) -> Iterator[Reference]:
    if not isinstance(given, ParamDefinition):
        yield from _of_literal(path, given, code)
    elif given.expression is not None:
        yield from _of_expression(path, given.expression)
    elif isinstance(given.value, Mapping):
        for name, item in given.value.items():
            yield from (Reference(path, each) for each in all_references(name))
            yield from _references(f"{path}.{name}", item, code)
    else:
        yield from _of_literal(path, given.value, code)


def _of_literal(path: str, value: Any, code: str) -> Iterator[Reference]:
    if (path, code) == ("python.script", "python") or (path, code) == ("state_expr", "http"):
        # The one gets no values, the other is an expression.
        return
    if (path, code) == ("shell.script", "shell") and isinstance(value, str):
        read = _NOT_SHELL.sub(lambda found: "" if found["skipped"] else found[0], value)
        # What stands in a here-document may be anything.
        yield from (Reference(path, name, is_certain="<<" not in value) for name in all_references(read))
        return
    yield from (Reference(path, name) for name in all_references(value))


def _of_expression(path: str, expression: str) -> Iterator[Reference]:
    from dalsegno.sel import parse  # noqa: PLC0415 - a workflow without expressions need not wait for it
    from dalsegno.sel.names import variables_of  # noqa: PLC0415

    try:
        yield from (Reference(path, name) for name in sorted(variables_of(parse(expression))))
    except DalsegnoError:
        # That it cannot be read is said elsewhere.
        return
    # It may stand where a run does not come.
    yield from (
        Reference(path, f"{step_id}.{name}", is_certain=False) for _, step_id, _, name in _GET.findall(expression)
    )
