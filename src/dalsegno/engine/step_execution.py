"""One claim of one step: what every kind of step needs to act and to report. Nothing is kept beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.engine.jobs import Jobs, StopFlags
from dalsegno.engine.ports import EngineHost
from dalsegno.engine.records import Claim, Report, StepUpdate
from dalsegno.engine.scopes import Scopes
from dalsegno.engine.step_signals import announced, wanted_signals
from dalsegno.errors import DalsegnoError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.model.params import Param
from dalsegno.model.retries import Retries
from dalsegno.model.runs import SignalsWanted, StepEnded, Waits
from dalsegno.model.signals import Announcement
from dalsegno.model.workflow import FailureMode
from dalsegno.spec.params.durations import timeout_of
from dalsegno.spec.params.evaluation import Scope
from dalsegno.store import Store, run_queries

#: Stores what a worker knows of its step while it runs, and says whether the step is still its own.
Note = Callable[[Claim, Mapping[str, Any]], bool]


@dataclass(frozen=True)
class WorkerContext:
    """What a worker works with; any number of threads may share it."""

    store: Store
    scopes: Scopes
    jobs: Jobs
    clock: Callable[[], datetime]
    host: EngineHost


@dataclass(frozen=True)
class Memory:
    """What is stored of a step that a worker has had before."""

    params: Mapping[str, Any] | None = None
    handle: Mapping[str, Any] | None = None
    deadline: datetime | None = None


class StepExecution:
    """One claim of one step; each kind of step has its own ``execute``."""

    def __init__(self, context: WorkerContext, claim: Claim, stop_flags: StopFlags, note: Note) -> None:
        self.context = context
        self.claim = claim
        self.run, self.flow, self.state, self.step = claim.run, claim.flow, claim.state, claim.step
        self.stop_flags = stop_flags
        self.note = note
        self.now = context.clock()
        self.retries = Retries()
        #: The signals that its job announces.
        self.emitted_signals: list[Any] = []
        self._scope: Scope | None = None
        self._memory: Memory | None = None

    def execute(self) -> Report:
        raise NotImplementedError

    def look_for_signals(self) -> Report:
        """The step waits for signals before anything else."""
        if self.state.ending is not None:
            return self.ended(Stopped())
        found = wanted_signals(self.context.store, self.claim, self.scope())
        return self.report(SignalsWanted(self.step.id, self.state.fence), wanted_signals=found)

    @property
    def memory(self) -> Memory:
        """What is known of this attempt from an earlier claim."""
        if self._memory is None:
            self._memory = Memory()
            # The first claim of all finds nothing.
            if self.state.fence > 1:
                with self.context.store.database.reading() as connection:
                    row = run_queries.step_row(connection, self.flow.id, self.step.id)
                handle = row and row["handle"]
                if row and handle and handle.get("attempt") == self.state.attempt:
                    self._memory = Memory(row["params"], handle, row["deadline"])
        return self._memory

    def scope(self, *, raw: frozenset[str] = frozenset(), known: Mapping[str, Param] | None = None) -> Scope:
        if self._scope is None or known is not None:
            self._scope = self.context.scopes.of_step(
                self.run, self.flow, self.step, self.state, self.now, raw=raw, known=known
            )
        return self._scope

    def report(self, happening: Any, **update: Any) -> Report:
        return Report(self.run.id, self.flow.id, happening, StepUpdate(**update))

    def deadline(self) -> datetime | None:
        """When a step that goes on without a worker must have ended; None if it says nothing of a timeout."""
        if self.step.timeout is None:
            return None
        return self.now + timeout_of(self.step.timeout, self.scope().text)

    def waits(self, handle: Mapping[str, Any], *, until: datetime | None = None, **update: Any) -> Report:
        held = {**handle, "attempt": self.state.attempt}
        return self.report(Waits(self.step.id, self.state.fence, until), handle=held, **update)

    def ended(self, outcome: Outcome, *, params: Mapping[str, Any] | None = None, **update: Any) -> Report:
        """The end of the attempt; the conditions of what follows are looked at here, and what it announces."""
        taken: tuple[str, ...] = ()
        signals: tuple[Announcement, ...] = ()
        complete = isinstance(outcome, Succeeded) or (
            isinstance(outcome, Failed) and self.step.failure_mode is FailureMode.IGNORE_FAILURE
        )
        try:
            if complete and not (isinstance(outcome, Succeeded) and not outcome.goes_on):
                taken = self._taken()
            if isinstance(outcome, Succeeded) and (self.step.signal_outputs or self.emitted_signals):
                signals = announced(self.claim, self.scope(), self.emitted_signals)
        except DalsegnoError as error:
            outcome, taken = Failed(FailureKind.FATAL, error.message, error.hint), ()
        happening = StepEnded(self.step.id, self.state.fence, outcome, taken, self.retries)
        return self.report(happening, params=params, announced=signals, **update)

    def _taken(self) -> tuple[str, ...]:
        return tuple(
            step_id
            for step_id, condition in self.step.successors.items()
            if condition is None or self.scope().is_true(condition)
        )
