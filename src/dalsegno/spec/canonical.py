"""Model → Maestro's JSON, in one way only: what the store keeps and clients are given.

``workflows.from_json`` reads it back equal. What has its default is left out, but for what Maestro always writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamSource, ParamType, Tag
from dalsegno.model.workflow import (
    Backoff,
    CatchUp,
    Definition,
    FailureMode,
    ForeachStep,
    IncrementalTrigger,
    JobStep,
    Properties,
    Quorum,
    RetryPolicy,
    SignalDependency,
    SignalMatch,
    SignalOutput,
    SignalTrigger,
    Step,
    SubworkflowStep,
    TimeTrigger,
    WhileStep,
    Workflow,
)

Json = dict[str, Any]

_KINDS = ("error", "platform", "timeout")


def to_json(definition: Definition) -> Json:
    return {
        "properties": properties(definition.properties),
        "workflow": workflow(definition.workflow),
        "is_active": definition.is_active,
        **_given(git_info=dict(definition.git_info)),
        **definition.extra,
    }


def properties(value: Properties) -> Json:
    extra = dict(value.extra)
    owner: Any = {"name": value.owner, **extra.pop("owner")} if "owner" in extra else value.owner
    return {
        **_given(owner=owner),
        "run_strategy": {"rule": value.run_strategy.rule, "workflow_concurrency": value.run_strategy.concurrency},
        "step_concurrency": value.step_concurrency,
        **_given(
            alerting=dict(value.alerting),
            time_trigger_disabled=value.is_time_trigger_disabled or None,
            signal_trigger_disabled=value.is_signal_trigger_disabled or None,
            incremental_trigger_disabled=value.is_incremental_trigger_disabled or None,
            description=value.description,
        ),
        **extra,
    }


def workflow(value: Workflow) -> Json:
    return {
        "id": value.id,
        **_given(
            name=value.name,
            description=value.description,
            tags=tags(value.tags),
            timeout=value.timeout,
            time_triggers=[_time_trigger(each) for each in value.time_triggers],
            signal_triggers=[_signal_trigger(each) for each in value.signal_triggers],
            incremental_triggers=[_incremental_trigger(each) for each in value.incremental_triggers],
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
        **_given(name=value.name, description=value.description),
        "transition": {"successors": {to: condition or "true" for to, condition in value.successors.items()}},
        **_given(
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
            own = {"type": value.type, **_given(sub_type=value.sub_type, sub_type_version=value.sub_type_version)}
            return {"step": {**shared, **own, **_given(retry_policy=_retry_policy(value.retry_policy))}}
        case SubworkflowStep():
            return {"subworkflow": {**shared, "sync": value.is_sync, "explicit_params": value.has_explicit_params}}
        case ForeachStep():
            own = {**_given(concurrency=value.concurrency), "strict_ordering": value.has_strict_ordering}
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
        **_given(
            mode=value.mode,
            internal_mode=value.internal_mode,
            source=None if value.source is ParamSource.DEFINITION else value.source,
            tags=tags(value.tags),
            validator=value.validator,
        ),
        **value.meta,
    }


def _given(**values: Any) -> Json:
    """Those that say something."""
    return {name: value for name, value in values.items() if value is not None and value not in ([], {})}


def tags(values: tuple[Tag, ...]) -> list[Any]:
    return [
        {"name": tag.name, **_given(namespace=tag.namespace), **tag.attributes}
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
    return {**limits, **_given(backoff=_backoff(value.backoff))}


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


def _match(value: SignalMatch) -> Json:
    return {"param": param(value.param), "operator": value.operator}


def _dependency(value: SignalDependency) -> Json:
    return {"name": value.name, **_given(match_params={name: _match(each) for name, each in value.match.items()})}


def _output(value: SignalOutput) -> Json:
    return {"name": value.name, **_given(params=params(value.params), payload=dict(value.payload))}


def _time_trigger(value: TimeTrigger) -> Json:
    is_alias = value.cron.startswith("@")
    line = {"type": "PREDEFINED", "expression": value.cron} if is_alias else {"type": "CRON", "cron": value.cron}
    caught_up = {"rule": value.catch_up.rule, "most": value.catch_up.most}
    return {
        **line,
        **_given(
            timezone=value.timezone,
            fuzzy_max_delay=value.fuzzy_max_delay,
            catch_up=None if value.catch_up == CatchUp() else caught_up,
        ),
    }


def _signal_trigger(value: SignalTrigger) -> Json:
    definitions = {
        name: _given(
            match_params={key: _trigger_match(each) for key, each in signal.match.items()},
            join_keys=list(value.join_keys.get(name, ())),
        )
        for name, signal in value.definitions.items()
    }
    return {
        "definitions": definitions,
        **_given(params=params(value.params), condition=value.condition, dedup_expr=value.dedup_expr),
    }


def _incremental_trigger(value: IncrementalTrigger) -> Json:
    return _given(
        tables=list(value.tables),
        when=None if value.when is Quorum.ANY else value.when,
        quiet=value.quiet,
        min_interval=value.min_interval,
        max_wait=value.max_wait,
        min_snapshots=value.min_snapshots,
        min_files=value.min_files,
        min_rows=value.min_rows,
        min_bytes=value.min_bytes,
        branch=value.branch,
    )


def _trigger_match(value: SignalMatch) -> Json:
    """A trigger has no parameters to refer to, so Maestro gives the bare value."""
    if value.param.value is None or value.param != ParamDefinition(value.param.type, value.param.value):
        return _match(value)
    return {"value": value.param.value, "operator": value.operator}
