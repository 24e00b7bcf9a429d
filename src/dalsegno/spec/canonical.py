"""Model → Maestro's JSON, in one way only: what the store keeps and clients are given.

``workflows.from_json`` reads it back equal. What has its default is left out, but for what Maestro always writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamSource, ParamType, Tag
from dalsegno.model.workflow import (
    Backoff,
    Definition,
    FailureMode,
    ForeachStep,
    JobStep,
    Properties,
    RetryPolicy,
    SignalDependency,
    SignalMatch,
    SignalOutput,
    Step,
    SubworkflowStep,
    Trigger,
    WhileStep,
    Workflow,
)
from dalsegno.triggers import TRIGGERS
from dalsegno.triggers.spec import language_of

Json = dict[str, Any]

_KINDS = ("error", "platform", "timeout")


def to_json(definition: Definition) -> Json:
    return {
        "properties": properties(definition.properties),
        "workflow": workflow(definition.workflow),
        "is_active": definition.is_active,
        **given(git_info=dict(definition.git_info)),
        **definition.extra,
    }


def _triggers(kind: str, triggers: tuple[Trigger, ...]) -> list[Json]:
    return [language_of(kind).write(each) for each in triggers if each.kind == kind]


def properties(value: Properties) -> Json:
    extra = dict(value.extra)
    owner: Any = {"name": value.owner, **extra.pop("owner")} if "owner" in extra else value.owner
    return {
        **given(owner=owner),
        "run_strategy": {"rule": value.run_strategy.rule, "workflow_concurrency": value.run_strategy.concurrency},
        "step_concurrency": value.step_concurrency,
        **given(
            alerting=dict(value.alerting),
            **{f"{kind}_trigger_disabled": True for kind in TRIGGERS if kind in value.disabled_triggers},
            description=value.description,
        ),
        **extra,
    }


def workflow(value: Workflow) -> Json:
    return {
        "id": value.id,
        **given(
            name=value.name,
            description=value.description,
            tags=tags(value.tags),
            timeout=value.timeout,
            **{f"{kind}_triggers": _triggers(kind, value.triggers) for kind in TRIGGERS},
            criticality=value.criticality,
            instance_step_concurrency=value.instance_step_concurrency,
            params=params(value.params),
            oracle=dict(value.oracle),
        ),
        "steps": [step(each) for each in value.steps],
    }


def step(value: Step) -> Json:
    shared: Json = {
        "id": value.id,
        **given(name=value.name, description=value.description),
        "transition": {"successors": {to: condition or "true" for to, condition in value.successors.items()}},
        **given(
            failure_mode=None if value.failure_mode is FailureMode.FAIL_AFTER_RUNNING else value.failure_mode,
            tags=tags(value.tags),
            timeout=value.timeout,
            signal_dependencies=[_dependency(each) for each in value.signal_dependencies],
            signal_outputs=[_output(each) for each in value.signal_outputs],
            params=params(value.params),
        ),
    }
    match value:
        case JobStep():
            own = {"type": value.type, **given(sub_type=value.sub_type, sub_type_version=value.sub_type_version)}
            return {"step": {**shared, **own, **given(retry_policy=_retry_policy(value.retry_policy))}}
        case SubworkflowStep():
            return {"subworkflow": {**shared, "sync": value.is_sync, "explicit_params": value.has_explicit_params}}
        case ForeachStep():
            own = {**given(concurrency=value.concurrency), "strict_ordering": value.has_strict_ordering}
            return {"foreach": {**shared, **own, "steps": [step(each) for each in value.steps]}}
        case WhileStep():
            inner = [step(each) for each in value.steps]
            return {"while": {**shared, "condition": value.condition, "steps": inner}}
    assert_never(value)


def params(values: ParamDefinitions) -> Json:
    return {name: param(value) for name, value in values.items()}


def param(value: ParamDefinition) -> Json:
    literal = value.value
    if value.type is ParamType.MAP and isinstance(literal, Mapping):
        literal = params(literal)
    found: Json = {} if literal is None else {"value": literal}
    return {
        **found,
        **({} if value.expression is None else {"expression": value.expression}),
        **({} if value.secret is None else {"secret": value.secret}),
        "type": value.type,
        **given(
            mode=value.mode,
            internal_mode=value.internal_mode,
            source=None if value.source is ParamSource.DEFINITION else value.source,
            tags=tags(value.tags),
            validator=value.validator,
        ),
        **value.meta,
    }


def given(**values: Any) -> Json:
    """Those that say something."""
    return {name: value for name, value in values.items() if value is not None and value not in ([], {})}


def tags(values: tuple[Tag, ...]) -> list[Any]:
    return [
        {"name": tag.name, **given(namespace=tag.namespace), **tag.attributes}
        if tag.namespace or tag.attributes
        else tag.name
        for tag in values
    ]


def _retry_policy(value: RetryPolicy) -> Json:
    default = RetryPolicy()
    limits = {
        f"{kind}_retry_limit": getattr(value, f"{kind}_limit")
        for kind in _KINDS
        if getattr(value, f"{kind}_limit") != getattr(default, f"{kind}_limit")
    }
    return {**limits, **given(backoff=_backoff(value.backoff))}


def _backoff(value: Backoff) -> Json:
    if value == Backoff():
        return {}
    bases = {f"{kind}_retry_backoff_in_secs": getattr(value, f"{kind}_base") for kind in _KINDS}
    if all(
        getattr(value, f"{kind}_exponent") == 1 and getattr(value, f"{kind}_limit") == getattr(value, f"{kind}_base")
        for kind in _KINDS
    ):
        return {"type": "FIXED_BACKOFF", **bases}
    exponents = {f"{kind}_retry_exponent": getattr(value, f"{kind}_exponent") for kind in _KINDS}
    limits = {f"{kind}_retry_limit_in_secs": getattr(value, f"{kind}_limit") for kind in _KINDS}
    return {"type": "EXPONENTIAL_BACKOFF", **bases, **exponents, **limits}


def match(value: SignalMatch) -> Json:
    return {"param": param(value.param), "operator": value.operator}


def _dependency(value: SignalDependency) -> Json:
    return {"name": value.name, **given(match_params={name: match(each) for name, each in value.match.items()})}


def _output(value: SignalOutput) -> Json:
    return {"name": value.name, **given(params=params(value.params), payload=dict(value.payload))}
