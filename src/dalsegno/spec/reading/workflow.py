"""The whole document: whichever of the dialects it is written in.

JSON       ``properties``, ``workflow`` with ``steps`` and ``params``, ``is_active``, ``git_info``
YAML       ``Workflow`` with ``jobs`` and ``dag``; beside it ``Description`` and ``Trigger``
flat       ``workflow`` with a ``name`` and ``steps``, each with a name, a type and ``dependsOn``

They are told apart by what is in them, and may be mixed where that has a meaning.
"""

from __future__ import annotations

from dalsegno.model.params import Tag
from dalsegno.model.workflow import Criticality, Definition, Trigger, Workflow
from dalsegno.spec import names
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.lookalikes import instead_in_workflow
from dalsegno.spec.nodes import ListNode, MapNode, Node, plain
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.oracle import read_oracle
from dalsegno.spec.reading.params import Definitions, read_typed, read_written
from dalsegno.spec.reading.properties import read_properties
from dalsegno.spec.reading.retries import read_timeout
from dalsegno.spec.reading.steps import read_steps
from dalsegno.spec.reading.tags import read_tags
from dalsegno.spec.reading.triggers import in_order_of_kinds, read_front_door, read_triggers

INSTANCE_STEPS = 999
_WORKFLOW = ("workflow", "Workflow")
_TRIGGER = ("Trigger", "trigger", "Triggers", "triggers")
_BARE = ("jobs", "steps")


def read_definition(root: Node, reading: Reading) -> Definition:
    if not isinstance(root, MapNode):
        reading.problems.add(f"a workflow must be a mapping, found {kind_of(root)}", root.mark)
        return _nothing()
    document = Fields(root, "", reading.problems)
    if not any(name in root.entries for name in _WORKFLOW) and any(name in root.entries for name in _BARE):
        properties = read_properties(None, document if _is_written(document) else None, reading.marks)
        return Definition(_workflow(document, reading, None, ()), properties)
    return _wrapped(document, reading)


def _wrapped(document: Fields, reading: Reading) -> Definition:
    description = document.text("Description", "description", limit=names.TEXT_LENGTH)
    trigger = document.find(*_TRIGGER)
    triggers = read_front_door(trigger, document.written(*_TRIGGER), reading) if trigger else ()
    fields = document.mapping(*_WORKFLOW)
    properties = document.mapping("properties")
    is_active, git_info = document.flag("is_active"), document.data("git_info")
    if fields is None:
        if document.find(*_WORKFLOW) is None:
            near = next((hint for key in document.node.entries if (hint := meant(key, _WORKFLOW))), None)
            document.add("there is no workflow", hint=near or "begin with 'Workflow:', and its id and jobs under it")
        return _nothing()
    extra = _extra(document, fields)
    # First, because what the workflow's mapping says for the properties must not become a parameter.
    given = read_properties(properties, fields if _is_written(fields) else None, reading.marks)
    workflow = _workflow(fields, reading, description, triggers)
    return Definition(workflow, given, is_active is not False, git_info, extra)


def _extra(document: Fields, workflow: Fields) -> dict[str, object]:
    """What Maestro keeps of fields beside the workflow; in YAML they are mistakes."""
    if "jobs" in workflow.node.entries:
        document.refuse_rest("the document")
        return {}
    for key, _ in document.rest():
        hint = meant(key.text, ("workflow", "properties", "is_active", "git_info", "trigger", "description"))
        if hint:
            document.add(f"{key.text!r} is kept, but has no meaning", key.text, hint, warning=True)
    return {key.text: plain(node) for key, node in document.rest()}


def _nothing() -> Definition:
    return Definition(Workflow("", ()))


def _is_written(fields: Fields) -> bool:
    """Whether fields that are not known are parameters: not in JSON, whose steps are wrapped."""
    steps = fields.node.entries.get("steps")
    if steps is None or not isinstance(steps[1], ListNode):
        return "steps" not in fields.node.entries
    return any(isinstance(item, MapNode) and "type" in item.entries for item in steps[1].items)


def _workflow(
    fields: Fields,
    reading: Reading,
    description: str | None,
    beside: tuple[Trigger, ...],
) -> Workflow:
    is_written = _is_written(fields)
    is_named = is_written and "id" not in fields.node.entries and "steps" in fields.node.entries
    id_name = "name" if is_named else "id"
    workflow_id = fields.faultless(id_name, fields.text(id_name), names.fault_of_workflow_id)
    if not workflow_id:
        fields.add("a workflow needs an id")
    name = None if is_named else fields.text("name", limit=names.NAME_LENGTH)
    own_description = fields.text("description", limit=names.TEXT_LENGTH)
    tags: tuple[Tag, ...] = read_tags(fields, "tags")
    timeout = read_timeout(fields)
    criticality = fields.choice(Criticality, "criticality")
    concurrency = fields.number("instance_step_concurrency", low=1, high=INSTANCE_STEPS)
    own = read_triggers(fields, reading)
    oracle = read_oracle(fields)
    steps = read_steps(fields, reading)
    return Workflow(
        id=workflow_id or "",
        steps=steps,
        name=name,
        description=own_description or description,
        tags=tags,
        timeout=timeout,
        criticality=criticality,
        instance_step_concurrency=concurrency,
        params=_params(fields, reading, is_written=is_written),
        triggers=in_order_of_kinds((*beside, *own)),
        oracle=oracle,
    )


def _params(fields: Fields, reading: Reading, *, is_written: bool) -> Definitions:
    inner = fields.mapping("params")
    if not is_written:
        params = read_typed(inner, reading, owner="")
        fields.refuse_rest("a workflow")
        return params
    reading.note_lookalikes(fields.path, fields.lookalikes(instead_in_workflow))
    entries = [*(inner.node.entries.values() if inner else ()), *fields.rest()]
    return read_written(entries, reading, fields.path or "workflow", owner="")
