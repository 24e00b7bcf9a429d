"""Incremental triggers: as they are written, the tables that they watch, and what they remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.workflow import Trigger


class Quorum(StrEnum):
    """How many of several tables need to have changed."""

    ANY = "ANY"
    ALL = "ALL"


@dataclass(frozen=True)
class IncrementalTrigger(Trigger):
    """Begin a run when tables have changes that the workflow has not processed."""

    kind: ClassVar[str] = "incremental"

    #: As they are written; none: those that the workflow's steps capture.
    tables: tuple[str, ...] = ()
    when: Quorum = Quorum.ANY
    #: Durations: without a new commit for so long, between two starts, and how long anything waits at most.
    quiet: str | None = None
    min_interval: str | None = None
    max_wait: str | None = None
    #: A table has enough as soon as one of these that are given is reached; with none, as soon as it has anything.
    min_snapshots: int | None = None
    min_files: int | None = None
    min_rows: int | None = None
    min_bytes: int | None = None
    #: By default the one that is captured.
    branch: str | None = None


#: A table is watched as it is captured.
Watch = TableRequest

#: The oldest and the newest of some snapshots: as long as both are the same, nothing has come or was processed.
Span = tuple[int, int]


@dataclass(frozen=True)
class Unprocessed:
    """What a table has that its consumer has not processed."""

    span: Span
    #: When the oldest and the newest were committed, by the clocks of those who wrote them.
    first: datetime
    last: datetime
    #: Those that change rows, and what their summaries say about them; None: they do not say.
    snapshots: int
    files: int | None
    rows: int | None
    bytes: int | None
    #: Why a capture would be refused, if it would.
    refusal: str | None = None
    #: Whether nothing is to be processed but where the consumer begins, so that it is known what comes after.
    is_beginning: bool = False

    @property
    def is_urgent(self) -> bool:
        """Whether to wait for more of it makes no sense."""
        return self.is_beginning or self.refusal is not None


@dataclass(frozen=True)
class Rules:
    """When an incremental trigger starts a run."""

    #: What it watches: in another version of the workflow, the same name is the same trigger.
    name: str
    needs_all: bool = False
    quiet: timedelta = timedelta()
    min_interval: timedelta = timedelta()
    max_wait: timedelta | None = None
    min_snapshots: int | None = None
    min_files: int | None = None
    min_rows: int | None = None
    min_bytes: int | None = None


@dataclass(frozen=True)
class Waiting:
    """Changes that were seen and wait."""

    span: Span
    #: When they were committed, or if a writer's clock is ahead, when they were seen: the oldest and the newest.
    since: datetime
    last: datetime


@dataclass(frozen=True)
class Memory:
    """What an incremental trigger remembers. Tables are known by the key of their watch."""

    #: How many runs it has started.
    starts: int = 0
    started_at: datetime | None = None
    #: What there was when the last one was started.
    started_for: Mapping[str, Span] = field(default_factory=dict)
    #: How many runs before the last one in a row left what they were started for as it was.
    in_vain: int = 0
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
