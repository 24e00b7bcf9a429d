"""What tables have that their consumers have not processed, looked at again and again.

A look asks each catalog once where the metadata of all tables is, and the store once where all consumers stand. Only
where one of both has changed is a table loaded. What is remembered of a table is what was found, not its metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.decisions import next_range, with_start
from dalsegno.capture.renames import checkpoint_of
from dalsegno.errors import DalsegnoError, DataError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.snapshots import History, Position
from dalsegno.model.tables import TableName
from dalsegno.triggers.table_triggers.model import Unprocessed, Watch
from dalsegno.triggers.table_triggers.plan.unprocessed import refused, unprocessed

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """What a table and a consumer were like, and what followed from it."""

    #: None: there is no such table.
    location: str | None
    position: Position | None
    found: Unprocessed | None


class WatchedTables:
    """Used by one thread."""

    def __init__(self, context: CaptureContext) -> None:
        self.context = context
        self._seen: dict[Watch, _Seen] = {}
        #: What was said about a catalog or a table last, so that it is not said at every look.
        self._said: dict[object, str] = {}

    def look(self, watches: Collection[Watch]) -> Mapping[Watch, Unprocessed | None]:
        """What each table has; those that could not be looked at are left out."""
        if not watches:
            self._seen = {}
            return {}
        locations = self._locations({watch.table for watch in watches})
        positions = self.context.store.standing()
        seen: dict[Watch, _Seen] = {}
        changed: dict[TableName, list[tuple[Watch, Position | None]]] = {}
        for watch in watches:
            if watch.table not in locations:
                continue
            location, position = locations[watch.table], positions.get((watch.consumer, str(watch.table)))
            before = self._seen.get(watch)
            if before is not None and before.location == location and before.position == position:
                seen[watch] = before
            elif location is None:
                self._say(watch.table, f"{watch.table} is watched, but is not there")
                seen[watch] = _Seen(None, position, None)
            else:
                changed.setdefault(watch.table, []).append((watch, position))
        self._seen = seen | self._looked_into(changed)
        return {watch: each.found for watch, each in self._seen.items()}

    def _locations(self, tables: Collection[TableName]) -> dict[TableName, str | None]:
        """Of tables whose catalog answers; None: there is no such table."""
        by_catalog: dict[str, list[TableName]] = {}
        for table in sorted(tables):
            by_catalog.setdefault(table.catalog, []).append(table)
        with ThreadPoolExecutor(len(by_catalog)) as pool:
            answers = pool.map(self._asked, by_catalog, by_catalog.values())
            return {table: location for answer in answers for table, location in answer.items()}

    def _asked(self, catalog: str, tables: Sequence[TableName]) -> dict[TableName, str | None]:
        try:
            found = self.context.tables.catalog(catalog).metadata_locations(tables, self.context.settings.io_threads)
        except DalsegnoError as error:
            self._say(catalog, error.message)
            return {}
        self._said.pop(catalog, None)
        return {table: found.get(table) for table in tables}

    def _looked_into(self, changed: Mapping[TableName, Sequence[tuple[Watch, Position | None]]]) -> dict[Watch, _Seen]:
        if not changed:
            return {}
        seen: dict[Watch, _Seen] = {}
        is_for_threads = all(self.context.tables.catalog(table.catalog).is_for_threads for table in changed)
        with ThreadPoolExecutor(self.context.settings.io_threads if is_for_threads else 1) as pool:
            for loaded, concerned in zip(pool.map(self._loaded, changed), changed.values(), strict=True):
                if loaded is not None:
                    seen |= {watch: self._judged(loaded, watch, position) for watch, position in concerned}
        return seen

    def _loaded(self, table: TableName) -> LoadedTable | None:
        try:
            return self.context.tables.load(table)
        except DalsegnoError as error:
            self._say(table, error.message)
            return None

    def _judged(self, loaded: LoadedTable, watch: Watch, position: Position | None) -> _Seen:
        try:
            history = loaded.history(watch.branch)
        except (DalsegnoError, KeyError, TypeError) as error:
            # A table that cannot be captured at all, metadata that makes no sense, a branch that is not there yet.
            self._say(watch.table, f"{watch.table} cannot be watched: {error}")
            return _Seen(loaded.metadata_location, position, None)
        self._said.pop(watch.table, None)
        try:
            found = self._unprocessed(loaded, watch, history, position)
        except DataError as error:
            found = refused(history.head, position, error)
        except DalsegnoError as error:
            # Another look, then: what was not found out is not remembered.
            self._say(watch.table, error.message)
            return _Seen(None, position, None)
        except (KeyError, TypeError) as error:
            self._say(watch.table, f"{watch.table} cannot be watched: {error!r}")
            return _Seen(loaded.metadata_location, position, None)
        return _Seen(loaded.metadata_location, position, found)

    def _unprocessed(
        self, loaded: LoadedTable, watch: Watch, history: History, position: Position | None
    ) -> Unprocessed | None:
        tables, store = self.context.tables, self.context.store
        if position is None or position.table_uuid != history.table_uuid:
            checkpoint = checkpoint_of(tables, store, watch, loaded, store.positions(watch.consumer))
            watch, position = with_start(watch, checkpoint), checkpoint.position
        decision = partial(next_range, tables.catalog_of(watch.table), loaded)
        return unprocessed(watch, history, position, decision)

    def _say(self, what: object, message: str) -> None:
        if self._said.get(what) != message:
            log.warning("watching tables: %s", message)
        self._said[what] = message
