"""Which runs of a workflow may begin, and which must give way, by the workflow's run strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from dalsegno.model.runs import RunStatus
from dalsegno.model.workflow import RunRule, RunStrategy


@dataclass(frozen=True)
class Waiting:
    """A run that has not ended, or the last one that has."""

    run_id: str
    status: RunStatus


@dataclass(frozen=True)
class Admission:
    """What becomes of the runs that have not ended."""

    begin: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()


def admit(  # noqa: PLR0911 - one return per rule
    strategy: RunStrategy, open_runs: Sequence[Waiting], last_ended: RunStatus | None
) -> Admission:
    """``open_runs`` from the oldest to the newest; ``last_ended`` is how the newest of the ended ones ended."""
    queued = [run.run_id for run in open_runs if run.status is RunStatus.CREATED]
    running = [run.run_id for run in open_runs if run.status is not RunStatus.CREATED]
    match strategy.rule:
        case RunRule.PARALLEL:
            return Admission(begin=tuple(queued[: max(strategy.concurrency - len(running), 0)]))
        case RunRule.SEQUENTIAL:
            return Admission(begin=() if running else tuple(queued[:1]))
        case RunRule.STRICT_SEQUENTIAL:
            blocked = running or last_ended is RunStatus.FAILED
            return Admission(begin=() if blocked else tuple(queued[:1]))
        case RunRule.FIRST_ONLY:
            if running:
                return Admission(stop=tuple(queued))
            return Admission(begin=tuple(queued[:1]), stop=tuple(queued[1:]))
        case RunRule.LAST_ONLY:
            if not queued:
                return Admission()
            # The newest begins when those before it are gone.
            stopped = (*running, *queued[:-1])
            return Admission(begin=() if running else (queued[-1],), stop=stopped)
        case RunRule.SERIAL_LATEST_ONLY:
            stopped = tuple(queued[:-1])
            return Admission(begin=() if running else tuple(queued[-1:]), stop=stopped)


class ChildStart(Enum):
    """What becomes of the run of a subworkflow when its step starts it, perhaps not for the first time."""

    NEW = auto()
    RESTART = auto()
    #: It is there: whoever started it may have died before it could begin.
    ADMIT = auto()


def child_start(known_attempt: int | None, wanted_attempt: int) -> ChildStart:
    """``known_attempt`` is None if there is no such run yet."""
    if known_attempt is None:
        return ChildStart.NEW
    return ChildStart.RESTART if known_attempt < wanted_attempt else ChildStart.ADMIT
