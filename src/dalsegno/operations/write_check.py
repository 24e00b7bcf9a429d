"""Whether this node can still write to the store. That it can read says little: a disk may be full, a lock be held."""

from __future__ import annotations

import logging
from threading import Lock

from dalsegno.errors import PlatformError
from dalsegno.store import Store, progress

log = logging.getLogger(__name__)

#: How often a node writes something, just to see that it can.
CHECK_SECONDS = 10.0
#: A store that is busy may hold a write up for ten seconds.
_TOO_OLD_SECONDS = 30.0
_NAME = "write check"


class WriteCheck:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()

    def write(self) -> None:
        """Write something, unless another thread is about to."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            with self.store.database.writing() as connection:
                progress.count_up(connection, _NAME)
            self.store.database.confirm_write()
        except PlatformError as error:
            log.warning("the store cannot be written to: %s", error)
        finally:
            self._lock.release()

    def problems(self) -> list[str]:
        """Why the store cannot be written to; empty if it can."""
        if self.store.database.write_age > _TOO_OLD_SECONDS:
            self.write()
        age = self.store.database.write_age
        return [f"The last write to the store succeeded {age:.0f} seconds ago."] if age > _TOO_OLD_SECONDS else []
