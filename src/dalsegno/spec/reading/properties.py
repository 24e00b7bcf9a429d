"""What holds for all versions of a workflow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dalsegno.model.workflow import DEFAULT_STEP_CONCURRENCY, Properties, RunRule, RunStrategy
from dalsegno.spec import names
from dalsegno.spec.alerting import Marks, read_alerting
from dalsegno.spec.fields import Fields, chosen
from dalsegno.spec.nodes import MapNode, Node, Scalar, plain
from dalsegno.triggers import TRIGGERS

CONCURRENCY = 1000
PARALLEL_RUNS = 20


def read_properties(fields: Fields | None, workflow: Fields | None, marks: Marks) -> Properties:
    """From ``properties``, or from the same fields in a workflow that is written in YAML."""
    if fields is not None:
        found = _properties(fields, marks)
        found = replace(found, extra={**found.extra, **{key.text: plain(node) for key, node in fields.rest()}})
        if workflow is not None and any(name in workflow.node.entries for name in _IN_WORKFLOW):
            workflow.add("give properties in one place: under 'properties' or in the workflow")
        return found
    if workflow is None:
        return Properties()
    # A description of the workflow is the version's own.
    return _properties(workflow, marks, has_description=False)


_IN_WORKFLOW = ("owner", "run_strategy", "workflow_concurrency", "step_concurrency", "alerting")


def _properties(fields: Fields, marks: Marks, *, has_description: bool = True) -> Properties:
    owner, extra = _owner(fields)
    strategy = _strategy(fields)
    values: dict[str, Any] = {
        "owner": owner,
        "run_strategy": strategy,
        "step_concurrency": fields.number("step_concurrency", low=1, high=CONCURRENCY) or DEFAULT_STEP_CONCURRENCY,
        "alerting": read_alerting(fields, marks),
        "extra": extra,
    }
    if has_description:
        values["description"] = fields.text("description", limit=names.TEXT_LENGTH)
        values["disabled_triggers"] = frozenset(kind for kind in TRIGGERS if fields.flag(f"{kind}_trigger_disabled"))
    return Properties(**values)


def _owner(fields: Fields) -> tuple[str | None, dict[str, Any]]:
    """A name, or an object with a name; what else it holds is kept."""
    if not isinstance(fields.find("owner"), MapNode):
        return fields.text("owner"), {}
    inner = fields.mapping("owner")
    name = inner.text("name") if inner else None
    if inner is not None and name is None:
        inner.add("an owner needs a name")
    return name, {"owner": {key.text: plain(node) for key, node in inner.rest()}} if inner else {}


def _strategy(fields: Fields) -> RunStrategy:
    node = fields.find("run_strategy")
    beside = fields.number("workflow_concurrency", low=1, high=CONCURRENCY)
    if node is None:
        if beside is not None:
            fields.add("'workflow_concurrency' needs a run_strategy of PARALLEL", "workflow_concurrency")
        return RunStrategy()
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return RunStrategy(RunRule.PARALLEL, fields.number("run_strategy", low=1, high=CONCURRENCY) or 1)
    place = fields.place("run_strategy")
    if not isinstance(node, MapNode):
        return _limited(chosen(RunRule, node, "run_strategy", place, fields.problems), beside, node, fields)
    inner = Fields(node, place, fields.problems)
    rule = inner.choice(RunRule, "rule")
    if "rule" not in node.entries:
        inner.add("a run strategy needs a rule")
    concurrency = inner.number("workflow_concurrency", low=1, high=CONCURRENCY)
    inner.refuse_rest("a run strategy")
    return _limited(rule, beside if concurrency is None else concurrency, node, fields)


def _limited(rule: RunRule | None, concurrency: int | None, node: Node, fields: Fields) -> RunStrategy:
    if rule is None:
        return RunStrategy()
    if rule is RunRule.PARALLEL:
        return RunStrategy(rule, PARALLEL_RUNS if concurrency is None else concurrency)
    if concurrency is not None and concurrency > 1:
        fields.at(f"only PARALLEL allows more than one run at once; {rule} does not", node, "run_strategy")
    return RunStrategy(rule)
