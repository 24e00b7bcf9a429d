"""Whether this machine can run jobs at all: a node that cannot write its jobs folder claims no steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from dalsegno.private_files import close_to_others, make_private_folder
from dalsegno.steps.disks import write_failure

log = logging.getLogger(__name__)

#: How long the result of a check is good for.
CHECK_SECONDS = 3.0


class JobsFolder:
    """The folder in which jobs keep their files. Any number of threads may ask."""

    def __init__(self, folder: Path, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._stopwatch = stopwatch
        self._lock = Lock()
        self._problem: str | None = None
        self._checked_at: float | None = None

    def problem(self) -> str | None:
        """Why nothing can be written there, as of a few seconds ago; None if all is well."""
        with self._lock:
            if self._checked_at is None or self._stopwatch() - self._checked_at >= CHECK_SECONDS:
                self._check()
            return self._problem

    def problem_now(self) -> str | None:
        """As ``problem``, checked at this moment."""
        with self._lock:
            self._check()
            return self._problem

    def _check(self) -> None:
        before, self._problem = self._problem, _failure(self.folder)
        self._checked_at = self._stopwatch()
        if self._problem and self._problem != before:
            log.error("this node claims no steps: the jobs folder %s cannot be written: %s", self.folder, self._problem)
        elif before and not self._problem:
            log.warning("this node claims steps again: the jobs folder %s can be written", self.folder)


def _failure(folder: Path) -> str | None:
    try:
        make_private_folder(folder)
        close_to_others(folder)
    except OSError as error:
        return error.strerror or type(error).__name__
    return write_failure(folder)
