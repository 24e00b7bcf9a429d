"""Sessions that may still be of use for a while, and are ended then; at the latest when this process ends."""

from __future__ import annotations

import atexit
import queue
import threading
import time
from contextlib import suppress

from dalsegno.spark.connect import Session

#: How long the end of this process waits for the sessions' ends.
_PATIENCE_SECONDS = 3.0


class SessionReaper:
    """Ends sessions so many seconds after it was told to."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: queue.Queue[tuple[float, Session]] = queue.Queue()
        self._is_urgent = threading.Event()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def end(self, session: Session) -> None:
        self._waiting.put((time.monotonic() + self._seconds, session))
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="spark-sessions", daemon=True)
                self._thread.start()
                atexit.register(self._hurry)

    def _work(self) -> None:
        while True:
            due, session = self._waiting.get()
            self._is_urgent.wait(max(due - time.monotonic(), 0))
            # A server that is gone has no sessions; any other forgets them in time.
            with suppress(Exception):
                session.release_own()
            self._waiting.task_done()

    def _hurry(self) -> None:
        self._is_urgent.set()
        with self._waiting.all_tasks_done:
            self._waiting.all_tasks_done.wait_for(lambda: not self._waiting.unfinished_tasks, _PATIENCE_SECONDS)
