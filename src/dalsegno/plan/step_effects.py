"""What a step's new state means beyond the step: for workers, for those who wait, and for the run's history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dalsegno.model.runs import StepState, StepStatus

_NOT_TOLD = frozenset({StepStatus.CREATED, StepStatus.NOT_CREATED})


@dataclass(frozen=True)
class StepEffects:
    #: A worker may take it.
    is_ready: bool
    #: A worker may take it then.
    ready_later: datetime | None
    #: The worker that holds it must end it.
    is_to_end: bool
    #: It waits for signals no longer.
    has_stopped_waiting: bool
    #: No worker holds it any longer, so its permits are free.
    is_let_go: bool
    #: The history of the run shows it.
    is_event: bool


def effects_of(old: StepState | None, new: StepState, now: datetime) -> StepEffects:
    """``old`` is None if the step was not reached before."""
    is_later = new.ready_at is not None and new.ready_at > now
    was_waiting = old is not None and old.status is StepStatus.WAITING_FOR_SIGNALS
    # If not even its signals could be looked for, a step fails and stands as before.
    has_failed = old is not None and new.failure is not None and new.failure != old.failure
    is_changed = old is None or has_failed or (old.status, old.attempt) != (new.status, new.attempt)
    return StepEffects(
        is_ready=new.ready_at is not None and not is_later,
        ready_later=new.ready_at if is_later else None,
        is_to_end=new.is_claimed and new.ending is not None,
        has_stopped_waiting=was_waiting and new.status is not StepStatus.WAITING_FOR_SIGNALS,
        is_let_go=old is not None and old.is_claimed and not new.is_claimed,
        is_event=is_changed and new.status not in _NOT_TOLD,
    )
