"""Steps, in every form: JSON's wrapped objects, YAML's jobs, and flat mappings with a name and a type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.workflow import FailureMode, ForeachStep, JobStep, Step, SubworkflowStep, WhileStep
from dalsegno.spec import names
from dalsegno.spec.fields import Fields, is_null, kind_of
from dalsegno.spec.lookalikes import instead_in_job
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation
from dalsegno.spec.problems import meant
from dalsegno.spec.reading import graph
from dalsegno.spec.reading.context import TEMPLATE, Reading
from dalsegno.spec.reading.params import Definitions, mark_fields, name_in, read_typed, read_written
from dalsegno.spec.reading.retries import read_retry_policy, read_timeout
from dalsegno.spec.reading.signals import read_dependencies, read_outputs
from dalsegno.spec.reading.tags import read_tags
from dalsegno.spec.reading.transitions import Edges, read_dag, read_transition
from dalsegno.spec.step_types import block_of, fields_of

#: How deep loops may be in each other.
DEPTH = 10
ITERATIONS_AT_ONCE = 500
LOOP_PARAMS = "loop_params"
SUBWORKFLOW_ID, SUBWORKFLOW_VERSION = "subworkflow_id", "subworkflow_version"
_LIST_NAMES = ("jobs", "steps")


class Style(Enum):
    """How the fields of a step are to be understood."""

    #: ``params`` holds objects with a type and a value; any other field is a mistake.
    TYPED = auto()
    #: Fields that are not known are parameters.
    WRITTEN = auto()
    #: Fields that are not known are parameters of the block that is called like the type; ``name`` may be the id.
    FLAT = auto()


_KINDS = {"step": "job", "job": "job", "subworkflow": "subworkflow", "foreach": "foreach", "while": "while"}


@dataclass(frozen=True)
class _Item:
    kind: str
    style: Style
    fields: Fields


def read_steps(fields: Fields, reading: Reading, *, depth: int = 0) -> tuple[Step, ...]:
    """The steps under ``jobs`` or ``steps``, with the edges between them."""
    name = next((each for each in _LIST_NAMES if each in fields.node.entries), _LIST_NAMES[0])
    for other in _LIST_NAMES:
        if other != name and fields.find(other) is not None:
            fields.add("give either 'jobs' or 'steps', not both", other)
    dag = fields.find("dag")
    items = fields.items(name)
    if fields.find(name) is None or (not items and isinstance(fields.find(name), ListNode)):
        fields.add("there must be at least one step", name if name in fields.node.entries else None)
    if depth > DEPTH:
        fields.add(f"loops are nested more than {DEPTH} deep", name)
        return ()
    edges = Edges(reading)
    steps = [
        step
        for number, node in enumerate(items)
        if (step := _step(node, f"{fields.place(name)}[{number}]", name, edges, reading, depth)) is not None
    ]
    reading.steps |= {step.id: step for step in steps}
    if dag is not None:
        read_dag(dag, fields.place("dag"), [step.id for step in steps], edges)
    elif steps and not any(step.id in reading.typed for step in steps):
        reading.without_dag[steps[0].id] = fields.key_mark(name)
    graph.check(steps, edges, fields.place(name), reading)
    return tuple(replace(step, successors=edges.successors(step.id)) for step in steps)


def _step(node: Node, path: str, list_name: str, edges: Edges, reading: Reading, depth: int) -> Step | None:
    item = _item(node, path, list_name, reading)
    if item is None:
        return None
    readers: dict[str, Callable[[_Item, Reading, int], Step]] = {
        "job": _job,
        "subworkflow": _subworkflow,
        "foreach": _foreach,
        "while": _while,
    }
    fields = item.fields
    id_name = "name" if item.style is Style.FLAT and "id" not in fields.node.entries else "id"
    step_id = fields.text(id_name)
    if not step_id:
        fields.add("a step needs an id")
    fields.faultless(id_name, step_id, names.fault_of_step_id)
    mark = _value_mark(fields, id_name)
    reading.ids.append((step_id or "", mark))
    reading.marks.setdefault(("step", step_id or ""), mark)
    read_transition(step_id or "", fields, edges)
    for before, place in fields.texts("depends_on", "dependsOn") if item.style is not Style.TYPED else ():
        edges.add(before, step_id or "", None, place)
    step = readers[item.kind](item, reading, depth)
    if item.style is Style.TYPED:
        reading.typed.add(step.id)
        fields.refuse_rest(f"a {item.kind}" if item.kind != "job" else "a step")
    return step


def _value_mark(fields: Fields, name: str) -> SourceLocation:
    return fields.node.entries[name][1].mark if name in fields.node.entries else fields.mark


def _item(node: Node, path: str, list_name: str, reading: Reading) -> _Item | None:
    if not isinstance(node, MapNode):
        hint = "write '- job: {id: …, type: …}'"
        reading.problems.add(f"a step must be a mapping, found {kind_of(node)}", node.mark, path, hint)
        return None
    wrapper = _wrapper(node)
    if wrapper is not None:
        inner = node.entries[wrapper][1]
        body = inner
        if is_null(inner):
            # '- job:' whose fields were not indented under it.
            body = MapNode(node.mark, {key: entry for key, entry in node.entries.items() if key != wrapper})
        if not isinstance(body, MapNode):
            reading.problems.add(f"{wrapper!r} must be a mapping, found {kind_of(inner)}", inner.mark, path)
            return None
        is_typed = wrapper == "step" or (wrapper != "job" and list_name == "steps")
        style = Style.TYPED if is_typed else Style.WRITTEN
        return _Item(_KINDS[wrapper], style, Fields(body, f"{path}.{wrapper}", reading.problems))
    if len(node.entries) == 1:
        key, inner = next(iter(node.entries.values()))
        if isinstance(inner, MapNode):
            hint = meant(key.text, _KINDS) or "expected job, subworkflow, foreach or while"
            reading.problems.add(f"there is no kind of step {key.text!r}", key.mark, path, hint)
            return None
    fields = Fields(node, path, reading.problems)
    kind = (fields.text("type") or "").lower()
    style = Style.FLAT if list_name == "steps" else Style.WRITTEN
    return _Item(kind if kind in ("subworkflow", "foreach", "while") else "job", style, fields)


def _wrapper(node: MapNode) -> str | None:
    for key, (_, inner) in node.entries.items():
        if key in _KINDS and (len(node.entries) == 1 or is_null(inner)):
            return key
    return None


def _shared(item: _Item, reading: Reading) -> dict[str, Any]:
    """The fields that all kinds of steps have; parameters come later, when all other fields are known."""
    fields = item.fields
    is_named = item.style is Style.FLAT and "id" not in fields.node.entries
    return {
        "id": (fields.text("name") if is_named else fields.text("id")) or "",
        "name": None if is_named else fields.text("name", limit=names.NAME_LENGTH),
        "description": fields.text("description", limit=names.TEXT_LENGTH),
        "failure_mode": fields.choice(FailureMode, "failure_mode") or FailureMode.FAIL_AFTER_RUNNING,
        "tags": read_tags(fields, "tags"),
        "timeout": read_timeout(fields),
        "signal_dependencies": read_dependencies(fields, reading),
        "signal_outputs": read_outputs(fields, reading),
    }


def _params(
    item: _Item, reading: Reading, step_id: str, *, block: str | None = None, own: str | None = "params"
) -> Definitions:
    """What is left are parameters; ``own`` is a field that holds some more."""
    fields = item.fields
    if item.style is Style.TYPED:
        return read_typed(fields.mapping("params"), reading, owner=step_id)
    blocks = frozenset({block}) if block else frozenset()
    inner = fields.mapping(own) if own else None
    if not (item.style is Style.FLAT and block and fields_of(block)):
        # Of those of a flat one, fields that its block does not have are refused.
        instead = partial(instead_in_job, block=block) if item.kind == "job" else partial(meant, cutoff=0.85)
        reading.note_lookalikes(fields.path, fields.lookalikes(instead))
    rest = list(fields.rest())
    in_block = [entry for entry in rest if name_in(entry[0]) != block] if item.style is Style.FLAT and block else []
    outside = [*(inner.node.entries.values() if inner else ()), *(rest if not in_block else _called(block, rest))]
    found = read_written(outside, reading, fields.path, owner=step_id, blocks=blocks)
    given = read_written(in_block, reading, fields.path)
    if given and block:
        mark_fields(
            step_id, block, MapNode(fields.node.mark, {key.text: (key, node) for key, node in in_block}), reading
        )
        known = found[block].value if block in found and found[block].type is ParamType.MAP else {}
        mode = found[block].mode if block in found else None
        found[block] = ParamDefinition(ParamType.MAP, {**known, **given}, mode=mode)
    return found


def _called(name: str | None, entries: list[tuple[Scalar, Node]]) -> list[tuple[Scalar, Node]]:
    return [entry for entry in entries if name_in(entry[0]) == name]


def _job(item: _Item, reading: Reading, depth: int) -> JobStep:
    del depth
    fields = item.fields
    shared = _shared(item, reading)
    written = fields.text("type")
    step_type, template = _type(written, fields, reading)
    sub_type = fields.text("sub_type") if item.style is Style.TYPED else None
    version = fields.text("sub_type_version") if item.style is Style.TYPED else fields.text("type_version")
    policy = read_retry_policy(fields.mapping("retry_policy"))
    block = block_of(step_type)
    return JobStep(
        **shared,
        type=step_type,
        sub_type=template or sub_type,
        sub_type_version=version,
        retry_policy=policy,
        params=_params(item, reading, shared["id"], block=block),
    )


def _type(written: str | None, fields: Fields, reading: Reading) -> tuple[str, str | None]:
    if not written:
        fields.add("a step needs a type", hint=f"such as {', '.join(reading.types.names[:5])}")
        return "NoOp", None
    found = reading.types.find(written)
    if found is None and reading.trusted:
        # It was known where it was pushed; whoever runs it says if it is not.
        return written, None
    if found is None:
        hint = meant(written, reading.types.names) or f"there are {', '.join(reading.types.names)}"
        fields.add(f"there is no step type or job template {written!r}", "type", hint)
        return TEMPLATE, written
    return found


def _subworkflow(item: _Item, reading: Reading, depth: int) -> SubworkflowStep:
    del depth
    fields = item.fields
    shared = _shared(item, reading)
    is_sync, is_explicit = fields.flag("sync"), fields.flag("explicit_params")
    given: Definitions = {}
    if item.style is Style.TYPED:
        params = _params(item, reading, shared["id"])
        if SUBWORKFLOW_ID not in params:
            fields.add(f"a subworkflow needs the parameter {SUBWORKFLOW_ID!r}: which workflow to run")
    else:
        fields.find("type")
        target = fields.text("workflow_id", SUBWORKFLOW_ID)
        version = fields.text("version", SUBWORKFLOW_VERSION, "workflow_version")
        params = _params(item, reading, shared["id"])
        if target or SUBWORKFLOW_ID not in params:
            given[SUBWORKFLOW_ID] = ParamDefinition(ParamType.STRING, target or shared["id"])
        if version:
            given[SUBWORKFLOW_VERSION] = ParamDefinition(ParamType.STRING, version)
    return SubworkflowStep(
        **shared,
        is_sync=is_sync is not False,
        has_explicit_params=bool(is_explicit),
        params={**given, **params},
    )


def _foreach(item: _Item, reading: Reading, depth: int) -> ForeachStep:
    fields = item.fields
    shared = _shared(item, reading)
    concurrency = fields.number("concurrency", "job_concurrency", low=1, high=ITERATIONS_AT_ONCE)
    is_strict = fields.flag("strict_ordering")
    steps = read_steps(fields, reading, depth=depth + 1)
    params = _looping(item, reading, shared["id"])
    graph.check_loop_params(params, fields, is_foreach=True)
    return ForeachStep(
        **shared, steps=steps, concurrency=concurrency, has_strict_ordering=bool(is_strict), params=params
    )


def _while(item: _Item, reading: Reading, depth: int) -> WhileStep:
    fields = item.fields
    shared = _shared(item, reading)
    node = fields.find("condition")
    condition = fields.text("condition") or ""
    if isinstance(node, Scalar):
        reading.expression(node.text, node, fields.place("condition"))
    elif node is None:
        fields.add("a while loop needs a condition")
    steps = read_steps(fields, reading, depth=depth + 1)
    params = _looping(item, reading, shared["id"])
    graph.check_loop_params(params, fields, is_foreach=False)
    return WhileStep(**shared, steps=steps, condition=condition, params=params)


def _looping(item: _Item, reading: Reading, step_id: str) -> Definitions:
    """The parameters of a loop, with what it loops over as one of them."""
    fields = item.fields
    if item.style is Style.TYPED:
        return _params(item, reading, step_id)
    fields.find("type")
    given = fields.mapping(LOOP_PARAMS, "params")
    looping = read_written(given.node.entries.values(), reading, given.path) if given else {}
    looping |= _ranges(fields.mapping("ranges"), reading)
    params = _params(item, reading, step_id, own=None)
    return {**params, LOOP_PARAMS: ParamDefinition(ParamType.MAP, looping)} if looping else params


def _ranges(fields: Fields | None, reading: Reading) -> Definitions:
    found: Definitions = {}
    if fields is None:
        return found
    for name, (_, node) in fields.node.entries.items():
        path = f"{fields.path}.{name}"
        if not isinstance(node, MapNode):
            hint = f"write '{name}: {{from: 0, to: 10}}'"
            reading.problems.add(f"the range {name!r} must be a mapping, found {kind_of(node)}", node.mark, path, hint)
            continue
        inner = Fields(node, path, reading.problems)
        begin, end, step = inner.text("from") or "0", inner.text("to"), inner.text("increment") or "1"
        inner.refuse_rest("a range")
        if end is None:
            inner.add(f"the range {name!r} needs 'to', which is not part of it")
        if step.strip() == "0":
            inner.add(f"the range {name!r} would never end", "increment")
        expression = f"Util.intsBetween({begin}, {end}, {step});"
        reading.expression(expression, Scalar(expression, node.mark, expression), path)
        found[name] = ParamDefinition(ParamType.LONG_ARRAY, expression=expression)
    return found
