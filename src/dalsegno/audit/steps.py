"""The SQL of a workflow's steps as one of its runs would execute it, if all of the sources came with one capture.

Parameters are evaluated as the engine does it, with the run's own values; only what the capture steps hand on is
replaced. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.pushed_files import pushed_files
from dalsegno.engine.records import OpenRun
from dalsegno.engine.scopes import Scopes, StoreLookup, kind_of
from dalsegno.engine.starting import evaluated
from dalsegno.errors import DalsegnoError, ParamError
from dalsegno.model.params import Param, Params
from dalsegno.model.runs import Flow, Graph, StepState
from dalsegno.model.workflow import Step
from dalsegno.settings import Settings
from dalsegno.spec.captures import is_capture
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.outputs import apply_outputs
from dalsegno.spec.params.stored import from_stored
from dalsegno.spec.step_types import step_type
from dalsegno.steps.contract import FilledText, Work
from dalsegno.steps.spark.params import SparkStep, Sql, spark_step
from dalsegno.store import run_queries


@dataclass(frozen=True)
class SqlOfStep:
    step_id: str
    statements: tuple[str, ...]
    conf: Mapping[str, str]
    #: What must not be shown.
    secrets: tuple[str, ...]


@dataclass
class Rehearsal:
    """One run of a version of a workflow, step by step, without the run."""

    scopes: Scopes
    settings: Settings
    blueprint: Blueprint
    run: Mapping[str, Any]
    #: What capture steps hand on, by step.
    captured: Mapping[str, Mapping[str, Any]]
    #: Steps that are left out, and why.
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._now: datetime = self.run["started_at"] or self.run["created_at"]
        self._instead: dict[str, Mapping[str, Param]] = {}
        self._scopes = _RehearsedScopes(self.scopes.store, self.scopes.expressions, self.scopes.host, self._instead)
        row = dict(self.run)
        if row["version"] != self.blueprint.version:
            # What another version made of its parameters is not what this one makes of them.
            row = evaluated(self._scopes, self.blueprint, {**row, "params": {}}, self._now)
        self._open = OpenRun(row, self.blueprint, 0, frozenset())
        self._flow = Flow(self._open.id, self._open.id, self.blueprint.root)
        for step_id, outputs in self.captured.items():
            self.hand_on(step_id, outputs)

    def sql(self) -> Iterator[SqlOfStep]:
        """The SQL of the steps that would be run, in order; whoever executes it tells by ``hand_on`` what it gave."""
        reached: set[str] = set()
        for step in _in_order(self.blueprint.root):
            before = self.blueprint.root.before[step.id]
            if before and not any(step.id in self._taken(each) for each in before if each in reached):
                continue
            reached.add(step.id)
            if (found := self._sql_of(step)) is not None:
                yield found

    def likely_sql(self) -> Iterator[SqlOfStep]:
        """The same without what only an execution can tell: with the outputs that steps had in the run."""
        for step in _in_order(self.blueprint.root):
            try:
                found = self._sql_of(step)
            except ParamError:
                # The run did not come to it.
                continue
            if found is not None:
                yield found

    def filled(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A text with the run's parameters, and the secrets that are in it."""
        scope = self._scopes.of_run(self._open, self._flow, self._now)
        return scope.text(text), tuple(scope.secrets())

    def hand_on(self, step_id: str, outputs: Mapping[str, Any]) -> None:
        """Let later steps see these values of a step."""
        scope = self._scopes.of_run(self._open, self._flow, self._now)
        known = self._stored(step_id)
        self._instead[step_id] = {**known, **apply_outputs({}, outputs, scope.context)}

    def _sql_of(self, step: Step) -> SqlOfStep | None:
        kind = kind_of(step)
        known = step_type(kind)
        if known is not None and not known.writes:
            return None
        if kind.lower() != "spark":
            self.left_out[step.id] = kind
            return None
        found, secrets = self._spark(step)
        if not isinstance(found.job, Sql):
            self.left_out[step.id] = f"{kind}, {type(found.job).__name__.lower()}"
            return None
        return SqlOfStep(step.id, found.job.statements, found.conf, (*secrets, *found.secrets))

    def _spark(self, step: Step) -> tuple[SparkStep, tuple[str, ...]]:
        """What the step asks for, and the secrets in its parameters."""
        work = self.work(step)
        return spark_step(work), work.secrets

    def work(self, step: Step) -> Work:
        """What a runner would be given."""
        scope = self._scope(step, {})
        values = scope.evaluate()
        return Work(
            workflow_id=self._open.workflow_id,
            run_number=self.run["number"],
            step_id=step.id,
            attempt=1,
            key="audit",
            params={name: param.value for name, param in values.params.items()},
            folder=self.settings.root,
            settings=self.settings,
            filled=lambda text: FilledText(scope.text(text), tuple(scope.secrets())),
            pushed_file=pushed_files(self._scopes, self._open, self._flow, step, self._now),
            secrets=values.secrets,
        )

    def _scope(self, step: Step, known: Mapping[str, Param]) -> Scope:
        return self._scopes.of_step(self._open, self._flow, step, StepState(step.id), self._now, known=known)

    def _taken(self, step_id: str) -> set[str]:
        """The successors whose condition holds."""
        step = self.blueprint.root.steps[step_id]
        scope = self._scope(step, self._instead.get(step_id) or self._stored(step_id))
        taken = set()
        for successor, condition in step.successors.items():
            try:
                is_taken = condition is None or scope.is_true(condition)
            except DalsegnoError:
                # It needs what only an execution of the step would tell.
                is_taken = False
            if is_taken:
                taken.add(successor)
        return taken

    def _stored(self, step_id: str) -> Mapping[str, Param]:
        with self.scopes.store.database.reading() as connection:
            row = run_queries.step_row(connection, self._open.id, step_id)
        return from_stored((row and row["params"]) or {})


def _in_order(graph: Graph) -> list[Step]:
    """Each step behind those before it."""
    found: dict[str, Step] = {}
    while len(found) < len(graph.steps):
        found |= {
            step_id: step
            for step_id, step in graph.steps.items()
            if step_id not in found and all(each in found for each in graph.before[step_id])
        }
    return list(found.values())


def capture_steps(blueprint: Blueprint) -> list[str]:
    """The steps outside of loops that capture."""
    return [step.id for step in _in_order(blueprint.root) if is_capture(step)]


@dataclass(frozen=True)
class _RehearsedScopes(Scopes):
    instead: Mapping[str, Mapping[str, Param]]

    def lookup(self, run: OpenRun, flow: Flow | None, now: datetime) -> StoreLookup:
        return _RehearsedLookup(self, run, flow, now, self.instead)


@dataclass(frozen=True)
class _RehearsedLookup(StoreLookup):
    instead: Mapping[str, Mapping[str, Param]]

    def step_param(self, step_id: str, name: str) -> Param | None:
        if step_id in self.instead:
            return self.instead[step_id].get(name)
        return super().step_param(step_id, name)

    def step_params(self, step_id: str) -> Params:
        return self.instead[step_id] if step_id in self.instead else super().step_params(step_id)

    def next_unique_id(self) -> int:
        """Counting is storing; ids that are never used twice cannot be compared anyway."""
        return 0
