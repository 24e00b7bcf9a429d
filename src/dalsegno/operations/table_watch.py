"""Looks at the tables that incremental triggers watch, as often as it is worth it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Self

from dalsegno.errors import DalsegnoError
from dalsegno.operations.orchestrator import Orchestrator
from dalsegno.settings import Settings
from dalsegno.store import Store, triggers

if TYPE_CHECKING:
    from dalsegno.engine.table_triggers import TableTriggers

log = logging.getLogger(__name__)

#: How soon a first trigger is noticed, and a failure got over.
_LOOK_SECONDS = 1.0
#: What catalogs and the store are left in peace between two looks.
_SHORTEST_PAUSE = 0.1


class TableWatch(ExitStack):
    """Used by one thread."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        orchestrator: Callable[[], Orchestrator],
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__()
        self.settings = settings
        self.store = store
        self.clock = clock
        self._orchestrator = orchestrator
        self._triggers: TableTriggers | None = None

    def __enter__(self) -> Self:
        return self

    def look(self) -> float:
        """Start what is due; in how many seconds to look again."""
        began = time.monotonic()
        try:
            self._triggers = self._triggers or self._opened()
            if self._triggers is None:
                return _LOOK_SECONDS
            next_at = self._triggers.fire(self.clock())
        except DalsegnoError as error:
            log.warning("tables could not be watched, trying again: %s", error)
            return _LOOK_SECONDS
        except Exception:
            # What stands in tables was written by others, and must not end the watch over the rest.
            log.exception("tables could not be watched, trying again")
            return float(self.settings.trigger_poll_seconds)
        pause = self.settings.trigger_poll_seconds - (time.monotonic() - began)
        if next_at is not None:
            pause = min(pause, (next_at - self.clock()).total_seconds())
        return max(pause, _SHORTEST_PAUSE)

    def _opened(self) -> TableTriggers | None:
        """None as long as no workflow has any: what reads tables takes long to import, and much memory."""
        with self.store.database.reading() as connection:
            if not triggers.of_kind(connection, triggers.INCREMENTAL):
                return None
        from dalsegno.capture.lake import Lake  # noqa: PLC0415
        from dalsegno.engine.table_triggers import TableTriggers  # noqa: PLC0415

        orchestrator = self._orchestrator()
        lake = self.enter_context(Lake.open(self.settings, clock=self.clock))
        return TableTriggers(lake, orchestrator.versions.blueprint, orchestrator.start_by_trigger)
