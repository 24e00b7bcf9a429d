"""The turns of loops: begin, let iterations follow each other, end as the worst of them did."""

from __future__ import annotations

from dalsegno.engine.records import Report
from dalsegno.engine.step_execution import StepExecution
from dalsegno.model.outcomes import Failed, FailureKind, Stopped, Succeeded
from dalsegno.model.params import Param
from dalsegno.model.runs import LoopBegan, LoopGoesOn, RunStatus
from dalsegno.model.workflow import ForeachStep, WhileStep
from dalsegno.spec.params.loops import (
    LOOP_PARAMS,
    MOST_ITERATIONS,
    first_loop_params,
    iteration_count,
    next_loop_params,
)
from dalsegno.spec.params.stored import from_stored, to_stored
from dalsegno.store import flows, run_queries

#: Of a foreach that names none.
DEFAULT_CONCURRENCY = 100


class LoopExecution(StepExecution):
    def _finish_loop(self, worst: RunStatus | None) -> Report:
        match worst:
            case None:
                return self.ended(Succeeded())
            case RunStatus.STOPPED:
                return self.ended(Stopped("an iteration was stopped"))
            case _:
                message = f"An iteration ended as {worst}."
                kind = FailureKind.TIMEOUT if worst is RunStatus.TIMED_OUT else FailureKind.FATAL
                return self.ended(Failed(kind, message))


class ForeachExecution(LoopExecution):
    step: ForeachStep

    def execute(self) -> Report:
        loop = self.state.loop
        if loop is not None and loop.next >= (loop.total or 0) and not loop.again and not loop.open:
            return self._finish_loop(loop.worst)
        if loop is not None and loop.worst is not None:
            return self._finish_loop(loop.worst)
        found = self.scope().evaluate()
        total = iteration_count(found.params[LOOP_PARAMS])
        concurrency = self.step.concurrency or DEFAULT_CONCURRENCY
        stored = to_stored(found.params)
        if total == 0:
            return self.ended(Succeeded(), params=stored)
        began = LoopBegan(self.step.id, self.state.fence, total, concurrency)
        return self.report(began, params=stored, deadline=self.deadline())


class WhileExecution(LoopExecution):
    step: WhileStep

    def execute(self) -> Report:
        loop = self.state.loop
        if loop is not None and loop.worst is not None:
            return self._finish_loop(loop.worst)
        if loop is not None and loop.again:
            return self.report(LoopGoesOn(self.step.id, self.state.fence))
        if loop is None:
            found = self.scope().evaluate()
            params, stored = first_loop_params(found.params[LOOP_PARAMS]), to_stored(found.params)
        else:
            params, stored = self._next_loop_params(f"{self.flow.id}/{self.step.id}/{loop.next - 1}"), None
        if not self.scope(known=params).is_true(self.step.condition):
            return self.ended(Succeeded(), params=stored)
        if loop is not None and loop.next >= MOST_ITERATIONS:
            return self.ended(
                Failed(FailureKind.FATAL, f"It has gone round {MOST_ITERATIONS:,} times, the most it may.")
            )
        update = {"params": stored, "iteration_params": to_stored(params)}
        if loop is None:
            return self.report(LoopBegan(self.step.id, self.state.fence, None, 1), deadline=self.deadline(), **update)
        return self.report(LoopGoesOn(self.step.id, self.state.fence), **update)

    def _next_loop_params(self, iteration: str) -> dict[str, Param]:
        with self.context.store.database.reading() as connection:
            row = flows.flow_row(connection, iteration)
            inner = [from_stored(each["params"] or {}) for each in run_queries.steps_of_flow(connection, iteration)]
        return next_loop_params(from_stored((row and row["params"]) or {}), inner)
