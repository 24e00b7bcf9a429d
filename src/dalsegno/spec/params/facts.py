"""What an evaluation may ask about the world around it; the engine answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dalsegno.model.params import Param, Value


@dataclass(frozen=True)
class RunFacts:
    """About the run."""

    workflow_id: str
    #: The number of the run, and how often it was restarted.
    instance_id: int
    run_id: int
    #: When the run was due; if nothing was, when it began.
    planned: datetime
    owner: str = ""
    #: Such as MANUAL, TIME, SIGNAL, SUBWORKFLOW, FOREACH.
    initiator: str = "MANUAL"
    #: Who began a manual run.
    runner: str = ""
    #: Of the time trigger that began the run.
    initiator_timezone: str = ""
    #: Of the workflow's first time trigger.
    trigger_timezone: str = ""
    #: Such as START_FRESH_NEW_RUN or RESTART_FROM_INCOMPLETE.
    run_policy: str = "START_FRESH_NEW_RUN"
    environment: str = ""


@dataclass(frozen=True)
class StepFacts:
    """About the step whose parameters are evaluated."""

    id: str
    type: str = "NoOp"
    instance_id: int = 1
    uuid: str = ""
    attempt_id: int = 1
    error_retries: int = 0
    #: The steps that came before, whose parameters it may use.
    ancestors: frozenset[str] = frozenset()


class Lookup(Protocol):
    """What others left behind. Each is asked only for what an expression or a text really names.

    None means that it is not there. A secret parameter comes with its value, made anew.
    """

    def step_param(self, step_id: str, name: str) -> Param | None: ...

    def step_status(self, step_id: str) -> str | None: ...

    def step_end_time(self, step_id: str) -> int | None:
        """Milliseconds since 1970."""

    def foreach_params(self, foreach_id: str, step_id: str, name: str) -> Sequence[Param | None]:
        """One for each iteration, in their order; None where it has no value yet."""

    def subworkflow_param(self, subworkflow_id: str, step_id: str, name: str) -> Param | None: ...

    def trigger_param(self, name: str) -> Value | None:
        """A parameter of the signal trigger that began the run."""

    def signal_param(self, signal: str, name: str) -> Value | None:
        """A parameter of one of the signals that began the run."""

    def dependency_param(self, step_id: str, index: int, name: str) -> Value | None:
        """A parameter of a signal that a step waited for; the first has the index 0."""

    def change_tables(self, step_ids: Collection[str]) -> Sequence[tuple[str, str | None]]:
        """What these steps captured, in the order of the workflow: the last word of a source's name, its change table.

        The second is None where the step has not run, and empty where it found nothing new.
        """

    def next_unique_id(self) -> int: ...


class NothingThere:
    """A ``Lookup`` for where there is nothing to look up, such as a check of a definition."""

    def step_param(self, step_id: str, name: str) -> Param | None:
        return None

    def step_status(self, step_id: str) -> str | None:
        return None

    def step_end_time(self, step_id: str) -> int | None:
        return None

    def foreach_params(self, foreach_id: str, step_id: str, name: str) -> Sequence[Param | None]:
        return ()

    def subworkflow_param(self, subworkflow_id: str, step_id: str, name: str) -> Param | None:
        return None

    def trigger_param(self, name: str) -> Value | None:
        return None

    def signal_param(self, signal: str, name: str) -> Value | None:
        return None

    def dependency_param(self, step_id: str, index: int, name: str) -> Value | None:
        return None

    def change_tables(self, step_ids: Collection[str]) -> Sequence[tuple[str, str | None]]:
        return ()

    def next_unique_id(self) -> int:
        return 0
