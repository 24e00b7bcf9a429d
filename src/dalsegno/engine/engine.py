"""The loop that keeps runs going: it waits until something happens, saves it, and hands out what is ready.

One thread decides and writes; others run steps, and report to it. Reports that come at the same time are saved
together. Nothing is scanned: the end of a step makes those that follow ready in the same transaction, and as long as
there is room they are claimed in it as well. What other processes do to a run is heard of where the database can tell,
and noticed by a small look from time to time.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from dalsegno.engine.jobs import StopFlags
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.ledger import Ledger
from dalsegno.engine.listening import Listener
from dalsegno.engine.node import Node
from dalsegno.engine.notes import Noted, store_notes
from dalsegno.engine.records import Claim, Recorded, Report
from dalsegno.engine.worker import Worker
from dalsegno.errors import PlatformError
from dalsegno.model.outcomes import Succeeded
from dalsegno.model.runs import StepEnded
from dalsegno.store import Store, runs

log = logging.getLogger(__name__)

#: How often to look for what other processes did, in seconds; and where they tell, in case something was not heard.
LOOK, SAFETY_LOOK = 0.2, 1.0
#: How soon to look again if somebody calls.
_WOKEN_SECONDS = 0.05
#: How many reports are saved in one transaction at most.
_BATCH = 200
#: How long to wait after the store failed.
_PAUSE_SECONDS = 0.5
#: How long those who leave wait for their workers.
_PATIENCE_SECONDS = 20.0


@dataclass
class _Working:
    """A claimed step, until its report is saved."""

    stop_flags: StopFlags
    fence: int
    is_done: bool = False


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
        jobs_folder: JobsFolder,
    ) -> None:
        self.store = store
        self.ledger = ledger
        self.worker = worker
        self.node = node
        self.clock = clock
        self.threads = threads
        self.jobs_folder = jobs_folder
        self._events: queue.SimpleQueue[Report | Noted | None] = queue.SimpleQueue()
        self._working: dict[tuple[str, str], _Working] = {}
        self._leave = threading.Event()
        #: Whether steps are left to others that only processes of this machine can go on with.
        self._has_left_steps = False
        self._has_backlog = True
        self._has_messages = True
        self._next_due: datetime | None = None
        #: By a clock that nobody sets.
        self._looked = 0.0
        self._is_woken = False
        self._listener = Listener(store, self.wake)
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

    def wake(self) -> None:
        """See at once what others left for us, and soon what else they did; any thread may ask, even in a signal."""
        self._has_messages = self._has_backlog = True
        self._is_woken = True
        self._events.put(None)

    def run(self, until: Callable[[], bool]) -> None:
        """Go on until the condition holds; it is asked whenever something has happened."""
        self._join()
        with (
            self._listener.listening(),
            self.node.beating(self.clock),
            ThreadPoolExecutor(self.threads, thread_name_prefix="step") as pool,
        ):
            try:
                while not until():
                    self._turn(pool)
            finally:
                self._leave.set()
                self._drain(pool)
                self.node.leave(self.clock(), has_left_steps=self._has_left_steps or bool(self._working))

    def _join(self) -> None:
        self._membership = self.node.join(self.clock())
        self.ledger.node_id = self._membership.id
        self._working = {}
        self._has_messages = self._has_backlog = True

    def _turn(self, pool: ThreadPoolExecutor) -> None:
        reports, noted = self._collect(self._wait_seconds())
        try:
            if self._membership.is_over:
                for each in noted:
                    each.answer(is_kept=False)
                noted = []
                self._start_over(reports)
                return
            self._save(reports, noted, pool)
            reports, noted = [], []
            self._look(pool)
        except (PlatformError, OSError) as error:
            # The store is locked, full or away, or the machine is out of files or memory. What was reported is not
            # lost: it is saved when the store is back.
            log.warning("the store failed, trying again: %s", error)
            self._put_back(reports, noted)
            threading.Event().wait(_PAUSE_SECONDS)

    def _start_over(self, reports: Sequence[Report]) -> None:
        """Others may have taken us for dead, or soon will. Our workers let go of their steps; we join again.

        What they report is still saved, as far as nobody has taken the steps. But they were let go of elsewhere only
        after a while: see ``plan.liveness``.
        """
        threading.Event().wait(self._membership.seconds_until_let_go())
        self._save(reports, [], None)
        self._join()
        log.warning("this process was cut off from the store for too long, and has joined again as %s", self.node.id)

    def _save(self, reports: Sequence[Report], noted: Sequence[Noted], pool: ThreadPoolExecutor | None) -> None:
        if noted:
            store_notes(self.store, noted)
        for together in _apart(reports):
            recorded = self.ledger.record(together, self.clock(), capacity=self._room() if pool else 0)
            for report in together:
                self._forget(report)
            if pool is not None:
                self._handle(pool, recorded)

    def _forget(self, report: Report) -> None:
        key = (report.flow_id, getattr(report.happening, "step_id", ""))
        working = self._working.get(key)
        # A worker that let go of a step may report when another has it already.
        if working is not None and working.fence == getattr(report.happening, "fence", None):
            del self._working[key]

    def _collect(self, seconds: float) -> tuple[list[Report], list[Noted]]:
        """What has happened, at least as much as there is; up to a batch."""
        reports: list[Report] = []
        noted: list[Noted] = []
        try:
            event = self._events.get(timeout=seconds) if seconds > 0 else self._events.get_nowait()
            while True:
                if isinstance(event, Report):
                    reports.append(event)
                elif isinstance(event, Noted):
                    noted.append(event)
                if len(reports) >= _BATCH:
                    break
                event = self._events.get_nowait()
        except queue.Empty:
            pass
        return reports, noted

    def _put_back(self, reports: Sequence[Report], noted: Sequence[Noted]) -> None:
        unsaved: list[Report | Noted] = [*noted, *reports]
        for event in unsaved:
            self._events.put(event)

    def _wait_seconds(self) -> float:
        if self._has_messages or (self._has_backlog and self._room() > 0):
            return 0
        waits = [self._seconds_to_look()]
        if self._next_due is not None and self._room() > 0:
            waits.append((self._next_due - self.clock()).total_seconds())
        # A clock that was set back must not make us wait for longer than one look.
        return max(min(waits), 0)

    def _seconds_to_look(self) -> float:
        every = SAFETY_LOOK if self._listener.is_listening else LOOK
        return self._looked + (_WOKEN_SECONDS if self._is_woken else every) - time.monotonic()

    def _room(self) -> int:
        """For how many more steps there is room; for none while this machine cannot keep the files of jobs."""
        if self.jobs_folder.problem() is not None:
            return 0
        return self.threads - sum(not each.is_done for each in self._working.values())

    # What follows.

    def _handle(self, pool: ThreadPoolExecutor, recorded: Recorded) -> None:
        for key in recorded.to_end:
            if key in self._working:
                self._working[key].stop_flags.end.set()
        self._unseen = self._unseen or bool(recorded.ended)
        self._has_messages = self._has_messages or recorded.has_sent
        self._has_backlog = self._has_backlog or recorded.has_backlog
        if recorded.next_due is not None:
            self._next_due = min(recorded.next_due, self._next_due or recorded.next_due)
        for capture_id in recorded.committed:
            pool.submit(self.worker.context.host.tidy_up, capture_id)
        for claim in recorded.claims:
            signals = StopFlags(is_to_leave=self._is_to_leave(), sign_file=self._membership.sign_file)
            if claim.state.ending is not None:
                signals.end.set()
            working = _Working(signals, claim.state.fence)
            self._working[claim.flow.id, claim.step.id] = working
            pool.submit(self._work, claim, working)

    def _is_to_leave(self) -> Callable[[], bool]:
        membership = self._membership
        return lambda: membership.is_over or self._leave.is_set()

    def _work(self, claim: Claim, working: _Working) -> None:
        report = self.worker.work(claim, working.stop_flags, partial(self._note, working.stop_flags))
        working.is_done = True
        self._events.put(report)

    def _look(self, pool: ThreadPoolExecutor) -> None:
        now = self.clock()
        if self._seconds_to_look() <= 0:
            self._looked, self._is_woken = time.monotonic(), False
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
        seen = self.node.look(now, roots=self.ledger.roots, room=self._room())
        self._unseen = True
        for flow_id, step_id in seen.to_end:
            if (flow_id, step_id) in self._working:
                self._working[flow_id, step_id].stop_flags.end.set()
        self._has_messages = self._has_messages or seen.has_messages
        self._next_due = seen.next_due
        # A claim that was saved although the store said otherwise has no worker.
        forgotten = [report for key, report in seen.ours.items() if key not in self._working]
        if left := [*forgotten, *seen.left][: self._room()]:
            self._handle(pool, self.ledger.take_over(left, now))
        if seen.lost or seen.overdue:
            self._handle(pool, self.ledger.record([*seen.lost, *seen.overdue], now, capacity=self._room()))

    def _note(self, signals: StopFlags, claim: Claim, values: Mapping[str, Any]) -> bool:
        noted = Noted(claim, values)
        self._events.put(noted)
        return noted.is_kept(signals)

    def _drain(self, pool: ThreadPoolExecutor) -> None:
        """On the way out: save what workers report; what they leave is taken up by the next process.

        A job that only this machine can find again stays ours where other machines could start it: others of this
        machine take it from us as if we had died, and other machines when it has been ended.
        """
        pool.shutdown(wait=False)
        patience = time.monotonic() + _PATIENCE_SECONDS
        while self._working and time.monotonic() < patience:
            reports, noted = self._collect(0.05)
            if not self.store.database.is_sqlite:
                for report in (bound := [each for each in reports if each.is_bound]):
                    self._forget(report)
                    reports.remove(report)
                self._has_left_steps = self._has_left_steps or bool(bound)
            try:
                self._save(reports, noted, None)
            except (PlatformError, OSError) as error:
                log.warning("the store failed, trying again: %s", error)
                self._put_back(reports, noted)


def _apart(reports: Sequence[Report]) -> list[list[Report]]:
    """The reports as they are saved: together, but one that moves a checkpoint alone.

    Each of those waits for whoever else moves the same one. Two that wait for two could wait for each other.
    """
    moving = [report for report in reports if _moves_checkpoint(report)]
    others = [report for report in reports if report not in moving]
    return ([others] if others else []) + [[report] for report in moving]


def _moves_checkpoint(report: Report) -> bool:
    match report.happening:
        case StepEnded(outcome=Succeeded(commits=str())):
            return True
    return False
