"""What a kind of trigger must be able to say about itself, and who can say it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic

from dalsegno.model.workflow import AnyTrigger, Workflow
from dalsegno.settings import Settings
from dalsegno.triggers import TRIGGERS, part_of


@dataclass(frozen=True)
class OutlookRequest:
    """What somebody wants to know about triggers."""

    at: datetime
    #: How many starts before and after that moment.
    count: int
    #: In the place of the triggers' own.
    timezone: str | None = None
    #: Past starts from the history of what is watched, where there is one.
    is_simulated: bool = False
    #: Where tables are found; None: only what is known without them is asked for.
    settings: Settings | None = None


class TriggerViews(ABC, Generic[AnyTrigger]):
    """What is shown of triggers of one kind."""

    @abstractmethod
    def views(self, triggers: Sequence[AnyTrigger], workflow: Workflow | None, request: OutlookRequest) -> list[Any]:
        """A dataclass per trigger whose field ``kind`` is the kind; none if it has nothing to say to the request."""

    def next_start(self, triggers: Sequence[AnyTrigger], workflow_id: str, now: datetime) -> datetime | None:
        """If the clock decides."""
        return None

    def watched(self, triggers: Sequence[AnyTrigger]) -> Sequence[str]:
        """Names of what starts a run when it changes."""
        return ()


def views_of(kind: str) -> TriggerViews[Any]:
    found: TriggerViews[Any] = part_of(kind, "operations", "VIEWS")
    return found


def all_views() -> Mapping[str, TriggerViews[Any]]:
    """By kind."""
    return {kind: views_of(kind) for kind in TRIGGERS}
