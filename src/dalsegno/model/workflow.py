"""What a workflow is: steps, how they follow each other, and when a run begins.

Texts that may name parameters (timeouts, numbers of retries) stay texts here: a run turns them into numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from dalsegno.model.params import ParamDefinition, ParamDefinitions, Tag


class FailureMode(StrEnum):
    """What the failure of a step means for the others."""

    #: Running steps are stopped.
    FAIL_IMMEDIATELY = "FAIL_IMMEDIATELY"
    #: Running steps may end, no other begins.
    FAIL_AFTER_RUNNING = "FAIL_AFTER_RUNNING"
    #: The run goes on as if the step had succeeded.
    IGNORE_FAILURE = "IGNORE_FAILURE"


class Criticality(StrEnum):
    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class RunRule(StrEnum):
    """How runs of one workflow get along with each other."""

    #: One at a time, the oldest first.
    SEQUENTIAL = "SEQUENTIAL"
    #: The same, but a failed run blocks those behind it until it is restarted or unblocked.
    STRICT_SEQUENTIAL = "STRICT_SEQUENTIAL"
    #: A new run stops itself if one is going on.
    FIRST_ONLY = "FIRST_ONLY"
    #: A new run stops the one that is going on.
    LAST_ONLY = "LAST_ONLY"
    PARALLEL = "PARALLEL"
    #: One runs, at most one waits; a newer one takes the place of the one that waits.
    SERIAL_LATEST_ONLY = "SERIAL_LATEST_ONLY"


@dataclass(frozen=True)
class RunStrategy:
    rule: RunRule = RunRule.SEQUENTIAL
    #: How many runs at once; only PARALLEL has more than one.
    concurrency: int = 1


#: Maestro's.
DEFAULT_STEP_CONCURRENCY = 20


@dataclass(frozen=True)
class Properties:
    """What holds for all versions of a workflow."""

    owner: str | None = None
    run_strategy: RunStrategy = RunStrategy()
    #: How many steps of all runs of the workflow at once.
    step_concurrency: int = DEFAULT_STEP_CONCURRENCY
    description: str | None = None
    alerting: Mapping[str, Any] = field(default_factory=dict)
    #: Kinds of triggers that start no runs.
    disabled_triggers: frozenset[str] = frozenset()
    #: Whatever else was written, kept.
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Backoff:
    """How long to wait before trying again, by the class of the error: ``min(base * exponent ** n, limit)``.

    Each is a number of seconds, or a text that becomes one: a duration, or a reference to a parameter.
    """

    error_base: str | int = 60
    error_exponent: str | int = 2
    error_limit: str | int = 600
    platform_base: str | int = 60
    platform_exponent: str | int = 2
    platform_limit: str | int = 3600
    timeout_base: str | int = 60
    timeout_exponent: str | int = 2
    timeout_limit: str | int = 3600


@dataclass(frozen=True)
class RetryPolicy:
    """How often to try again, by the class of the error."""

    error_limit: str | int = 2
    platform_limit: str | int = 10
    timeout_limit: str | int = 0
    #: A fixed back-off has exponents of 1.
    backoff: Backoff = Backoff()


class Operator(StrEnum):
    EQUAL = "="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="


@dataclass(frozen=True)
class SignalMatch:
    """What a parameter of a signal must be."""

    param: ParamDefinition
    operator: Operator = Operator.EQUAL


@dataclass(frozen=True)
class SignalDependency:
    """A step waits until this signal is there."""

    name: str
    match: Mapping[str, SignalMatch] = field(default_factory=dict)


@dataclass(frozen=True)
class SignalOutput:
    """A step announces this when it has succeeded."""

    name: str
    params: ParamDefinitions = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trigger:
    """What starts runs by itself. Each kind has a class of its own; ``dalsegno.triggers`` lists the kinds."""

    kind: ClassVar[str]


AnyTrigger = TypeVar("AnyTrigger", bound=Trigger)


@dataclass(frozen=True, kw_only=True)
class StepDefinition:
    """What all kinds of steps have."""

    id: str
    name: str | None = None
    description: str | None = None
    #: Which steps follow, and under which condition (SEL); None: under any.
    successors: Mapping[str, str | None] = field(default_factory=dict)
    failure_mode: FailureMode = FailureMode.FAIL_AFTER_RUNNING
    tags: tuple[Tag, ...] = ()
    #: A duration, or a reference to a parameter.
    timeout: str | None = None
    signal_dependencies: tuple[SignalDependency, ...] = ()
    signal_outputs: tuple[SignalOutput, ...] = ()
    params: ParamDefinitions = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobStep(StepDefinition):
    """A step that does something by itself."""

    #: The name of a step type, as it is registered; which case it was written in does not matter.
    type: str
    #: The job template that it is made from.
    sub_type: str | None = None
    sub_type_version: str | None = None
    retry_policy: RetryPolicy = RetryPolicy()


@dataclass(frozen=True, kw_only=True)
class SubworkflowStep(StepDefinition):
    """Runs another workflow; which one, its parameters ``subworkflow_id`` and ``subworkflow_version`` say."""

    is_sync: bool = True
    #: Hand over only the parameters that the step itself names.
    has_explicit_params: bool = False


@dataclass(frozen=True, kw_only=True)
class ForeachStep(StepDefinition):
    """Runs its steps once for each combination of its ``loop_params``, the first of which changes fastest."""

    steps: tuple[Step, ...]
    concurrency: int | None = None
    has_strict_ordering: bool = False


@dataclass(frozen=True, kw_only=True)
class WhileStep(StepDefinition):
    """Runs its steps one time after another, as long as the condition holds."""

    steps: tuple[Step, ...]
    #: SEL over the ``loop_params``.
    condition: str


Step = JobStep | SubworkflowStep | ForeachStep | WhileStep


@dataclass(frozen=True)
class Workflow:
    """One version of a workflow; it never changes."""

    id: str
    steps: tuple[Step, ...]
    name: str | None = None
    description: str | None = None
    tags: tuple[Tag, ...] = ()
    timeout: str | None = None
    criticality: Criticality | None = None
    #: How many steps of one run at once; None: as many as the properties allow.
    instance_step_concurrency: int | None = None
    params: ParamDefinitions = field(default_factory=dict)
    #: By kind, in the order of the kinds.
    triggers: tuple[Trigger, ...] = ()
    #: What targets should hold, for audits: a table's name → a SELECT over the sources.
    oracle: Mapping[str, str] = field(default_factory=dict)

    def all_steps(self) -> Iterator[Step]:
        """Every step, those inside of loops included."""
        yield from _with_inner(self.steps)

    def triggers_of(self, kind: type[AnyTrigger]) -> tuple[AnyTrigger, ...]:
        return tuple(trigger for trigger in self.triggers if isinstance(trigger, kind))


@dataclass(frozen=True)
class Definition:
    """What is pushed: a workflow and its properties."""

    workflow: Workflow
    properties: Properties = Properties()
    is_active: bool = True
    git_info: Mapping[str, Any] = field(default_factory=dict)
    #: Whatever else was written, kept.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def enabled_triggers(self, kind: str) -> list[Trigger]:
        """Those that start runs while the version is active."""
        is_disabled = kind in self.properties.disabled_triggers
        return [] if is_disabled else [trigger for trigger in self.workflow.triggers if trigger.kind == kind]


def _with_inner(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, ForeachStep | WhileStep):
            yield from _with_inner(step.steps)
