"""Anybody can make the server write lines to its log. A few of each kind are enough."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

_MOST, _SECONDS = 20, 60.0
#: asyncio writes a line for each connection that it cannot accept, uvicorn one for each request it cannot read.
_LIMITED = ("asyncio", "uvicorn.error", "dalsegno.server.authentication", "dalsegno.server.connections")
_MOST_KINDS = 1000


class RateLimit(logging.Filter):
    """Passes a few records of each kind per minute. The next one that passes says how many did not."""

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._stopwatch = stopwatch
        self._lock = Lock()
        #: By kind: when its minute began, and how many there were since then.
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.msg)
        with self._lock:
            now = self._stopwatch()
            began, count = self._seen.get(kind, (now, 0))
            if now - began < _SECONDS:
                self._seen[kind] = began, count + 1
                return count < _MOST
            if len(self._seen) >= _MOST_KINDS:
                self._seen.clear()
            self._seen[kind] = now, 1
        if count > _MOST:
            record.msg = f"{kind} (and {count - _MOST} more like this before)"
        return True


@contextmanager
def limited_logs() -> Iterator[None]:
    limit, loggers = RateLimit(), [logging.getLogger(name) for name in _LIMITED]
    for logger in loggers:
        logger.addFilter(limit)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(limit)
