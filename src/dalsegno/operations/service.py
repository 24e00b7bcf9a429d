"""The always-on service: what goes on by itself, in one process, or shared among any number of them.

Workers run steps. Triggers start runs; one process at a time watches them, whoever has the lease. Each role has a
thread and an orchestrator of its own: what they remember of runs is for one thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from datetime import datetime
from enum import StrEnum
from typing import Any

from dalsegno.clock import utc_now
from dalsegno.engine.lease import Lease
from dalsegno.engine.time_triggers import TimeTriggers
from dalsegno.errors import PlatformError
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.settings import Settings
from dalsegno.store import Store

log = logging.getLogger(__name__)

ACTOR = "dalsegno"
#: How often to look for triggers that came or went, and for the lease.
_LOOK_SECONDS = 1.0


class Role(StrEnum):
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
        self._stopping = threading.Event()
        #: Wakes what runs steps in this process, if it does.
        self._wake: Callable[[], None] = _nobody

    def stop(self) -> None:
        """Begin nothing more; steps that go on are left to other nodes."""
        self._stopping.set()
        self._wake()

    def run(self) -> None:
        engine = self._orchestrator().engine() if Role.WORKERS in self.roles else None
        self._wake = engine.wake if engine else _nobody
        others = [threading.Thread(target=self._watch_triggers, name="triggers")] if Role.TRIGGERS in self.roles else []
        for thread in others:
            thread.start()
        try:
            if engine is not None:
                engine.run(self._stopping.is_set)
            else:
                self._stopping.wait()
        finally:
            self._stopping.set()
            for thread in others:
                thread.join()

    def _orchestrator(self) -> Orchestrator:
        return Orchestrator(self.settings, self.store, clock=self.clock, actor=ACTOR)

    def _watch_triggers(self) -> None:
        orchestrator = self._orchestrator()
        lease = Lease(self.store, "triggers", orchestrator.node.id)

        def start(*arguments: Any) -> None:
            orchestrator.start_by_trigger(*arguments)
            self._wake()

        by_time = TimeTriggers(self.store, orchestrator.versions.active, start)
        wait = 0.0
        while not self._stopping.wait(wait):
            wait = _LOOK_SECONDS
            try:
                next_at = by_time.fire(self.clock()) if lease.is_held() else None
            except PlatformError as error:
                log.warning("the store failed, trying again: %s", error)
                continue
            if next_at is not None:
                wait = min(max((next_at - self.clock()).total_seconds(), 0), _LOOK_SECONDS)
        lease.release()


def _nobody() -> None:
    """There is nobody to be woken here."""
