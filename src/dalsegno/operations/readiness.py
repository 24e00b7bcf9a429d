"""Whether a service can do its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock

from dalsegno.engine.jobs_folder import JobsFolder
from dalsegno.errors import PlatformError
from dalsegno.store import Store
from dalsegno.store.migrations import is_right_schema

#: A loop that has given no sign of life for so long hangs; a store that is busy may hold one up for ten seconds.
_SILENCE_SECONDS = 45.0


class Pulse:
    """When each loop of a service has last been seen at work."""

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._stopwatch = stopwatch
        self._lock = Lock()
        self._beats: dict[str, float] = {}

    def beat(self, loop: str) -> None:
        with self._lock:
            self._beats[loop] = self._stopwatch()

    def silent(self) -> Mapping[str, float]:
        """For how many seconds each loop that hangs has not been seen."""
        with self._lock:
            now = self._stopwatch()
            return {loop: now - at for loop, at in self._beats.items() if now - at > _SILENCE_SECONDS}


def jobs_folder_problems(folder: JobsFolder | None) -> list[str]:
    """Why a node that runs steps claims none. As ``problems``, it names nothing."""
    failed = folder.problem() if folder is not None else None
    return [f"The jobs folder cannot be written: {failed}."] if failed else []


def problems(store: Store, pulse: Pulse, *, is_stopping: bool) -> list[str]:
    """Why the service is not ready; empty if it is. Anybody may read this, so it names nothing."""
    found = ["The service is about to end."] if is_stopping else []
    found += [f"The loop {loop!r} gives no sign of life." for loop in pulse.silent()]
    try:
        with store.database.reading() as connection:
            if not is_right_schema(connection):
                found.append("The store has another schema than this dalsegno expects.")
    except PlatformError:
        found.append("The store cannot be reached.")
    return found
