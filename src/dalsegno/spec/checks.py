"""What must hold of a workflow as a whole, and what is worth a look."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamType
from dalsegno.model.workflow import ForeachStep, JobStep, RetryPolicy, Step, SubworkflowStep, WhileStep, Workflow
from dalsegno.spec import block_checks, pasted_code, reference_checks
from dalsegno.spec.captures import IP_CAPTURE, committed_by, is_capture
from dalsegno.spec.names import SEPARATOR
from dalsegno.spec.params.literals import all_references
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.params import name_in
from dalsegno.spec.reading.steps import LOOP_PARAMS, SUBWORKFLOW_ID
from dalsegno.spec.step_references import of_conditions, references_in, references_of
from dalsegno.triggers.spec import languages

#: Maestro allows 300; a run of a thousand parallel steps is nothing special here.
STEPS = 10_000
#: How many names that are not known are compared with the known ones.
UNKNOWN = 200

_REFERENCE = re.compile(r"(?<!\$)\$\{\s*([_a-zA-Z][.\-_a-zA-Z0-9]*)\s*\}")


def check(workflow: Workflow, reading: Reading) -> None:
    _unique_ids(reading)
    _loop_names(workflow.steps, frozenset(), reading)
    for step in workflow.all_steps():
        _commit(step, reading)
        _call(step, workflow, reading)
        pasted_code.check(step, reading)
        block_checks.check_step(step, reading.marks, reading.problems)
    _uncommitted(workflow, reading)
    for language in languages().values():
        language.check(workflow, reading)
    _references(workflow, reading)
    reference_checks.check(workflow, reading)
    _lookalikes(workflow, reading)


def _unique_ids(reading: Reading) -> None:
    if len(reading.ids) > STEPS:
        mark = reading.ids[STEPS][1]
        reading.problems.add(f"the workflow has {len(reading.ids):,} steps; {STEPS:,} are the limit", mark)
    first: dict[str, int] = {}
    for step_id, mark in reading.ids:
        if step_id and step_id in first:
            hint = f"the first one is in line {first[step_id]}" if mark.line else None
            reading.problems.add(f"the step id {step_id!r} is given twice", mark, hint=hint)
        first.setdefault(step_id, mark.line)


def _loop_names(steps: Sequence[Step], outer: frozenset[str], reading: Reading) -> None:
    for step in steps:
        if isinstance(step, ForeachStep | WhileStep):
            own = frozenset(_looped(step))
            for name in sorted(own & outer):
                mark = reading.mark("step", step.id)
                reading.problems.add(f"the loop parameter {name!r} of {step.id!r} is one of an outer loop", mark)
            _loop_names(step.steps, outer | own, reading)


def _looped(step: Step) -> ParamDefinitions:
    loop = step.params.get(LOOP_PARAMS)
    return loop.value or {} if loop is not None and loop.type is ParamType.MAP else {}


def _commit(step: Step, reading: Reading) -> None:
    """A commit names a capture of the same workflow."""
    named = committed_by(step)
    if named is None or "$" in named:
        return
    mark = reading.mark("param", step.id, "ip_commit")
    captures = [each.id for each in reading.steps.values() if is_capture(each)]
    if named not in reading.steps:
        reading.problems.add(f"there is no step {named!r} to commit", mark, hint=meant(named, captures))
    elif named not in captures:
        reading.problems.add(f"the step {named!r} captures nothing that could be committed", mark)


def _uncommitted(workflow: Workflow, reading: Reading) -> None:
    """What a capture that nobody commits hands over, it would hand over with every run."""
    steps = list(workflow.all_steps())
    committed = {named for step in steps if (named := committed_by(step)) is not None}
    if not committed <= reading.steps.keys():
        # Misspelt, which is told elsewhere; or a reference, and which one it means is known when it runs.
        return
    for step in steps:
        if isinstance(step, JobStep) and step.type.lower() == IP_CAPTURE and step.id not in committed:
            message = f"nobody commits what {step.id!r} captures, so every run would process it again"
            hint = f"add a last step: type: IpCommit, ip_commit: {{capture_step: {step.id}}}"
            reading.problems.add(message, reading.mark("step", step.id), hint=hint)


def _call(step: Step, workflow: Workflow, reading: Reading) -> None:
    target = step.params.get(SUBWORKFLOW_ID)
    if isinstance(step, SubworkflowStep) and target is not None and target.value == workflow.id:
        message = f"{step.id!r} runs its own workflow: that ends only by a condition, or when it is too deep"
        reading.problems.add(message, reading.mark("step", step.id), warning=True)


def _references(workflow: Workflow, reading: Reading) -> None:
    """Runs may be given any parameter, so a name that is not known is told only if a known one is near."""
    steps = list(workflow.all_steps())
    known = {*workflow.params, *(name for step in steps for name in (*step.params, *_looped(step)))}
    unknown: dict[str, tuple[str, str]] = {}
    for owner, params in (("", workflow.params), *((step.id, step.params) for step in steps)):
        for name, definition in params.items():
            for text in _texts(definition):
                for reference in _REFERENCE.findall(text):
                    if reference not in known and not _is_of_a_step(reference, reading):
                        unknown.setdefault(reference, (owner, name))
    for reference, (owner, name) in islice(unknown.items(), UNKNOWN):
        if near := meant(reference, known, cutoff=0.75):
            path = f"{owner}.{name}" if owner else name
            message = f"no parameter {reference!r} is in sight"
            reading.problems.add(message, reading.mark("param", owner, name), path, near, warning=True)


def _is_of_a_step(reference: str, reading: Reading) -> bool:
    """``step__param`` and ``step.param``: what a step hands on is known when it has run."""
    return reference.partition(SEPARATOR)[0] in reading.steps or reference.rpartition(".")[0] in reading.steps


def _texts(definition: ParamDefinition) -> Iterator[str]:
    match definition.value:
        case str() as text:
            yield text
        case list() as items:
            yield from (item for item in items if isinstance(item, str))
        case dict() as entries:
            for entry in entries.values():
                if isinstance(entry, ParamDefinition):
                    yield from _texts(entry)
                elif isinstance(entry, str):
                    yield entry


def _limits(step: Step) -> Iterator[str]:
    """The texts of its timeout and of its retry policy, which may refer to parameters."""
    policy = step.retry_policy if isinstance(step, JobStep) else RetryPolicy()
    for value in (step.timeout, *vars(policy).values(), *vars(policy.backoff).values()):
        if isinstance(value, str):
            yield value


def _lookalikes(workflow: Workflow, reading: Reading) -> None:
    """A misspelt field is easily taken for a parameter; what a text refers to is meant as one."""
    used = {each.name for each in references_in(workflow.params)}
    for step in workflow.all_steps():
        used |= {each.name for each in (*references_of(step), *of_conditions(step))}
        used.update(all_references(list(_limits(step))))
    for key, path, hint in reading.lookalikes:
        if name_in(key) not in used:
            message = f"{key.text!r} isn't a field, so it becomes a parameter"
            reading.problems.add(message, key.mark, path, hint, warning=True)
