"""When an incremental trigger would have started runs, had it watched its tables all along.

Runs are taken to end at once, and to process everything. What would have been refused is stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from dalsegno.clock import from_millis
from dalsegno.model.snapshots import History, Position, Snapshot
from dalsegno.triggers.table_triggers.model import Memory, Rules, Unprocessed, Watch
from dalsegno.triggers.table_triggers.plan.decisions import decide
from dalsegno.triggers.table_triggers.plan.unprocessed import unprocessed


@dataclass(frozen=True)
class PastStart:
    """A run that would have been started, and what for."""

    at: datetime
    tables: Mapping[Watch, Unprocessed]


@dataclass(frozen=True)
class Past:
    #: When the history that is still known begins; None: there is none.
    since: datetime | None
    #: Commits that changed what the consumers capture: so many runs there would be, if each started one.
    commits: int
    #: Oldest first.
    starts: tuple[PastStart, ...]


def simulate(rules: Rules, histories: Mapping[Watch, History], until: datetime) -> Past:
    commits = [each for each in _commits(histories) if each[0] <= until]
    world = _World(rules, histories)
    changing = 0
    for moment, watch, snapshot in commits:
        world.wait(moment)
        changing += world.commit(moment, watch, snapshot)
    world.wait(until)
    return Past(commits[0][0] if commits else None, changing, tuple(world.starts))


class _World:
    """Tables and consumers on their way through the past."""

    def __init__(self, rules: Rules, histories: Mapping[Watch, History]) -> None:
        self.rules = rules
        self.histories = histories
        self.memory = Memory()
        self.marks = {watch: _beginning(history) for watch, history in histories.items()}
        self.heads: dict[Watch, Snapshot] = {}
        self.found: dict[Watch, Unprocessed | None] = dict.fromkeys(histories)
        self.starts: list[PastStart] = []
        self._again_at: datetime | None = None

    def commit(self, now: datetime, watch: Watch, snapshot: Snapshot) -> bool:
        """Whether that alone was something to process."""
        history = replace(self.histories[watch], head=snapshot)
        before = self.heads.get(watch)
        alone = unprocessed(watch, history, history.position(before) if before else self.marks[watch])
        self.heads[watch] = snapshot
        self.found[watch] = unprocessed(watch, history, self.marks[watch])
        self._decide(now)
        return alone is not None

    def wait(self, until: datetime) -> None:
        while self._again_at is not None and self._again_at <= until:
            self._decide(self._again_at)

    def _decide(self, now: datetime) -> None:
        by_key = {watch.key: each for watch, each in self.found.items()}
        decision = decide(self.rules, self.memory, by_key, now, is_open=False)
        self.memory, self._again_at = decision.memory, decision.again_at
        if decision.starts:
            self.starts.append(PastStart(now, {watch: each for watch, each in self.found.items() if each is not None}))
            for watch, head in self.heads.items():
                self.marks[watch] = self.histories[watch].position(head)
            self.found = dict.fromkeys(self.found)


def _commits(histories: Mapping[Watch, History]) -> list[tuple[datetime, Watch, Snapshot]]:
    """Of all tables, by their time."""
    return sorted(
        ((moment, watch, snapshot) for watch, history in histories.items() for moment, snapshot in _line(history)),
        key=lambda each: each[0],
    )


def _line(history: History) -> Iterator[tuple[datetime, Snapshot]]:
    """The branch's snapshots, oldest first; clocks of writers differ, but none came before its parent."""
    latest_ms = 0
    for snapshot in reversed(list(history.ancestors(history.head))):
        latest_ms = max(latest_ms, snapshot.timestamp_ms)
        yield from_millis(latest_ms), snapshot


def _beginning(history: History) -> Position:
    """Before all that is still known."""
    oldest = next((snapshot for snapshot in reversed(list(history.ancestors(history.head)))), None)
    return replace(history.position(None), snapshot_id=oldest.parent_id if oldest else None)
