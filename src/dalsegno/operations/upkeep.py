"""What one process at a time does for all of them, from time to time: messages, lateness, what is too old."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dalsegno.errors import DalsegnoError
from dalsegno.operations.lateness import Lateness
from dalsegno.operations.notifying import Sender
from dalsegno.operations.retention import Retention
from dalsegno.settings import Settings
from dalsegno.store import Store

log = logging.getLogger(__name__)

#: What takes long is done less often: it may take this part of the time.
_SHARE = 0.05

MayGoOn = Callable[[], bool]


@dataclass
class _Task:
    name: str
    #: How often, in seconds.
    every: float
    do: Callable[[MayGoOn], object]
    next_at: float = 0.0


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
        self._tasks = [
            _Task("sending messages", 1, lambda _: sender.send()),
            _Task("looking for late runs", 10, lambda _: late.tell_of_late_runs()),
            _Task("measuring lags", 60, late.measure),
            _Task("deleting old runs", 3600, Retention(settings, store, clock).forget_runs),
        ]

    def look(self, may_go_on: MayGoOn) -> None:
        """Do what it is time for, as long as it is ours to do."""
        for task in self._tasks:
            began = self._stopwatch()
            if began < task.next_at or not may_go_on():
                continue
            try:
                task.do(may_go_on)
            except DalsegnoError as error:
                log.warning("%s failed, trying again: %s", task.name, error)
            except Exception:
                log.exception("%s failed inside of dalsegno", task.name)
            ended = self._stopwatch()
            task.next_at = ended + max(task.every, (ended - began) / _SHARE)
