"""Which parameters a step sees: its own, those of the iterations around it, those of the run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.clock import from_millis
from dalsegno.engine.ports import EngineHost
from dalsegno.engine.records import OpenRun
from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamDefinition, ParamDefinitions, Params, ParamSource, ParamType, Value
from dalsegno.model.runs import Flow, StepState
from dalsegno.model.templates import JobTemplate
from dalsegno.model.workflow import JobStep, Step, SubworkflowStep, WhileStep
from dalsegno.plan.restarts import ancestors
from dalsegno.spec.captures import change_tables
from dalsegno.spec.params.context import Context
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.facts import RunFacts, StepFacts
from dalsegno.spec.params.layers import step_definitions, workflow_definitions
from dalsegno.spec.params.literals import as_definition
from dalsegno.spec.params.loops import LOOP_PARAMS
from dalsegno.spec.params.merging import Layer
from dalsegno.spec.params.opening import STARTERS, closed_params, refuse_closed, refuse_new_entries
from dalsegno.spec.params.stored import from_stored
from dalsegno.spec.step_types import block_of
from dalsegno.store import Store, flows, run_queries, runs, signals

#: The parameter that says which version of its job template a step is made from.
TEMPLATE_VERSION = "job_template_version"


def run_facts(row: Mapping[str, Any], owner: str | None) -> RunFacts:
    initiator = row["initiator"]
    return RunFacts(
        workflow_id=row["workflow_id"],
        instance_id=row["number"],
        run_id=row["attempt"],
        planned=from_millis(initiator["planned_ms"]),
        owner=owner or "",
        initiator=initiator["type"],
        runner=initiator.get("by", ""),
        initiator_timezone=initiator.get("timezone", ""),
        trigger_timezone=initiator.get("trigger_timezone", ""),
        run_policy=initiator.get("policy", "START_FRESH_NEW_RUN"),
    )


def run_definitions(workflow: ParamDefinitions, run_params: Mapping[str, Any]) -> ParamDefinitions:
    """The workflow's parameters with those that the run was given."""
    layers: dict[ParamSource, dict[str, Any]] = {}
    for name, given in run_params.items():
        source = ParamSource(given.get("source", ParamSource.LAUNCH.value))
        kind = ParamType(given["type"])
        is_named = "secret" in given
        definition = ParamDefinition(kind, secret=given["secret"]) if is_named else as_definition(given["value"], kind)
        layers.setdefault(source, {})[name] = definition
    return workflow_definitions(workflow, *(_layer(params, source) for source, params in layers.items()))


def _layer(params: ParamDefinitions, source: ParamSource) -> Layer:
    return Layer(params, source, source in _PARENTS, source is ParamSource.RESTART)


#: Marks a parameter that a workflow only hands down: somebody else chose it who started a run, and is not the author.
_FROM_STARTER = "is_from_starter"


