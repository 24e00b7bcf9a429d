"""The lake: catalogs, a store, and what a user can do with them."""

from __future__ import annotations

import getpass
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from dalsegno import settings as settings_module
from dalsegno.capture import capturing, checkpoints, history_pins, settling
from dalsegno.capture.changes import Changes
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.lake_reader import LakeReader
from dalsegno.capture.queries import Engine, query_of
from dalsegno.capture.requests import CaptureOptions, capture_request, table_names
from dalsegno.capture.settling import Cleaned, Committed
from dalsegno.capture.tables import Tables
from dalsegno.capture.views import metadata_location
from dalsegno.clock import Clock, utc_now
from dalsegno.errors import UserError
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.object_stores import duckdb_setup
from dalsegno.iceberg.pins import Pin
from dalsegno.model.captures import Capture, CapturedTable, CaptureState, Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.settings import Settings
from dalsegno.store import Store

if TYPE_CHECKING:
    from dalsegno.capture.checking import CatalogReport
    from dalsegno.capture.planning import TablePlan
    from dalsegno.capture.rebuilding import Rebuilt


class Lake(LakeReader):
    """Tables, and what their consumers have processed. Any number of processes may share a store."""

    store: Store

    def __init__(self, settings: Settings, store: Store, *, clock: Clock = utc_now, actor: str | None = None) -> None:
        super().__init__(settings, store)
        self.clock = clock
        #: Who is recorded as having moved a checkpoint.
        self.actor = actor or f"{_user()}@{socket.gethostname()}"
        self._tables = Tables(settings)

    @classmethod
    def open(cls, settings: Settings | Path | str | None = None, *, clock: Clock = utc_now) -> Self:
        """Open with settings, with a settings file, or with the nearest ``dalsegno.toml``."""
        if not isinstance(settings, Settings):
            settings = settings_module.load(Path(settings) if settings else None)
        return cls(settings, Store.open(settings.store), clock=clock)

    def close(self) -> None:
        super().close()
        self._tables.close()

    @property
    def context(self) -> CaptureContext:
        """What the verbs work with, as it is now: the clock and the actor may be replaced."""
        return CaptureContext(self._tables, self.store, self.clock, self.actor)

    # Capture and what follows.

    def capture(self, *tables: str, consumer: str, **options: Unpack[CaptureOptions]) -> Changes:
        """Capture what changed in the tables since the consumer's checkpoint, as change tables.

        A capture that was neither committed nor abandoned is handed out again. ``CaptureOptions`` lists the options.
        """
        request = capture_request(self.name, tables, consumer, **options)
        return Changes.of(self.context, request, capturing.capture(self.context, request))

    def plan(
        self,
        *tables: str,
        consumer: str,
        lookback_days: int = 14,
        event_time: str | None = None,
        **options: Unpack[CaptureOptions],
    ) -> list[TablePlan]:
        """What a capture with the same options would do, and what it would cost, without doing it."""
        from dalsegno.capture import planning  # noqa: PLC0415 - not for a capture

        request = capture_request(self.name, tables, consumer, **options)
        return planning.plan(self.context, request, lookback_days=lookback_days, event_time=event_time)

    def query(self, capture_id: str, *, engine: str = "spark", table: str | None = None) -> str:
        """The changed rows of a capture with their ``_change_type``, as a query for an engine."""
        captured = self._captured(capture_id, table)
        return query_of(captured, engine, partial(metadata_location, self._tables, captured))

    def query_setup(self, capture_id: str, *, engine: str = "spark", table: str | None = None) -> tuple[str, ...]:
        """The statements that an engine needs before the query, to reach the files; they hold no secret."""
        if engine != Engine.DUCKDB:
            return ()
        return duckdb_setup(self.settings.catalog(self._captured(capture_id, table).table.catalog))

    def _captured(self, capture_id: str, table: str | None) -> CapturedTable:
        """The table of a capture that is to be queried."""
        capture = self.store.capture(capture_id)
        if capture.state is not CaptureState.READY:
            raise UserError(f"Capture {capture.id} is {capture.state}, so there is nothing to query.")
        self.refuse_foreign_rows(capture)
        chosen = [c for c in capture.tables if table is None or c.table == self.name(table)]
        if len(chosen) != 1:
            names = ", ".join(str(captured.table) for captured in capture.tables)
            raise UserError(f"Capture {capture.id} is of {names}.", hint="Name one of them as 'table'.")
        return chosen[0]

    def commit(self, capture_id: str, *others: str) -> Committed:
        """Move the checkpoint to the end of the capture's range, then drop its change tables.

        Captures that one step has consumed together are committed together.
        """
        return settling.commit(self.context, [capture_id, *others])

    def refuse_foreign_rows(self, capture: Capture) -> None:
        """Raise if somebody else wrote to a change table: a job that reads it does not read what was captured."""
        settling.refuse_foreign_rows(self._tables, capture)

    def abandon(self, capture_id: str, *, reason: str = "abandoned by hand") -> Capture:
        """Abandon a capture. The next capture covers the same range."""
        return settling.abandon(self.context, capture_id, reason)

    def drop(self, capture_id: str) -> Capture:
        """Remove the change tables of a capture that is committed or abandoned."""
        return settling.drop(self.context, capture_id)

    def remove_change_tables(self, capture: Capture) -> None:
        """Drop the change tables and delete the files that the capture wrote; borrowed files stay."""
        settling.remove_change_tables(self._tables, capture)

    def tidy_up(self, capture_id: str) -> tuple[str, ...]:
        """Remove what a capture that was committed leaves behind; what could not be removed is left for ``clean``."""
        return settling.tidy_up(self.context, self.store.capture(capture_id), release=True)

    def clean(self) -> Cleaned:
        """Abandon expired captures, and remove what settled captures left behind."""
        return settling.clean(self.context)

    # Checkpoints.

    def position(self, consumer: str, table: str) -> Position | None:
        """Where a consumer stands on a table, whatever the table was called before; None before its first commit."""
        return checkpoints.position_of(self.context, consumer, self.name(table))

    def set_checkpoint(
        self,
        table: str,
        *,
        consumer: str,
        to: str,
        branch: str | None = None,
        reason: str = "set by hand",
        reprocess: bool = False,
    ) -> Checkpoint:
        """Move a checkpoint by hand, to earliest, latest, a snapshot's id or a moment.

        ``reprocess``: also to where rows are handed out again that count as processed.
        """
        return checkpoints.set_checkpoint(
            self.context, self.name(table), consumer, to, branch=branch, reason=reason, reprocess=reprocess
        )

    def rebuild_checkpoints(self, *targets: str, consumer: str | None = None, is_dry_run: bool = False) -> Rebuilt:
        """Set checkpoints to where the tables written for captures say, if the store has none or older ones."""
        from dalsegno.capture import rebuilding  # noqa: PLC0415 - not for a capture

        return rebuilding.rebuild(self.context, table_names(self.name, targets), consumer, is_dry_run=is_dry_run)

    def hold(self, name: TableName, consumer: str) -> None:
        """Move the consumer's pin to its checkpoint: what is processed may expire, what came since may not."""
        history_pins.pin_checkpoint(self.context, name, consumer)

    def pin(self, table: LoadedTable, consumer: str, after: Position) -> tuple[LoadedTable, Pin]:
        """Hold all that came after a position; the table as it is then."""
        return history_pins.pin(self.context, table, consumer, after)

    # Catalogs.

    def catalog(self, name: str) -> Catalog:
        return self._tables.catalog(name)

    def check_catalogs(self, name: str | None = None) -> list[CatalogReport]:
        """What each catalog lets us do."""
        from dalsegno.capture import checking  # noqa: PLC0415 - not for a capture

        names = [name] if name else sorted(self.settings.catalogs)
        return [checking.check(self.catalog(each), self.settings.change_namespace, self.clock()) for each in names]

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Every table of a catalog."""
        opened = self.catalog(catalog or self.settings.default_catalog)
        return sorted(name for namespace in opened.namespaces() for name in opened.tables(namespace))

    def load(self, name: TableName) -> LoadedTable:
        return self._tables.load(name)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
