"""The always-on service: what goes on by itself, in one process, or shared among any number of them.

Workers run steps. Triggers start runs; one process at a time watches them, whoever has the lease. The same processes
share what else has to be done: messages to people, lags, what is too old. A kind of trigger that looks at more than the
store, such as tables, has a thread of its own, so that a slow catalog holds up nothing else. Each thread has machinery
of its own: what it remembers of runs is for one thread. What answers over HTTP is beside it, in
``server``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Self

from dalsegno.clock import utc_now
from dalsegno.engine.engine import Engine
from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.engine.lease import Lease
from dalsegno.engine.node import Node
from dalsegno.errors import PlatformError
from dalsegno.model.callers import Caller
from dalsegno.operations import readiness
from dalsegno.operations.callers import NODE, TRIGGER
from dalsegno.operations.facade import Operations
from dalsegno.operations.machinery import Machinery
from dalsegno.operations.readiness import Pulse
from dalsegno.operations.retention import Retention
from dalsegno.operations.tokens import first_token
from dalsegno.operations.upkeep import Upkeep
from dalsegno.operations.write_check import CHECK_SECONDS, WriteCheck
from dalsegno.settings import Settings
from dalsegno.store import Store, audit_log
from dalsegno.triggers.engine import LOOK_SECONDS, TriggerContext, TriggerStarter, Watcher, starters

log = logging.getLogger(__name__)

#: How often to look for files of old runs.
_SWEEP_SECONDS = 3600.0
#: How long the end waits for somebody who is in the middle of something, but for these, which only wait for the store.
_PATIENCE_SECONDS = 10.0
_AWAITED = ("triggers", "upkeep", "sweeping")


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

    @classmethod
    @contextmanager
    def open(cls, settings: Settings, roles: Collection[Role] = tuple(Role)) -> Iterator[Self]:
        """With the store that the settings name."""
        with Store.open(settings.store) as store:
            yield cls(settings, store, roles)

    @property
    def place(self) -> str:
        """Where the store is, for people."""
        return str(self.store.database.place)

    def operations(self, caller: Caller) -> Operations:
        """What a caller can do with the store; for one thread."""
        return Operations(self.store, self.settings, caller, clock=self.clock, wake=self.wake)

    def make_first_token(self, hand_over: Callable[[str], object]) -> None:
        """A token, if there has never been one. If it cannot be handed over, there still is none."""
        with audit_log.recording(audit_log.Change(NODE, "admin.new_token", self.clock())):
            first_token(self.store, by=NODE.name, now=self.clock(), hand_over=hand_over)

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
        duties: dict[str, Callable[[], None]] = {"write check": self._check_writes}
        if Role.TRIGGERS in self.roles:
            alone = {kind: starter for kind, starter in starters().items() if starter.has_own_thread}
            duties |= {f"{kind} triggers": partial(self._watch_kind, kind, each) for kind, each in alone.items()}
            duties |= {"triggers": self._watch_triggers, "upkeep": self._keep_up}
        # None keeps the process from ending: a catalog that does not answer is not waited for.
        others = [threading.Thread(target=duty, name=name, daemon=True) for name, duty in duties.items()]
        if Role.WORKERS in self.roles:
            self._engine = self._machinery(NODE).engine()
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
                thread.join(None if thread.name in _AWAITED else _PATIENCE_SECONDS)

    def _is_over(self) -> bool:
        """Asked by the engine in every turn."""
        self.pulse.beat("workers")
        return self._stopping.is_set()

    def _machinery(self, caller: Caller = TRIGGER) -> Machinery:
        return Machinery(self.settings, self.store, caller, clock=self.clock, wake=self.wake)

    def _watch_triggers(self) -> None:
        """Look at triggers in the store, one kind after the other, and hold the lease for the other threads."""
        lease = Lease(self.store, "triggers", self.node_id)
        with self._trigger_context() as context:
            watchers = {
                kind: starter.watcher(context) for kind, starter in starters().items() if not starter.has_own_thread
            }
            look_at = dict.fromkeys(watchers, time.monotonic())
            wait = 0.0
            while not self._stopping.wait(wait):
                wait = LOOK_SECONDS
                self.pulse.beat("triggers")
                if not self._has_duty(lease):
                    continue
                for kind, watcher in watchers.items():
                    if time.monotonic() >= look_at[kind]:
                        pause = self._look(kind, watcher)
                        look_at[kind] = time.monotonic() + pause
                wait = min(max(min(look_at.values()) - time.monotonic(), 0), LOOK_SECONDS)
        self._is_on_duty.clear()
        lease.release()

    def _watch_kind(self, kind: str, starter: TriggerStarter[Any]) -> None:
        """The same for one kind in a thread of its own."""
        with self._trigger_context() as context:
            watcher = starter.watcher(context)
            wait = 0.0
            while not self._stopping.wait(wait):
                wait = self._look(kind, watcher) if self._is_on_duty.is_set() else LOOK_SECONDS

    @staticmethod
    def _look(kind: str, watcher: Watcher) -> float:
        try:
            return watcher.look()
        except (PlatformError, OSError) as error:
            # One kind that fails must not keep the others waiting.
            log.warning("%s triggers could not be looked at, trying again: %s", kind, error)
            return LOOK_SECONDS

    @contextmanager
    def _trigger_context(self) -> Iterator[TriggerContext]:
        machinery = self._machinery()
        versions = machinery.versions
        with ExitStack() as resources:
            yield TriggerContext(
                settings=self.settings,
                store=self.store,
                clock=self.clock,
                active=versions.active,
                blueprint=versions.blueprint,
                start=machinery.start_by_trigger,
                scopes=machinery.scopes,
                resources=resources,
            )

    def _has_duty(self, lease: Lease) -> bool:
        """Whether the lease on triggers is ours; the threads of single kinds get to know it."""
        try:
            is_held = lease.is_held()
        except (PlatformError, OSError) as error:
            log.warning("the store failed, trying again: %s", error)
            return False
        if is_held:
            self._is_on_duty.set()
        else:
            self._is_on_duty.clear()
        return is_held

    def _keep_up(self) -> None:
        lease = Lease(self.store, "upkeep", self.node_id)
        upkeep = Upkeep(self.settings, self.store, self.clock)

        def is_ours() -> bool:
            return not self._stopping.is_set() and lease.is_held()

        while not self._stopping.wait(LOOK_SECONDS):
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
        wait = LOOK_SECONDS
        while not self._stopping.wait(wait):
            wait = _SWEEP_SECONDS
            try:
                retention.remove_files(lambda: not self._stopping.is_set())
            except (PlatformError, OSError) as error:
                log.warning("could not remove the files of old runs, trying again: %s", error)
