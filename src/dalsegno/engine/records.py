"""What goes into a transaction about runs, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.model.params import ParamDefinitions, Params
from dalsegno.model.runs import Flow, Happening, StepState
from dalsegno.model.signals import Announcement, WantedSignal
from dalsegno.model.workflow import Step


@dataclass(frozen=True)
class StepUpdate:
    """What is kept of a step beside its state; None leaves what was known."""

    params: Mapping[str, Any] | None = None
    outputs: Mapping[str, Any] | None = None
    handle: Mapping[str, Any] | None = None
    deadline: datetime | None = None
    #: Of the next iteration of a ``while``.
    iteration_params: Mapping[str, Any] | None = None
    #: The run of a subworkflow, which begins with it.
    child: Mapping[str, Any] | None = None
    #: The signals that it waits for, one for each of its dependencies.
    wanted_signals: tuple[WantedSignal, ...] = ()
    #: The signals that its success announces.
    announced: tuple[Announcement, ...] = ()

    @property
    def signals(self) -> set[str]:
        """The names of all of them."""
        return {each.wanted.name for each in self.wanted_signals} | {each.name for each in self.announced}


@dataclass(frozen=True)
class Report:
    """Something that happened to a flow of a run."""

    run_id: str
    flow_id: str
    happening: Happening
    update: StepUpdate = StepUpdate()
    #: Whether a worker left a job that goes on, and that only this machine can find again.
    is_bound: bool = False


@dataclass
class OpenRun:
    """A run as it was at one revision, with those of its flows that were needed so far."""

    row: Mapping[str, Any]
    blueprint: Blueprint
    revision: int
    breakpoints: frozenset[str]
    flows: dict[str, Flow] = field(default_factory=dict)
    #: The parameters of open iterations and of their loops: by flow, and by flow and step.
    iterations: dict[str, Params] = field(default_factory=dict)
    loops: dict[tuple[str, str], Params] = field(default_factory=dict)
    #: The definitions of its parameters, once somebody needed them.
    definitions: ParamDefinitions | None = None
    #: When somebody last asked for it, by a stopwatch.
    used: float = 0.0

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def workflow_id(self) -> str:
        return str(self.row["workflow_id"])


@dataclass(frozen=True)
class Claim:
    """A step that this process runs now."""

    run: OpenRun
    flow: Flow
    state: StepState
    step: Step


@dataclass(frozen=True)
class Recorded:
    """What a transaction led to."""

    claims: tuple[Claim, ...] = ()
    #: Reports that came too late: somebody else has the step, or it has ended.
    refused: tuple[Report, ...] = ()
    #: Claimed steps of this process that are to be ended: flow and step.
    to_end: tuple[tuple[str, str], ...] = ()
    #: Whether steps may be ready that were not claimed, but could be.
    has_backlog: bool = False
    #: When the next step is ready, of those that the transaction was about.
    next_due: datetime | None = None
    #: Whether it left messages for other runs.
    has_sent: bool = False
    #: Runs that have come to their end.
    ended: tuple[str, ...] = ()
    #: Captures that were committed, whose change tables nobody needs any longer.
    committed: tuple[str, ...] = ()
