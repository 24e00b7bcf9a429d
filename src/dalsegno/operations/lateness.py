"""What is late: runs that have not completed in time, and consumers that are too far behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from dalsegno.clock import from_millis
from dalsegno.engine import notices
from dalsegno.errors import DalsegnoError
from dalsegno.hints import Verb, action, as_command
from dalsegno.model.captures import run_of_actor
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.lags import Lag, lag_of
from dalsegno.settings import Settings
from dalsegno.spec.alerting import alerting_of
from dalsegno.store import CheckpointPosition, Store, lags, outbox, run_queries, run_tables, runs

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Known:
    """What followed from where a table's metadata and a consumer's mark were."""

    location: str | None
    position: Position
    lag: Lag


class Lateness:
    """Used by one thread. It remembers how far behind consumers are: what has not changed is not loaded again."""

    def __init__(self, settings: Settings, store: Store, clock: Callable[[], datetime]) -> None:
        self.settings = settings
        self.store = store
        self.clock = clock
        self._known: dict[tuple[str, TableName], _Known] = {}

    # Runs.

    def tell_of_late_runs(self) -> None:
        """Leave a message for each run that has not completed in time; there is one, however often this is called."""
        now = self.clock()
        with self.store.database.reading() as connection:
            late = [_late(connection, row, now) for row in run_queries.workflow_rows(connection)]
        for channels, found in filter(None, late):
            with self.store.database.writing() as connection:
                for run in found:
                    message = notices.message("run_late", run, "has not completed in time", now)
                    outbox.add(connection, f"run {run['id']} late", channels, message, now)

    # Consumers.

    def measure(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        """Look how far every consumer is behind, and leave a message for those that are too far."""
        marks = self.store.positions()
        with self.store.database.writing() as connection:
            lags.forget_others(connection, [(mark.consumer, str(mark.table)) for mark in marks])
        if not marks:
            return
        # It takes long to import, and where nobody captures it is not needed.
        from dalsegno.capture.lake import Lake  # noqa: PLC0415

        by_table = sorted(marks, key=lambda mark: str(mark.table))
        with Lake.open(self.settings, clock=self.clock) as lake:
            locations = _locations(lake, {mark.table for mark in marks})
            for table, group in groupby(by_table, key=lambda mark: mark.table):
                if not may_go_on():
                    return
                self._measure_table(lake, list(group), locations.get(table))

    def _measure_table(self, lake: Lake, marks: Sequence[CheckpointPosition], location: str | None) -> None:
        changed = [mark for mark in marks if location is None or not self._is_known(mark, location)]
        if changed:
            metadata, problem = _loaded(lake, marks[0].table)
            for mark in changed:
                lag = Lag(None, None, problem) if metadata is None else _lag(metadata, mark)
                self._known[mark.consumer, mark.table] = _Known(location, mark.position, lag)
        for mark in marks:
            lag = self._known[mark.consumer, mark.table].lag
            # One that is behind may be too far by now.
            if mark in changed or lag.oldest_ms is not None:
                self._keep(mark, lag)

    def _is_known(self, mark: CheckpointPosition, location: str) -> bool:
        known = self._known.get((mark.consumer, mark.table))
        return known is not None and (known.location, known.position) == (location, mark.position)

    def _keep(self, mark: CheckpointPosition, lag: Lag) -> None:
        now, key = self.clock(), (mark.consumer, str(mark.table))
        oldest_at = None if lag.oldest_ms is None else from_millis(lag.oldest_ms)
        with self.store.database.writing() as connection:
            lags.save(connection, key, snapshots=lag.snapshots, oldest_at=oldest_at, problem=lag.problem, now=now)
            _tell_of_lag(connection, mark, oldest_at, now)


def _locations(lake: Lake, tables: Collection[TableName]) -> dict[TableName, str]:
    """Where the metadata of tables is, as far as their catalogs say."""
    found: dict[TableName, str] = {}
    for catalog, group in groupby(sorted(tables), key=lambda table: table.catalog):
        # Whatever is wrong with it, is said of each table.
        with suppress(DalsegnoError, OSError):
            found |= lake.catalog(catalog).metadata_locations(list(group), lake.settings.io_threads)
    return found


def _loaded(lake: Lake, table: TableName) -> tuple[Mapping[str, Any] | None, str | None]:
    """Its metadata, or what is wrong."""
    try:
        return lake.load(table).metadata, None
    except (DalsegnoError, OSError) as error:
        return None, str(error)


def _late(
    connection: Connection, workflow: Mapping[str, Any], now: datetime
) -> tuple[Sequence[str], list[Mapping[str, Any]]] | None:
    """Whom to tell of which runs."""
    alerting = alerting_of(workflow["properties"])
    if alerting.complete_within is None or not alerting.on_late:
        return None
    table = run_tables.runs
    found = runs.run_rows(
        connection,
        table.c.workflow_id == workflow["id"],
        table.c.status.in_(runs.OPEN),
        table.c.created_at < now - alerting.complete_within,
    )
    return (alerting.on_late, [dict(row) for row in found]) if found else None


def _lag(metadata: Mapping[str, Any], mark: CheckpointPosition) -> Lag:
    from dalsegno.iceberg.history import history_of  # noqa: PLC0415 - as above

    try:
        return lag_of(history_of(metadata, mark.position.branch, table=mark.table), mark.position)
    except DalsegnoError as error:
        return Lag(None, None, error.message)


def _tell_of_lag(connection: Connection, mark: CheckpointPosition, oldest_at: datetime | None, now: datetime) -> None:
    """One message for each time that the lag becomes too much; it may do so again once it has been less."""
    key = (mark.consumer, str(mark.table))
    told_at = lags.told_at(connection, key)
    run = run_of_actor(mark.moved_by)
    row = run_queries.workflow_row(connection, run[0]) if run else None
    alerting = alerting_of(row["properties"] if row else {})
    is_too_much = alerting.max_lag is not None and oldest_at is not None and now - oldest_at > alerting.max_lag
    if is_too_much == (told_at is not None):
        return
    if not lags.set_told(connection, key, was=told_at, now=now if is_too_much else None) or not is_too_much:
        return
    message = {
        "kind": "lag",
        "title": f"{mark.consumer} is more than {alerting.max_lag} behind {mark.table}",
        "text": f"The oldest snapshot that it has not processed is of {oldest_at:%Y-%m-%d %H:%M} UTC.",
        "hint": as_command(action("See what is new", Verb.PLAN, table=str(mark.table), consumer=mark.consumer)),
        "workflow": run[0] if run else None,
        "consumer": mark.consumer,
        "table": str(mark.table),
        "at": now.isoformat(),
    }
    outbox.add(connection, f"lag {mark.consumer} {mark.table} {now.isoformat()}", alerting.on_lag, message, now)
