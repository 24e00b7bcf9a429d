"""Looks at the tables that incremental triggers watch, as often as it is worth it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from dalsegno.errors import DalsegnoError
from dalsegno.store import triggers
from dalsegno.triggers.engine import LOOK_SECONDS, TriggerContext
from dalsegno.triggers.table_triggers.model import IncrementalTrigger

if TYPE_CHECKING:
    from dalsegno.triggers.table_triggers.engine.firing import TableTriggers

log = logging.getLogger(__name__)

#: What catalogs and the store are left in peace between two looks.
_SHORTEST_PAUSE = 0.1


class TableWatcher:
    """Used by one thread."""

    def __init__(self, context: TriggerContext) -> None:
        self.context = context
        self._triggers: TableTriggers | None = None

    def look(self) -> float:
        """Start what is due; in how many seconds to look again."""
        began, poll_seconds = time.monotonic(), self.context.settings.trigger_poll_seconds
        try:
            self._triggers = self._triggers or self._opened()
            if self._triggers is None:
                return LOOK_SECONDS
            next_at = self._triggers.fire(self.context.clock())
        except DalsegnoError as error:
            log.warning("tables could not be watched, trying again: %s", error)
            return LOOK_SECONDS
        except Exception:
            # What stands in tables was written by others, and must not end the watch over the rest.
            log.exception("tables could not be watched, trying again")
            return float(poll_seconds)
        pause = poll_seconds - (time.monotonic() - began)
        if next_at is not None:
            pause = min(pause, (next_at - self.context.clock()).total_seconds())
        return max(pause, _SHORTEST_PAUSE)

    def _opened(self) -> TableTriggers | None:
        """None as long as no workflow has any: what reads tables takes long to import, and much memory."""
        context = self.context
        with context.store.database.reading() as connection:
            if not triggers.of_kind(connection, IncrementalTrigger.kind):
                return None
        from dalsegno.capture.lake import Lake  # noqa: PLC0415
        from dalsegno.triggers.table_triggers.engine.firing import TableTriggers  # noqa: PLC0415

        lake = context.resources.enter_context(Lake.open(context.settings, clock=context.clock))
        return TableTriggers(lake, context.blueprint, context.start)