def handed_param(definition: ParamDefinition, param: Param, name: str, run_params: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter that a run gives to a subworkflow, as it is stored."""
    # A secret goes by its name.
    content = {"secret": definition.secret} if definition.secret is not None else {"value": param.value}
    given = {"type": param.type.value, **content, "source": ParamSource.SUBWORKFLOW.value}
    return {**given, _FROM_STARTER: True} if is_from_starter(name, param.source, run_params) else given


def is_from_starter(name: str, source: ParamSource, run_params: Mapping[str, Any]) -> bool:
    """Whether whoever started a run has chosen the value, of this run or of one that called it."""
    return source in STARTERS or (
        source is ParamSource.SUBWORKFLOW and is_handed_from_starter(run_params.get(name, {}))
    )


def is_handed_from_starter(given: Mapping[str, Any]) -> bool:
    """Whether a parameter, as ``handed_param`` stores it, is marked so."""
    return bool(given.get(_FROM_STARTER, False))


_PARENTS = frozenset({ParamSource.SUBWORKFLOW, ParamSource.FOREACH, ParamSource.WHILE})


@dataclass(frozen=True)
class Scopes:
    """Makes scopes; each is for one thread and one step."""

    store: Store
    expressions: Expressions
    host: EngineHost

    def of_run(self, run: OpenRun, flow: Flow | None, now: datetime) -> Scope:
        definition = run.blueprint.definition
        if run.definitions is None:
            run.definitions = run_definitions(definition.workflow.params, run.row["run_params"])
        facts = run_facts(run.row, definition.properties.owner)
        context = Context(facts, now, self.expressions.metered(), self.lookup(run, flow, now), self.host.secret)
        return Scope(run.definitions, context, from_stored(run.row["params"]))

    def lookup(self, run: OpenRun, flow: Flow | None, now: datetime) -> StoreLookup:
        return StoreLookup(self, run, flow, now)

    def around(self, run: OpenRun, flow: Flow, now: datetime) -> Scope:
        """What all steps of a flow see."""
        scope = self.of_run(run, flow, now)
        for of_loop, of_iteration in reversed(self._levels(run, flow)):
            known = {name: param for name, param in of_loop.items() if name != LOOP_PARAMS} | dict(of_iteration)
            scope = Scope({}, scope.context, known, scope)
        return scope

    def _levels(self, run: OpenRun, flow: Flow) -> list[tuple[Params, Params]]:
        """The parameters of the loop and of the iteration, from the innermost to the outermost."""
        levels = []
        flow_id, parent = flow.id, flow.parent
        while parent is not None:
            above, step_id, _ = parent
            of_loop, of_iteration = run.loops.get((above, step_id)), run.iterations.get(flow_id)
            if of_loop is None or of_iteration is None:
                with self.store.database.reading() as connection:
                    loop, row = run_queries.step_row(connection, above, step_id), flows.flow_row(connection, flow_id)
                of_loop = run.loops[above, step_id] = from_stored((loop and loop["params"]) or {})
                of_iteration = run.iterations[flow_id] = from_stored((row and row["params"]) or {})
            levels.append((of_loop, of_iteration))
            flow_id, parent = above, self._parent(run, above)
        return levels

    def _parent(self, run: OpenRun, flow_id: str) -> tuple[str, str, int] | None:
        if flow_id == run.id:
            return None
        known = run.flows.get(flow_id)
        if known is not None:
            return known.parent
        with self.store.database.reading() as connection:
            row = flows.flow_row(connection, flow_id)
        return (row["parent_flow"], row["parent_step"], row["iteration"]) if row and row["parent_flow"] else None

    def of_step(
        self,
        run: OpenRun,
        flow: Flow,
        step: Step,
        state: StepState,
        now: datetime,
        *,
        raw: frozenset[str] = frozenset(),
        known: Mapping[str, Param] | None = None,
    ) -> Scope:
        around = self.around(run, flow, now)
        definitions = self.definitions_of(run.row["run_params"], step, around, around.known)
        facts = StepFacts(
            step.id,
            kind_of(step),
            uuid=hashlib.sha256(f"{flow.id}/{step.id}".encode()).hexdigest()[:32],
            attempt_id=state.attempt,
            error_retries=state.tried.user,
            ancestors=frozenset(self._before(run, flow, step.id)),
        )
        return Scope(definitions, around.context, known or {}, around, facts, raw)

    def check_given(self, run: OpenRun, around: Scope, params: Params) -> None:
        """``ParamError`` if the run gives a step what it cannot be given; better now than when the step begins."""
        for step in run.blueprint.steps.values():
            is_template = isinstance(step, JobStep) and step.sub_type is not None
            if step.id in run.row["run_params"] or (is_template and params.keys() & closed_params(kind_of(step))):
                self.definitions_of(run.row["run_params"], step, around, params)

    def definitions_of(
        self, run_params: Mapping[str, Any], step: Step, around: Scope, known: Params
    ) -> ParamDefinitions:
        """The step's parameters with those that the run gives to it; ``known`` are those of the run."""
        given = run_params.get(step.id)
        of_run = []
        if given and given["type"] == ParamType.MAP.value:
            of_step = {name: as_definition(value) for name, value in given["value"].items()}
            of_run = [_layer(of_step, ParamSource(given.get("source", ParamSource.LAUNCH.value)))]
        made_from = self.template_of(step, around)
        template = made_from.params if made_from else {}
        if not (step.params or of_run or template):
            return {}
        written, closed = (step.params, template), closed_params(kind_of(step))
        if given and of_run and is_from_starter(step.id, of_run[0].source, run_params):
            refuse_closed(of_run[0].params, closed, written, step.id, of_run[0].source)
            refuse_new_entries(of_run[0].params, LOOP_PARAMS, written, step.id, of_run[0].source)
        for name in closed & known.keys() & template.keys():
            # It would flow into the template.
            flowing = known[name]
            if is_from_starter(name, flowing.source, run_params):
                definition = as_definition(flowing.value, flowing.type)
                refuse_closed({name: definition}, closed, written, step.id, flowing.source)
        return _block_last(step, step_definitions(step.params, *of_run, template=template, workflow=known))

    def template_of(self, step: Step, around: Scope) -> JobTemplate | None:
        """The job template that a step is made from."""
        if not isinstance(step, JobStep) or step.sub_type is None:
            return None
        said = around.find(TEMPLATE_VERSION)
        return self.host.template(step.sub_type, step.sub_type_version or (said and str(said.value)) or None)

    @staticmethod
    def _before(run: OpenRun, flow: Flow, step_id: str) -> set[str]:
        """The steps whose parameters a step may use: those before it, and those before the loops around it."""
        key = (flow.parent[1] if flow.parent else None, step_id)
        if key not in run.blueprint.ancestors:
            found = ancestors(flow.graph, step_id)
            loop = flow.parent[1] if flow.parent else None
            while loop is not None:
                outer = run.blueprint.loop_of.get(loop)
                graph = run.blueprint.graph(outer)
                found |= ancestors(graph, loop)
                loop = outer
            run.blueprint.ancestors[key] = found
        return run.blueprint.ancestors[key]


def _block_last(step: Step, definitions: ParamDefinitions) -> ParamDefinitions:
    """What the step's type is told comes last: it means the step's own parameters, whatever is called so around it."""
    block = block_of(kind_of(step))
    if block is None or block not in definitions:
        return definitions
    return {name: each for name, each in definitions.items() if name != block} | {block: definitions[block]}


def kind_of(step: Step) -> str:
    match step:
        case JobStep():
            return step.type
        case SubworkflowStep():
            return "subworkflow"
        case WhileStep():
            return "while"
        case _:
            return "foreach"


@dataclass(frozen=True)
class StoreLookup:
    """What other steps left behind, read when somebody asks."""

    scopes: Scopes
    run: OpenRun
    flow: Flow | None
    now: datetime

    def step_param(self, step_id: str, name: str) -> Param | None:
        row = self._row(step_id)
        if row is None or name not in (row["params"] or {}):
            return None
        stored = row["params"][name]
        if stored.get("is_secret"):
            return self._made_anew(row, step_id, name)
        return from_stored({name: stored})[name]

    def _made_anew(self, row: Mapping[str, Any], step_id: str, name: str) -> Param | None:
        flow = Flow(row["flow_id"], self.run.id, self.run.blueprint.graph(self._loop_of(row["flow_id"])))
        step = self.run.blueprint.steps[step_id]
        return self.scopes.of_step(self.run, flow, step, flows.state_of(row), self.now).own(name)

    def step_status(self, step_id: str) -> str | None:
        row = self._row(step_id)
        return row["status"] if row else None

    def step_end_time(self, step_id: str) -> int | None:
        row = self._row(step_id)
        return int(row["ended_at"].timestamp() * 1000) if row and row["ended_at"] else None

    def foreach_params(self, foreach_id: str, step_id: str, name: str) -> Sequence[Param | None]:
        loop = self._row(foreach_id)
        if loop is None:
            return ()
        with self.scopes.store.database.reading() as connection:
            rows = flows.iteration_steps(connection, loop["flow_id"], foreach_id, step_id)
        total = (loop["loop"] or {}).get("total") or len(rows)
        found: list[Param | None] = [None] * total
        for index, params in rows:
            found[index] = from_stored(params or {}).get(name)
        return found

    def subworkflow_param(self, subworkflow_id: str, step_id: str, name: str) -> Param | None:
        row = self._row(subworkflow_id)
        child = ((row and row["handle"]) or {}).get("child")
        if child is None:
            return None
        with self.scopes.store.database.reading() as connection:
            found = run_queries.step_row(connection, child, step_id)
        return from_stored((found and found["params"]) or {}).get(name)

    def trigger_param(self, name: str) -> Value | None:
        return (self.run.row["initiator"].get("params") or {}).get(name)

    def signal_param(self, signal: str, name: str) -> Value | None:
        return ((self.run.row["initiator"].get("signals") or {}).get(signal) or {}).get(name)

    def dependency_param(self, step_id: str, index: int, name: str) -> Value | None:
        flow_id = self.flow.id if self.flow else self.run.id
        with self.scopes.store.database.reading() as connection:
            return signals.params_of_wait(connection, flow_id, step_id, index).get(name)

    def change_tables(self, step_ids: Collection[str]) -> Sequence[tuple[str, str | None]]:
        found: list[tuple[str, str | None]] = []
        for step in self.run.blueprint.steps.values():
            if step.id in step_ids and step.id in self.run.blueprint.captures:
                found += change_tables(step, {name: param.value for name, param in self.step_params(step.id).items()})
        return found

    def step_params(self, step_id: str) -> Params:
        """What is known of a step by now."""
        row = self._row(step_id)
        return from_stored((row and row["params"]) or {})

    def next_unique_id(self) -> int:
        with self.scopes.store.database.writing() as connection:
            found = runs.next_unique_id(connection, self.run.id)
        if found is None:
            raise ParamError("Unique ids are only available in step parameters.")
        return found

    def _row(self, step_id: str) -> Mapping[str, Any] | None:
        """The step of this id in the flow, or in one around it."""
        flow_id = self.flow.id if self.flow else self.run.id
        with self.scopes.store.database.reading() as connection:
            while True:
                row = run_queries.step_row(connection, flow_id, step_id)
                if row is not None or flow_id == self.run.id:
                    return row
                above = flows.flow_row(connection, flow_id)
                if above is None or not above["parent_flow"]:
                    return None
                flow_id = above["parent_flow"]

    def _loop_of(self, flow_id: str) -> str | None:
        return None if flow_id == self.run.id else flow_id.rsplit("/", 2)[1]
