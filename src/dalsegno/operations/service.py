"""The always-on service: what goes on by itself, in one process, or shared among any number of them.

Workers run steps. Triggers start runs; one process at a time watches them, whoever has the lease. The same processes
share what else has to be done: messages to people, lags, what is too old. Tables are watched by a thread of their own,
so that a slow catalog holds up nothing else. Each thread has an orchestrator of its own: what they remember of runs is
for one thread. What answers over HTTP is beside it, in ``server``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from datetime import datetime
from enum import StrEnum

from dalsegno.clock import utc_now
from dalsegno.engine.engine import Engine
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.lease import Lease
from dalsegno.engine.node import Node
from dalsegno.engine.signal_triggers import SignalTriggers
from dalsegno.engine.time_triggers import TimeTriggers
from dalsegno.errors import PlatformError
from dalsegno.operations import readiness
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.operations.readiness import Pulse
from dalsegno.operations.retention import Retention
from dalsegno.operations.table_watch import TableWatch
from dalsegno.operations.upkeep import Upkeep
from dalsegno.operations.write_check import CHECK_SECONDS, WriteCheck
from dalsegno.settings import Settings
from dalsegno.store import Store

log = logging.getLogger(__name__)

ACTOR = "dalsegno"
#: How often to look for triggers that came or went, and for the lease; and for signals.
_LOOK_SECONDS = 1.0
_SIGNALS_SECONDS = 0.2
#: How often to look for files of old runs.
_SWEEP_SECONDS = 3600.0
#: How long the end waits for somebody who is in the middle of something.
_PATIENCE_SECONDS = 10.0


class Role(StrEnum):
    #: Answers over HTTP.
    API = "api"
    #: Starts runs.
    TRIGGERS = "triggers"
    #: Runs steps.
    WORKERS = "workers"


class Service:
    """One node. ``run`` returns when somebody called ``stop`` and what has to be handed over is handed over."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        roles: Collection[Role] = tuple(Role),
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.settings = settings
        self.store = store
        self.roles = frozenset(roles)
        self.clock = clock
        self.pulse = Pulse()
        self.write_check = WriteCheck(store)
        #: Who has the leases that this process has.
        self.node_id = Node(store).id
        self._stopping = threading.Event()
        #: Whether this process has the lease on triggers, as far as it knows.
        self._is_on_duty = threading.Event()
        #: What runs steps in this process, if it does.
        self._engine: Engine | None = None

    def stop(self) -> None:
        """Begin nothing more; steps that go on are left to other nodes."""
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        """Let whatever runs steps here see at once that there are some."""
        if self._engine is not None:
            self._engine.wake()

    def problems(self) -> list[str]:
        """Why it is not ready to do its work; empty if it is."""
        found = readiness.problems(self.store, self.pulse, is_stopping=self._stopping.is_set())
        return [*found, *self.write_check.problems(), *readiness.jobs_folder_problems(self._jobs_folder())]

    def can_run_jobs(self) -> bool:
        """Whether the jobs folder can be written, if this node needs one."""
        return not readiness.jobs_folder_problems(self._jobs_folder())

    def _jobs_folder(self) -> JobsFolder | None:
        return self._engine.jobs_folder if self._engine else None

    def run(self) -> None:
        watching = {"triggers": self._watch_triggers, "tables": self._watch_tables, "upkeep": self._keep_up}
        duties = {"write check": self._check_writes, **(watching if Role.TRIGGERS in self.roles else {})}
        # None keeps the process from ending: a catalog that does not answer is not waited for.
        others = [threading.Thread(target=duty, name=name, daemon=True) for name, duty in duties.items()]
        if Role.WORKERS in self.roles:
            self._engine = self._orchestrator().engine()
            others.append(threading.Thread(target=self._sweep, name="sweeping"))
        for thread in others:
            thread.start()
        try:
            if self._engine is not None:
                self._engine.run(self._is_over)
            else:
                self._stopping.wait()
        finally:
            self._stopping.set()
            for thread in others:
                thread.join(_PATIENCE_SECONDS if thread.name in ("tables", "write check") else None)

    def _is_over(self) -> bool:
        """Asked by the engine in every turn."""
        self.pulse.beat("workers")
        return self._stopping.is_set()

    def _orchestrator(self) -> Orchestrator:
        return Orchestrator(self.settings, self.store, clock=self.clock, actor=ACTOR, wake=self.wake)

    def _watch_triggers(self) -> None:
        orchestrator = self._orchestrator()
        lease = Lease(self.store, "triggers", self.node_id)
        active, start = orchestrator.versions.active, orchestrator.start_by_trigger
        by_time = TimeTriggers(self.store, active, start)
        by_signals = SignalTriggers(self.store, active, start, orchestrator.scopes)
        wait, look_at = 0.0, time.monotonic()
        while not self._stopping.wait(wait):
            wait = _LOOK_SECONDS
            self.pulse.beat("triggers")
            try:
                if not self._has_duty(lease):
                    continue
                by_signals.fire(self.clock())
                if time.monotonic() >= look_at:
                    next_at = by_time.fire(self.clock())
                    look_at = time.monotonic() + self._seconds_until(next_at)
            except (PlatformError, OSError) as error:
                log.warning("the store failed, trying again: %s", error)
                continue
            wait = min(max(look_at - time.monotonic(), 0), _SIGNALS_SECONDS)
        self._is_on_duty.clear()
        lease.release()

    def _seconds_until(self, moment: datetime | None) -> float:
        """When to look again, which is soon: a clock may be set, and triggers come and go."""
        if moment is None:
            return _LOOK_SECONDS
        return min(max((moment - self.clock()).total_seconds(), 0), _LOOK_SECONDS)

    def _has_duty(self, lease: Lease) -> bool:
        """Whether the lease on triggers is ours; the thread that watches tables gets to know it."""
        if is_held := lease.is_held():
            self._is_on_duty.set()
        else:
            self._is_on_duty.clear()
        return is_held

    def _watch_tables(self) -> None:
        with TableWatch(self.settings, self.store, self._orchestrator, self.clock) as watch:
            wait = 0.0
            while not self._stopping.wait(wait):
                wait = watch.look() if self._is_on_duty.is_set() else _LOOK_SECONDS

    def _keep_up(self) -> None:
        lease = Lease(self.store, "upkeep", self.node_id)
        upkeep = Upkeep(self.settings, self.store, self.clock)

        def is_ours() -> bool:
            return not self._stopping.is_set() and lease.is_held()

        while not self._stopping.wait(_LOOK_SECONDS):
            if is_ours():
                upkeep.look(is_ours)
        lease.release()

    def _check_writes(self) -> None:
        wait = 0.0
        while not self._stopping.wait(wait):
            wait = CHECK_SECONDS
            self.write_check.write()

    def _sweep(self) -> None:
        """Remove what old runs left on this machine."""
        retention = Retention(self.settings, self.store, self.clock)
        wait = _LOOK_SECONDS
        while not self._stopping.wait(wait):
            wait = _SWEEP_SECONDS
            try:
                retention.remove_files(lambda: not self._stopping.is_set())
            except (PlatformError, OSError) as error:
                log.warning("could not remove the files of old runs, trying again: %s", error)
