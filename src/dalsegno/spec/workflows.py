"""A workflow's text → its definition, or every problem of it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dalsegno.errors import Problem
from dalsegno.model.workflow import Definition, Workflow
from dalsegno.spec import checks, documents, expressions
from dalsegno.spec.inferred_order import with_inferred_order
from dalsegno.spec.nodes import SourceLocation, from_plain
from dalsegno.spec.params.checks import problems_of
from dalsegno.spec.params.sel import Sel
from dalsegno.spec.problems import Problems
from dalsegno.spec.reading.context import Reading, StepTypes
from dalsegno.spec.reading.workflow import read_definition


@dataclass(frozen=True)
class ReadWorkflow:
    definition: Definition
    #: What may be meant so, but is worth a look.
    warnings: tuple[Problem, ...] = ()
    #: Where its parts stand: see ``Reading.marks``.
    marks: Mapping[tuple[str, ...], SourceLocation] = field(default_factory=dict)


def read(
    text: str | bytes, *, file: str = "workflow", types: StepTypes | None = None, now: datetime | None = None
) -> ReadWorkflow:
    """The workflow that the text defines, in any of the dialects, YAML or JSON; raises ``InvalidWorkflow``.

    Values of parameters that are known already are judged by their validators, which may ask for the time: ``now``.
    """
    problems = Problems()
    root = documents.read(text, problems)
    if root is None:
        problems.refuse(file)
        raise AssertionError("a text without a document must have a problem")
    reading = Reading(problems, types or StepTypes())
    definition = read_definition(root, reading)
    definition = replace(definition, workflow=with_inferred_order(definition.workflow, reading))
    checks.check(definition.workflow, reading)
    lines = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).splitlines()
    expressions.check(reading.expressions, lines, problems)
    problems.refuse(file)
    for message, mark, hint in reading.notes:
        problems.add(message, mark, hint=hint, warning=True)
    if now is not None:
        _check_values(definition.workflow, reading, now)
        problems.refuse(file)
    return ReadWorkflow(definition, problems.warnings, reading.marks)


def _check_values(workflow: Workflow, reading: Reading, now: datetime) -> None:
    """What parameters are worth is known in a run; where it is known already, it must keep its rules already."""
    owners = {"": workflow.params} | {step.id: step.params for step in workflow.all_steps()}
    for owner, definitions in owners.items():
        for found in problems_of(definitions, Sel(), now):
            mark = reading.mark("param", owner, found.path[0])
            path = ".".join(found.path)
            reading.problems.add(found.message, mark, path, found.hint, warning=found.is_warning)


def from_json(data: Mapping[str, Any]) -> Definition:
    """What ``canonical.to_json`` wrote; it was checked when it was written, and is not checked again."""
    problems = Problems()
    reading = Reading(problems, StepTypes(), trusted=True)
    definition = read_definition(from_plain(data), reading)
    problems.refuse("the stored workflow")
    return definition
