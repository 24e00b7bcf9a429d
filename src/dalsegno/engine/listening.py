"""Hears of what other processes have left for this one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dalsegno.errors import PlatformError
from dalsegno.store import Store, waking

log = logging.getLogger(__name__)

#: How long to listen before looking whether to stop.
_LISTEN_SECONDS = 5.0
#: How long what we announce ourselves may take to be heard.
_HEARD_SECONDS = 2.0
#: When to try again after a failure; and where nothing can be heard, as through a pooler that shares connections.
_PAUSE_SECONDS, _DEAF_SECONDS = 1.0, 60.0


class Listener:
    """A thread that calls ``wake`` whenever something was announced in the store."""

    def __init__(self, store: Store, wake: Callable[[], None]) -> None:
        self.store = store
        self.wake = wake
        #: Whether announcements are heard now.
        self.is_listening = False
        self._is_over = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        if self.store.database.is_sqlite:
            yield
            return
        self._is_over.clear()
        thread = threading.Thread(target=self._listen, name="listener", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            # It hears us, and ends.
            with suppress(PlatformError):
                self._announce()
            thread.join(_PAUSE_SECONDS)

    def _listen(self) -> None:
        pause = 0.0
        while not self._is_over.wait(pause):
            pause = _PAUSE_SECONDS
            try:
                with waking.listening(self.store.database) as ear:
                    if not self._is_heard(ear):
                        log.warning("nothing that is announced in the store is heard here: looking often instead")
                        pause = _DEAF_SECONDS
                        continue
                    self._hear(ear)
            except PlatformError as error:
                log.warning("not listening to the store, trying again: %s", error)
            finally:
                self.is_listening = False

    def _is_heard(self, ear: waking.Ear) -> bool:
        self._announce()
        return ear.hears(_HEARD_SECONDS)

    def _announce(self) -> None:
        with self.store.database.writing() as connection:
            waking.announce(connection)

    def _hear(self, ear: waking.Ear) -> None:
        self.is_listening = True
        # Something may have been announced before.
        self.wake()
        while not self._is_over.is_set():
            if ear.hears(_LISTEN_SECONDS):
                self.wake()
