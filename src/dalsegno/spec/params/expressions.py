"""What parameters need of a language for expressions, and what such expressions may ask: ``params.getFrom…``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, Value
from dalsegno.spec.params.facts import Lookup, RunFacts, StepFacts
from dalsegno.spec.params.names import not_before

#: How an expression reaches its functions: ``params.name(arguments)``.
Call = Callable[[str, Sequence[Any]], Value]


class Expressions(Protocol):
    """A language for expressions."""

    def names_of(self, expression: str) -> Collection[str]:
        """The names that it uses and does not define itself."""

    def evaluate(self, expression: str, params: Mapping[str, Param], *, now: datetime, call: Call) -> Any:
        """Its value, as plain data; ``SelError`` if there is none."""

    def metered(self) -> Expressions:
        """The same language, with a budget that all evaluations share from now on."""


@dataclass(frozen=True)
class Functions:
    """The functions of ``params``, Maestro's; ``call`` is the way in."""

    run: RunFacts
    step: StepFacts | None
    lookup: Lookup
    #: A parameter of the step itself.
    own: Callable[[str], Param | None]
    #: Told of every secret that is handed out, before it is.
    note: Callable[[Param], None]

    def call(self, name: str, arguments: Sequence[Any]) -> Value:
        function = FUNCTIONS.get((name, len(arguments)))
        if function is None:
            known = sorted({f"params.{known}" for known, _ in FUNCTIONS})
            raise ParamError(
                f"params.{name} with {len(arguments)} arguments is not a function.",
                hint=f"There are: {', '.join(known)}.",
            )
        found = function(self, *(str(argument) for argument in arguments))
        if not isinstance(found, Param):
            return found
        if found.is_secret:
            self.note(found)
        return found.value

    def _of_instance(self, field_name: str) -> Value:
        run = self.run
        facts: dict[str, Value] = {
            "INITIATOR_TYPE": run.initiator,
            "INITIATOR_TIMEZONE": run.initiator_timezone,
            "INITIATOR_RUNNER_NAME": run.runner,
            "RUN_POLICY": run.run_policy,
            "FIRST_TIME_TRIGGER_TIMEZONE": run.trigger_timezone,
            "owner": run.owner,
            "workflow_id": run.workflow_id,
            "workflow_instance_id": run.instance_id,
            "workflow_run_id": run.run_id,
        }
        return _one_of(facts, field_name, "getFromInstance")

    def _of_this_step(self, field_name: str) -> Value:
        step = self.step
        if step is None:
            raise ParamError(f"params.getFromStep('{field_name}') is about the current step, and here is none.")
        facts: dict[str, Value] = {
            "step_id": step.id,
            "step_instance_id": step.instance_id,
            "step_instance_uuid": step.uuid,
            "step_attempt_id": step.attempt_id,
            "step_type_info": step.type,
            "MAESTRO_STEP_ERROR_RETRIES": step.error_retries,
        }
        return _one_of(facts, field_name, "getFromStep")

    def _of_step(self, step_id: str, name: str) -> Param | Value:
        is_own = self.step is not None and self.step.id == step_id
        if not is_own:
            self._must_be_before(step_id)
        found: Param | Value | None
        if name == "MAESTRO_STEP_STATUS":
            found = self.lookup.step_status(step_id)
        elif name == "MAESTRO_STEP_END_TIME":
            found = self.lookup.step_end_time(step_id)
        else:
            found = self.own(name) if is_own else self.lookup.step_param(step_id, name)
        if found is None:
            raise _absent(f"step '{step_id}' has no parameter '{name}'")
        return found

    def _of_foreach(self, foreach_id: str, step_id: str, name: str) -> Value:
        self._must_be_before(foreach_id)
        found = self.lookup.foreach_params(foreach_id, step_id, name)
        values = []
        for iteration, param in enumerate(found):
            if param is None:
                raise _absent(f"iteration {iteration} of '{foreach_id}' has no '{name}' of step '{step_id}'")
            if param.is_secret:
                self.note(param)
            values.append(param.value)
        return values

    def _of_subworkflow(self, subworkflow_id: str, step_id: str, name: str) -> Param:
        self._must_be_before(subworkflow_id)
        found = self.lookup.subworkflow_param(subworkflow_id, step_id, name)
        if found is None:
            raise _absent(f"the run of '{subworkflow_id}' has no parameter '{name}' of step '{step_id}'")
        return found

    def _of_trigger(self, name: str) -> Value:
        found = self.lookup.trigger_param(name)
        if found is None:
            raise _absent(f"the trigger of this run has no parameter '{name}'")
        return found

    def _of_signal(self, signal: str, name: str) -> Value:
        found = self.lookup.signal_param(signal, name)
        if found is None:
            raise _absent(f"no signal '{signal}' with a parameter '{name}' began this run")
        return found

    def _of_signal_or(self, signal: str, name: str, otherwise: str) -> Value:
        found = self.lookup.signal_param(signal, name)
        return otherwise if found is None else found

    def _of_dependency(self, index: str, name: str) -> Value:
        found = None
        if self.step is not None and index.isdecimal():
            found = self.lookup.dependency_param(self.step.id, int(index), name)
        if found is None:
            raise _absent(f"signal dependency {index} of this step has no parameter '{name}'")
        return found

    def _must_be_before(self, step_id: str) -> None:
        before = self.step.ancestors if self.step else frozenset()
        if step_id not in before:
            raise ParamError(not_before(step_id, before))


FUNCTIONS: Mapping[tuple[str, int], Callable[..., Param | Value]] = {
    ("getFromInstance", 1): Functions._of_instance,
    ("getFromStep", 1): Functions._of_this_step,
    ("getFromStep", 2): Functions._of_step,
    ("getFromForeach", 3): Functions._of_foreach,
    ("getFromSubworkflow", 3): Functions._of_subworkflow,
    ("getFromSignal", 1): Functions._of_trigger,
    ("getFromSignal", 2): Functions._of_signal,
    ("getFromSignalOrDefault", 3): Functions._of_signal_or,
    ("getFromSignalDependency", 2): Functions._of_dependency,
    ("nextUniqueId", 0): lambda functions: functions.lookup.next_unique_id(),
    ("getExecutionEnvironment", 0): lambda functions: functions.run.environment,
}


def _one_of(facts: Mapping[str, Value], name: str, function: str) -> Value:
    if name not in facts:
        raise ParamError(f"params.{function}('{name}') is not known.", hint=f"There are: {', '.join(facts)}.")
    return facts[name]


def _absent(problem: str) -> ParamError:
    return ParamError(f"Expected a value, but {problem}.")
