"""A duty that one process at a time has, such as watching triggers.

No clock of any machine is trusted: whoever waits for the duty takes it over when its owner has given no sign of life
for a while, by the waiting process's own stopwatch; and the owner gives it up earlier, by its own. So a clock that
jumps makes no difference. A process that was halted in the middle of something may still believe to have the duty: what
it does then has to be refused by the transaction that would save it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dalsegno.errors import PlatformError
from dalsegno.store import Store, leases
from dalsegno.store.row_queries import Row

log = logging.getLogger(__name__)

#: How often the owner gives a sign of life, after how long without one it gives up, and another takes over.
_BEAT_SECONDS = 2.0
_GIVEN_UP_SECONDS = 8.0
_TAKEN_OVER_SECONDS = 12.0


class Lease:
    """This process's view of a duty. It is used by one thread."""

    def __init__(self, store: Store, name: str, owner: str, *, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.name = name
        self.owner = owner
        self._stopwatch = stopwatch
        #: The term that is ours, and when it was last confirmed.
        self.term: int | None = None
        self._confirmed = 0.0
        #: Somebody else's duty as we last saw it, and since when it looks so.
        self._seen: Row | None = None
        self._seen_since = stopwatch()

    def is_held(self) -> bool:
        """Whether the duty is ours now; it is renewed or taken over, if it is time for that."""
        now = self._stopwatch()
        try:
            if self.term is not None and now - self._confirmed >= _BEAT_SECONDS:
                self._renew(self.term, now)
            if self.term is None:
                self._take_over(now)
        except PlatformError as error:
            log.warning("the store failed, so the lease on %s was not renewed: %s", self.name, error)
        return self.term is not None and self._stopwatch() - self._confirmed < _GIVEN_UP_SECONDS

    def release(self) -> None:
        """Let another have it at once."""
        if self.term is not None:
            with suppress(PlatformError), self.store.database.writing() as connection:
                leases.release(connection, self.name, self.owner, self.term)
            self.term = None

    def _renew(self, term: int, now: float) -> None:
        with self.store.database.writing() as connection:
            is_ours = leases.renew(connection, self.name, self.owner, term)
        if is_ours:
            self._confirmed = now
        else:
            log.warning("another process has taken over %s", self.name)
            self.term, self._seen, self._seen_since = None, None, now

    def _take_over(self, now: float) -> None:
        with self.store.database.reading() as connection:
            found = leases.lease_row(connection, self.name)
        if found != self._seen:
            self._seen, self._seen_since = found, now
        is_free = found is None or found["owner"] is None
        if not is_free and now - self._seen_since < _TAKEN_OVER_SECONDS:
            return
        with self.store.database.writing() as connection:
            taken = leases.take(connection, self.name, self.owner, found)
        if taken is not None:
            log.info("takes care of %s (term %s)", self.name, taken["term"])
            self.term, self._confirmed = taken["term"], now
