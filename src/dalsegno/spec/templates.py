"""A job template's text → the template: Maestro's JSON, also as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.model.templates import JobTemplate
from dalsegno.spec import canonical, documents, expressions, names
from dalsegno.spec.block_checks import check_params
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import MapNode, Node, SourceLocation, from_plain, plain
from dalsegno.spec.problems import Problems, meant
from dalsegno.spec.reading.context import Reading, StepTypes
from dalsegno.spec.reading.params import read_typed
from dalsegno.spec.reading.tags import read_tags


@dataclass(frozen=True)
class ReadTemplate:
    template: JobTemplate
    #: Where its parts stand: see ``Reading.marks``.
    marks: Mapping[tuple[str, ...], SourceLocation]


def read(text: str | bytes, *, file: str = "template", types: StepTypes | None = None) -> JobTemplate:
    """The template that the text defines; raises ``InvalidWorkflow`` with every problem."""
    return read_with_marks(text, file=file, types=types).template


def read_with_marks(text: str | bytes, *, file: str = "template", types: StepTypes | None = None) -> ReadTemplate:
    problems = Problems()
    root = documents.read(text, problems)
    reading = Reading(problems, types or StepTypes())
    template = _template(root, reading) if root is not None else None
    if template is not None:
        check_params(template.step_type, "", template.params, reading.marks, problems)
    lines = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).splitlines()
    expressions.check(reading.expressions, lines, problems)
    problems.refuse(file)
    if template is None:
        raise AssertionError("a text without a template must have a problem")
    return ReadTemplate(template, reading.marks)


def from_json(data: Mapping[str, Any]) -> JobTemplate:
    """What ``to_json`` wrote."""
    problems = Problems()
    template = _template(from_plain(data), Reading(problems, StepTypes(), trusted=True))
    problems.refuse("the stored template")
    if template is None:
        raise AssertionError("data without a template must have a problem")
    return template


def to_json(template: JobTemplate) -> dict[str, Any]:
    definition = {
        "job_type": template.job_type,
        "step_type": template.step_type,
        "version": template.version,
        **({"description": template.description} if template.description is not None else {}),
        "tags": canonical.tags(template.tags),
        "inherit_from": dict(template.inherit_from),
        "params": canonical.params(template.params),
    }
    owner = {"owner": template.owner} if template.owner is not None else {}
    return {**owner, **template.extra, "definition": definition}


def _template(root: Node, reading: Reading) -> JobTemplate | None:
    if not isinstance(root, MapNode):
        reading.problems.add(f"a job template must be a mapping, found {kind_of(root)}", root.mark)
        return None
    document = Fields(root, "", reading.problems)
    owner = document.text("owner")
    fields = document.mapping("definition")
    if fields is None:
        document.add("a job template needs a definition")
        return None
    job_type = fields.faultless("job_type", fields.text("job_type"), names.fault_of_step_id)
    if not job_type:
        fields.add("a job template needs a job_type: what it is called")
    inherited = fields.mapping("inherit_from")
    template = JobTemplate(
        job_type or "",
        _step_type(fields, reading),
        fields.text("version") or "default",
        fields.text("description", limit=names.TEXT_LENGTH),
        read_tags(fields, "tags"),
        {name: inherited.text(name) or "default" for name in inherited.node.entries} if inherited else {},
        read_typed(fields.mapping("params"), reading, owner=""),
        owner,
        {key.text: plain(node) for key, node in document.rest()},
    )
    fields.refuse_rest("the definition of a job template")
    return template


def _step_type(fields: Fields, reading: Reading) -> str:
    written = fields.text("step_type")
    found = reading.types.find(written or "")
    if not written:
        fields.add("a job template needs a step_type: what its steps run as")
    elif found is None:
        hint = meant(written, reading.types.names)
        fields.add(f"there is no step type {written!r}", "step_type", hint)
    return found[0] if found else ""
