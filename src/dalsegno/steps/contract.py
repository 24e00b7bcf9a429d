"""The contract between the engine and a type of step.

A runner starts a job, looks after it, and can end it. It keeps nothing between calls: all it needs is in the ``Work``
it is given, and what it returns is data. Only captures and commits write to the store themselves (``incremental``).
Every call may be repeated, by this process or by another after a crash:

- ``start`` begins the job, or finds the one that an earlier call of the same attempt began (``Work.key`` and
  ``Work.folder`` are the same then), and returns a handle: plain JSON by which any process can find the job again.
- ``poll`` waits up to ``patience`` seconds for the end, and says how far the job is.
- ``cancel`` ends the job and returns when it is gone, with everything that it began.

A runner whose jobs are executed by this very process also has ``let_go``: the process leaves the job to another one,
which will start it again, so it must not go on here. A type ``WithoutJob`` has nothing to start at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from dalsegno.model.captures import Capture
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.outcomes import Outcome
from dalsegno.model.params import ParamDefinition, Value
from dalsegno.model.refreshes import Refresh
from dalsegno.model.work_units import Statement, WorkUnit
from dalsegno.plan.unfinished_work import KnownSteps
from dalsegno.settings import Settings


@dataclass(frozen=True)
class Progress:
    """How far a job is: so many of so many, in its own words."""

    done: int
    total: int | None = None
    #: Such as ``tasks`` or ``rows``.
    unit: str = ""
    message: str = ""


@dataclass(frozen=True)
class Started:
    """The job goes on; the handle is stored before anything else is done."""

    handle: Mapping[str, Any]


@dataclass(frozen=True)
class Running:
    progress: Progress | None = None


@dataclass(frozen=True)
class Finished:
    outcome: Outcome


@dataclass(frozen=True)
class FilledText:
    """A text in which references have become values."""

    text: str
    #: Values in it that must not be shown.
    secrets: tuple[str, ...] = ()


class WorkLog(Protocol):
    """The record of what a step does behind the captures that it consumes. Each call is one transaction.

    ``TakenOver``: another process works on it. A ``UserError`` says why the work may not be done.
    """

    def template(self, *written: Any) -> str:
        """A digest of what the author wrote: these texts or definitions, and all that they refer to."""

    def block(self, name: str) -> ParamDefinition | None:
        """A parameter of the step as it is written."""

    def known_steps(self) -> KnownSteps:
        """The steps of the running version: work of any other is continued by nobody."""

    @property
    def workflow_version(self) -> int:
        """The version that the step belongs to."""

    def open(self, template: str, texts: Sequence[str], decision: Mapping[str, Any] | None = None) -> WorkUnit:
        """The unit of the step, with these statements if it is new; from now on it is this process's."""

    def plan(
        self, unit: WorkUnit, template: str, texts: Sequence[str], decision: Mapping[str, Any] | None = None
    ) -> WorkUnit:
        """Say anew what a unit executes of which nothing is done."""

    def start_over(self, unit: WorkUnit) -> WorkUnit:
        """Plan all of a unit anew, under another id."""

    def change(self, unit: WorkUnit, *statements: Statement, refresh: Refresh | None = None, **values: Any) -> WorkUnit:
        """Store statements as they are now, values of the unit itself, and what it did if that is to be remembered."""

    def units(self) -> Sequence[WorkUnit]:
        """All work behind the same captures that was not undone, the step's own included."""

    def known_units(self) -> Collection[str]:
        """The ids of all units behind the same captures, those that were undone included."""

    def known_captures(self, capture_ids: Collection[str]) -> Collection[str]:
        """Those of these captures that the store knows."""

    def note_job(self, kind: str) -> None:
        """Remember that a job of another kind than SQL was begun."""

    def now(self) -> datetime: ...


def nothing_pushed(field: str, name: str) -> str | None:
    """As ``Work.pushed_file``, of a version without files."""
    del field, name
    return None


@dataclass(frozen=True)
class Work:
    """One attempt of one step."""

    workflow_id: str
    run_number: int
    step_id: str
    attempt: int
    #: Names this attempt and no other, whatever happens in between: letters, digits, dots, dashes and underscores.
    key: str
    #: The values of the step's parameters.
    params: Mapping[str, Value]
    #: A folder of this attempt's own, which exists.
    folder: Path
    settings: Settings
    #: Values by name for the references left in texts that the type names as ``raw``.
    references: Mapping[str, str] = field(default_factory=dict)
    #: Puts the values of parameters into a text that comes from a file, where ``start`` needs one.
    filled: Callable[[str], FilledText] = FilledText
    #: The content of a file as it was pushed, by field, such as ``sql.file``, and name; None: the file itself counts.
    pushed_file: Callable[[str, str], str | None] = nothing_pushed
    #: What ``start`` returned, once it is stored.
    handle: Mapping[str, Any] | None = None
    #: When the attempt must have ended, if ever.
    deadline: datetime | None = None
    #: Values that must not be shown.
    secrets: tuple[str, ...] = ()
    #: The captures that it processes, by id.
    captures: tuple[Capture, ...] = ()
    #: If there are any: which step it is, iterations and subworkflows included; the same in every run.
    place: str = ""
    #: If there are any: what names the same work in every attempt, run and call.
    unit: str = ""
    #: If there are any: where the work is recorded.
    log_of_work: WorkLog | None = None
    #: If the run is to process its sources as a whole again.
    full_refresh: FullRefresh | None = None
    #: The machine that runs it, among those that share the store.
    machine: str = ""
    #: Its place in the trace of its run, as W3C's trace context writes it.
    traceparent: str = ""

    @property
    def log(self) -> Path:
        """Where the job's output goes."""
        return self.folder / "log"

    @property
    def log_limit(self) -> int:
        """How many bytes of it are kept."""
        return self.settings.log_limit_mb << 20


class Runner(Protocol):
    """How steps of one type run.

    A runner may also have ``files``, a set of fields such as ``make.file``: what the files that they name hold is part
    of a version, and ``Fields.source`` gives it. ``file_references`` name files that are not.
    """

    #: What users write as ``type``; upper and lower case do not matter.
    name: ClassVar[str]
    #: Parameters, such as ``shell.script``, in which ``${name}`` is not replaced by the value but left for the runner,
    #: because a value pasted into code can become code.
    raw: ClassVar[frozenset[str]]

    def start(self, work: Work) -> Started | Finished: ...

    def poll(self, work: Work, patience: float) -> Running | Finished: ...

    def cancel(self, work: Work) -> None: ...


@runtime_checkable
class Executing(Protocol):
    """A runner whose jobs end with the process that executes them."""

    def let_go(self, work: Work) -> None: ...


@runtime_checkable
class Capturing(Protocol):
    """A runner whose steps capture what they process themselves. Their success commits it."""

    def capture(self, work: Work) -> Capture | Outcome:
        """The step's own capture, the same one however often it is asked for; or how the step ends without one."""


@runtime_checkable
class WithoutJob(Protocol):
    """How steps of a type run that execute nothing: they end at once or after a while, and nobody looks after them."""

    name: ClassVar[str]
    raw: ClassVar[frozenset[str]]

    def seconds_to_wait(self, params: Mapping[str, Value]) -> float | None:
        """None: the step ends at once."""


#: What runs the steps of a type.
AnyRunner = Runner | WithoutJob
