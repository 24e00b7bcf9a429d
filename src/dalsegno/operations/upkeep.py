"""What one process at a time does for all of them, from time to time: messages, lateness, what is too old."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dalsegno.errors import DalsegnoError
from dalsegno.operations.callers import NODE
from dalsegno.operations.lateness import Lateness
from dalsegno.operations.notifying import Sender
from dalsegno.operations.retention import Retention
from dalsegno.operations.tracing import Collector, Tracer
from dalsegno.settings import Settings
from dalsegno.store import Store, audit_log

log = logging.getLogger(__name__)

#: What takes long is done less often: it may take this part of the time.
_SHARE = 0.05
#: And what fails again and again is tried less often, but every so many seconds at least.
_LONGEST_WAIT, _COUNTED_FAILURES = 60.0, 10

MayGoOn = Callable[[], bool]


@dataclass
class _Task:
    name: str
    #: How often, in seconds.
    every: float
    do: Callable[[MayGoOn], object]
    next_at: float = 0.0
    #: How often it has failed in a row.
    failures: int = 0


class Upkeep:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Callable[[], datetime],
        *,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stopwatch = stopwatch
        sender, late = Sender(settings, store, clock), Lateness(settings, store, clock)

        def forget_runs(may_go_on: MayGoOn) -> None:
            with audit_log.recording(audit_log.Change(NODE, "admin.clean", clock())):
                Retention(settings, store, clock).forget_runs(may_go_on)

        self._tasks = [
            _Task("sending messages", 1, lambda _: sender.send()),
            _Task("looking for late runs", 10, lambda _: late.tell_of_late_runs()),
            _Task("measuring lags", 60, late.measure),
            _Task("deleting old runs", 3600, forget_runs),
        ]
        if (collector := Collector.from_environment()) is not None:
            self._tasks.append(_Task("telling traces", 2, Tracer(store, collector, clock).tell))

    def look(self, may_go_on: MayGoOn) -> None:
        """Do what it is time for, as long as it is ours to do."""
        for task in self._tasks:
            began = self._stopwatch()
            if began < task.next_at or not may_go_on():
                continue
            self._do(task, may_go_on)
            ended = self._stopwatch()
            wait = min(task.every * 2**task.failures, max(_LONGEST_WAIT, task.every))
            task.next_at = ended + max(wait, (ended - began) / _SHARE)

    @staticmethod
    def _do(task: _Task, may_go_on: MayGoOn) -> None:
        try:
            task.do(may_go_on)
            task.failures = 0
        except DalsegnoError as error:
            task.failures = min(task.failures + 1, _COUNTED_FAILURES)
            log.warning("%s failed, trying again: %s", task.name, error)
        except Exception:
            task.failures = min(task.failures + 1, _COUNTED_FAILURES)
            log.exception("%s failed inside of dalsegno", task.name)
