"""What a kind of trigger must be able to do in order to start runs, and who can do it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol

from sqlalchemy import Connection

from dalsegno.engine.blueprints import Blueprint, Blueprints
from dalsegno.engine.scopes import Scopes
from dalsegno.errors import UserError
from dalsegno.model.workflow import AnyTrigger
from dalsegno.settings import Settings
from dalsegno.store import Store
from dalsegno.store.row_queries import Row
from dalsegno.triggers import TRIGGERS, part_of

#: How soon a trigger that came or went is noticed, and a failure retried.
LOOK_SECONDS = 1.0


class StartedRun(Protocol):
    """What is asked of a run that was started."""

    @property
    def initiator(self) -> Mapping[str, Any]: ...

    @property
    def created_at(self) -> datetime: ...

    @property
    def is_repeated(self) -> bool:
        """Whether there was one with this key already."""


class Start(Protocol):
    """Starts a run of a version with a key and an initiator, unless there is one with this key.

    A run with a fault is created and has failed.
    """

    def __call__(
        self, blueprint: Blueprint, key: str, initiator: Mapping[str, Any], *, fault: UserError | None = None
    ) -> StartedRun: ...


@dataclass(frozen=True)
class TriggerContext:
    """What watchers of triggers need. Used by one thread."""

    settings: Settings
    store: Store
    clock: Callable[[], datetime]
    #: The version of a workflow that is active.
    active: Callable[[str], Blueprint | None]
    blueprint: Blueprints
    start: Start
    scopes: Scopes
    #: What watchers open, to be closed when the thread ends.
    resources: ExitStack = field(default_factory=ExitStack)


class Watcher(Protocol):
    """Looks at all triggers of a kind. Used by one thread."""

    def look(self) -> float:
        """Start what is due; in how many seconds to look again.

        Nodes may look at the same time, and be killed in between: a run's key must follow from what starts it.
        """


class TriggerStarter(ABC, Generic[AnyTrigger]):
    """How triggers of one kind start runs."""

    #: Whether it looks at more than the store. It gets its own thread, so that nothing else waits for it.
    has_own_thread: ClassVar[bool] = False

    @abstractmethod
    def register(
        self,
        connection: Connection,
        workflow_id: str,
        wanted: Sequence[AnyTrigger],
        registered: Mapping[str, Row],
        now: datetime,
    ) -> None:
        """Store a row for each trigger of the active version, and none for others.

        A trigger with the name of one of the version before resumes where that one was; a new one begins now.
        ``store.triggers.replace`` does most of it.
        """

    @abstractmethod
    def watcher(self, context: TriggerContext) -> Watcher: ...


def starters() -> Mapping[str, TriggerStarter[Any]]:
    """By kind."""
    return {kind: part_of(kind, "engine", "STARTER") for kind in TRIGGERS}
