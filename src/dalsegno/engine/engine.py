"""The loop that keeps runs going: it waits until something happens, saves it, and hands out what is ready.

One thread decides and writes; others run steps, and report to it. Reports that come at the same time are saved
together. Nothing is scanned: the end of a step makes those that follow ready in the same transaction, and as long as
there is room they are claimed in it as well. What other processes do to a run is noticed by a small look from time to
time.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dalsegno.engine.jobs import Signals
from dalsegno.engine.ledger import Ledger
from dalsegno.engine.node import Node
from dalsegno.engine.records import Claim, Recorded, Report
from dalsegno.engine.worker import Worker
from dalsegno.errors import PlatformError
from dalsegno.store import Store, runs
from dalsegno.store import queue as steps_queue

log = logging.getLogger(__name__)

#: How often to look for what other processes did, and how often to say that this one is alive.
LOOK = timedelta(milliseconds=200)
#: How many reports are saved in one transaction at most.
_BATCH = 200
#: How long to wait after the store failed.
_PAUSE_SECONDS = 0.5
#: How long those who leave wait for their workers.
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class _Noted:
    """What a worker wants stored while its step goes on."""

    claim: Claim
    values: Mapping[str, Any]
    done: Future[bool] = field(default_factory=Future)


class Engine:
    """Runs steps of all runs, or of some root runs and what belongs to them."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        worker: Worker,
        node: Node,
        *,
        clock: Callable[[], datetime],
        threads: int,
    ) -> None:
        self.store = store
        self.ledger = ledger
        self.worker = worker
        self.node = node
        self.clock = clock
        self.threads = threads
        self._events: queue.SimpleQueue[Report | _Noted | None] = queue.SimpleQueue()
        #: Claimed steps, until their report is saved; and those of them whose worker is done.
        self._working: dict[tuple[str, str], Signals] = {}
        self._done: set[tuple[str, str]] = set()
        self._leave = threading.Event()
        self._has_backlog = True
        self._has_messages = True
        self._next_due: datetime | None = None
        self._next_look = clock()
        #: Whether runs have ended, or we have looked around, since somebody asked for the end of a run.
        self._unseen = True

    def run_until_ended(self, run_id: str) -> None:
        """Go on until a run has ended, by us or by another process, with all that it started."""
        self._unseen = True

        def has_ended() -> bool:
            # Only then may it have changed; what others did is looked at from time to time.
            is_to_be_asked, self._unseen = self._unseen, False
            return is_to_be_asked and self._is_ended(run_id)

        self.run(has_ended)

    def _is_ended(self, run_id: str) -> bool:
        with self.store.database.reading() as connection:
            return not runs.open_below(connection, run_id)

    def run(self, until: Callable[[], bool]) -> None:
        """Go on until the condition holds; it is asked whenever something has happened."""
        self.node.join(self.clock())
        with ThreadPoolExecutor(self.threads, thread_name_prefix="step") as pool:
            try:
                while not until():
                    self._turn(pool)
            finally:
                self._leave.set()
                self._drain(pool)
                self.node.leave()

    def _turn(self, pool: ThreadPoolExecutor) -> None:
        reports, noted = self._collect(self._wait_seconds())
        try:
            self._save(reports, noted, pool)
            reports, noted = [], []
            self._look(pool)
        except PlatformError as error:
            # The store is locked, full or away. What was reported is not lost: it is saved when the store is back.
            log.warning("the store failed, trying again: %s", error)
            self._put_back(reports, noted)
            threading.Event().wait(_PAUSE_SECONDS)

    def _save(self, reports: Sequence[Report], noted: Sequence[_Noted], pool: ThreadPoolExecutor | None) -> None:
        if noted:
            self._store_notes(noted)
        if not reports:
            return
        recorded = self.ledger.record(reports, self.clock(), capacity=self._room() if pool else 0)
        for report in reports:
            key = (report.flow_id, getattr(report.happening, "step_id", ""))
            self._working.pop(key, None)
            self._done.discard(key)
        if pool is not None:
            self._handle(pool, recorded)

    def _collect(self, seconds: float) -> tuple[list[Report], list[_Noted]]:
        """What has happened, at least as much as there is; up to a batch."""
        reports: list[Report] = []
        noted: list[_Noted] = []
        try:
            event = self._events.get(timeout=seconds) if seconds > 0 else self._events.get_nowait()
            while True:
                if isinstance(event, Report):
                    reports.append(event)
                elif isinstance(event, _Noted):
                    noted.append(event)
                if len(reports) >= _BATCH:
                    break
                event = self._events.get_nowait()
        except queue.Empty:
            pass
        return reports, noted

    def _put_back(self, reports: Sequence[Report], noted: Sequence[_Noted]) -> None:
        unsaved: list[Report | _Noted] = [*noted, *reports]
        for event in unsaved:
            self._events.put(event)

    def _wait_seconds(self) -> float:
        if self._has_messages or (self._has_backlog and self._room() > 0):
            return 0
        moments = [self._next_look] + ([self._next_due] if self._next_due else [])
        # A clock that was set back must not make us wait for longer than one look.
        return min(max((min(moments) - self.clock()).total_seconds(), 0), LOOK.total_seconds())

    def _room(self) -> int:
        return self.threads - len(self._working) + len(self._done)

    # What follows.

    def _handle(self, pool: ThreadPoolExecutor, recorded: Recorded) -> None:
        for key in recorded.to_end:
            if key in self._working:
                self._working[key].end.set()
        self._unseen = self._unseen or bool(recorded.ended)
        self._has_messages = self._has_messages or recorded.has_sent
        self._has_backlog = self._has_backlog or recorded.has_backlog
        if recorded.next_due is not None:
            self._next_due = min(recorded.next_due, self._next_due or recorded.next_due)
        for capture_id in recorded.committed:
            pool.submit(self.worker.tidy_up, capture_id)
        for claim in recorded.claims:
            key = (claim.flow.id, claim.step.id)
            signals = self._working[key] = Signals(leave=self._leave)
            if claim.state.ending is not None:
                signals.end.set()
            pool.submit(self._work, claim, signals)

    def _work(self, claim: Claim, signals: Signals) -> None:
        report = self.worker.work(claim, signals, self._note)
        self._done.add((claim.flow.id, claim.step.id))
        self._events.put(report)

    def _look(self, pool: ThreadPoolExecutor) -> None:
        now = self.clock()
        if now >= self._next_look or self._next_look - now > LOOK:
            self._next_look = now + LOOK
            self._look_around(pool, now)
        while self._has_messages:
            delivered = self.ledger.deliver(now, capacity=self._room())
            self._has_messages = delivered is not None
            if delivered is not None:
                self._handle(pool, delivered)
        is_due = self._next_due is not None and now >= self._next_due
        if (self._has_backlog or is_due) and self._room() > 0:
            self._has_backlog, self._next_due = False, None
            self._handle(pool, self.ledger.claim_due(now, capacity=self._room()))

    def _look_around(self, pool: ThreadPoolExecutor, now: datetime) -> None:
        """What other processes did: steps to be ended, messages, steps made ready, nodes that died."""
        seen = self.node.look(now, roots=self.ledger.roots)
        self._unseen = True
        for flow_id, step_id in seen.to_end:
            if (flow_id, step_id) in self._working:
                self._working[flow_id, step_id].end.set()
        self._has_messages = self._has_messages or seen.has_messages
        self._next_due = seen.next_due
        # A claim that was saved although the store said otherwise has no worker.
        forgotten = [report for key, report in seen.ours.items() if key not in self._working]
        lost = [*forgotten, *seen.lost, *seen.overdue]
        if lost:
            self._handle(pool, self.ledger.record(lost, now, capacity=self._room()))

    # What workers want stored.

    def _note(self, claim: Claim, values: Mapping[str, Any]) -> bool:
        noted = _Noted(claim, values)
        self._events.put(noted)
        return noted.done.result()

    def _store_notes(self, noted: Sequence[_Noted]) -> None:
        with self.store.database.writing() as connection:
            kept = [
                steps_queue.note(
                    connection, each.claim.flow.id, each.claim.step.id, each.claim.state.fence, each.values
                )
                for each in noted
            ]
        for each, is_kept in zip(noted, kept, strict=True):
            if not each.done.done():
                each.done.set_result(is_kept)

    def _drain(self, pool: ThreadPoolExecutor) -> None:
        """On the way out: save what workers report; what they leave is taken up by the next process."""
        pool.shutdown(wait=False)
        patience = time.monotonic() + _PATIENCE_SECONDS
        while self._working and time.monotonic() < patience:
            reports, noted = self._collect(0.05)
            try:
                self._save(reports, noted, None)
            except PlatformError as error:
                log.warning("the store failed, trying again: %s", error)
                self._put_back(reports, noted)
