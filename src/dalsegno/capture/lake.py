"""The lake: catalogs, a store, and what a user can do with them."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from dalsegno import settings as settings_module
from dalsegno.capture import capturing, checking, chosen_names, missing_tables, planning, rebuilding
from dalsegno.capture.changes import Changes
from dalsegno.capture.consumers import checked_consumer
from dalsegno.capture.details import DetailOptions
from dalsegno.capture.key_columns import Keys, keys_by_table
from dalsegno.capture.lake_reader import LakeReader
from dalsegno.capture.queries import query_of
from dalsegno.capture.renames import refuse_pending_elsewhere, standing
from dalsegno.capture.scratch import remove_left_over
from dalsegno.capture.views import metadata_location
from dalsegno.clock import Clock, to_millis, utc_now
from dalsegno.errors import CapturePending, CaptureSettled, DalsegnoError, DataError, UnknownName, UserError
from dalsegno.iceberg import change_table, pins, views
from dalsegno.iceberg.catalogs import Catalog, LoadedTable, open_catalog
from dalsegno.iceberg.history import MAIN, history_of
from dalsegno.model.captures import Capture, CaptureState, Checkpoint, capture_spec_of
from dalsegno.model.snapshots import Position
from dalsegno.model.starts import Bound, Start, parse_end, parse_start
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import may_reprocess, starting_position
from dalsegno.settings import Settings
from dalsegno.store import Store
from dalsegno.store.refusals import settle_first


@dataclass(frozen=True)
class Committed:
    """What a commit did."""

    checkpoint: Checkpoint
    #: False where the capture had been committed before.
    is_new: bool
    #: What is left for ``clean`` to do, and why; the commit itself is done.
    left_over: tuple[str, ...]


@dataclass(frozen=True)
class Cleaned:
    """What a clean-up did."""

    abandoned: tuple[str, ...]
    dropped: tuple[str, ...]
    #: The namespaces of clones that an audit left behind.
    scratch: tuple[str, ...]
    #: What could not be removed, and why.
    left_over: tuple[str, ...]
    #: Captures whose time is over, but behind which work was begun, and by whom.
    kept: tuple[str, ...] = ()


class Lake(LakeReader):
    """Tables, and what their consumers have processed. Any number of processes may share a store."""

    store: Store

    def __init__(self, settings: Settings, store: Store, *, clock: Clock = utc_now, actor: str | None = None) -> None:
        super().__init__(settings, store)
        self.clock = clock
        #: Who is recorded as having moved a checkpoint.
        self.actor = actor or f"{_user()}@{socket.gethostname()}"
        self._catalogs: dict[str, Catalog] = {}

    @classmethod
    def open(cls, settings: Settings | Path | str | None = None, *, clock: Clock = utc_now) -> Self:
        """Open with settings, with a settings file, or with the nearest ``dalsegno.toml``."""
        if not isinstance(settings, Settings):
            settings = settings_module.load(Path(settings) if settings else None)
        return cls(settings, Store.open(settings.store), clock=clock)

    def close(self) -> None:
        super().close()
        for catalog in self._catalogs.values():
            catalog.close()

    # Capture and what follows.

    def capture(
        self,
        *tables: str,
        consumer: str,
        start: str | None = None,
        upto: str | None = None,
        max_snapshots: int | None = None,
        max_bytes: int | None = None,
        branch: str = MAIN,
        ranges: Sequence[str] = (),
        partitions: bool | None = None,
        changes: str | None = None,
        operations: Sequence[str] | None = None,
        keys: Keys = (),
        mode: str | None = None,
        target: str | None = None,
        is_refresh: bool = False,
    ) -> Changes:
        """Everything that was added to the tables since the consumer's checkpoint, as change tables.

        A capture that was neither committed nor abandoned is handed out again. ``start`` (earliest, latest, full, a
        snapshot's id or a moment) says where a consumer without a checkpoint begins; ``upto`` (a snapshot's id or a
        moment) leaves what came later for the next capture, and so do ``max_snapshots`` and ``max_bytes``; ``ranges``
        names columns whose smallest and largest value are wanted; ``partitions`` lists the touched partitions, by
        default if there are few files. ``mode`` "view" makes a view of the source's history instead of a change table.
        ``keys`` are the columns that tell rows apart: of every table, or by table, as a mapping or as ``table:column``.
        ``target`` is what the change table is to be called; captures come under the same name one after the other.
        ``is_refresh``: what is written for the capture takes the place of what was written before.
        """
        names, chosen = self._names(tables), None if target is None else self.name(target)
        if chosen is not None:
            chosen_names.check(chosen, names)
        shared, own = keys_by_table(keys, names, self.name)
        request = capturing.Request(
            tables=names,
            consumer=checked_consumer(consumer),
            branch=branch,
            start=_start(start),
            end=None if upto is None else parse_end(upto),
            bound=Bound(max_snapshots, max_bytes),
            spec=capture_spec_of(changes, operations, shared, mode, has_keys=own.keys() >= set(names)),
            options=DetailOptions(tuple(ranges), partitions, is_refresh),
            target=chosen,
            keys=own,
        )
        return Changes.of(self, request, capturing.capture(self, request))

    def query(self, capture_id: str, *, engine: str = "spark", table: str | None = None) -> str:
        """The changed rows of a capture with their ``_change_type``, as a query for an engine."""
        capture = self.store.capture(capture_id)
        if capture.state is not CaptureState.READY:
            raise UserError(f"Capture {capture.id} is {capture.state}, so there is nothing to query.")
        self.refuse_foreign_rows(capture)
        chosen = [c for c in capture.tables if table is None or c.table == self.name(table)]
        if len(chosen) != 1:
            names = ", ".join(str(captured.table) for captured in capture.tables)
            raise UserError(f"Capture {capture.id} is of {names}.", hint="Choose one of them with --table.")
        return query_of(chosen[0], engine, partial(metadata_location, self, chosen[0]))

    def plan(
        self,
        *tables: str,
        consumer: str,
        start: str | None = None,
        upto: str | None = None,
        max_snapshots: int | None = None,
        max_bytes: int | None = None,
        branch: str = MAIN,
        changes: str | None = None,
        operations: Sequence[str] | None = None,
        keys: Keys = (),
        mode: str | None = None,
        lookback_days: int = 14,
        event_time: str | None = None,
    ) -> list[planning.TablePlan]:
        """What a capture of the same parameters would do, and what it would cost, without doing it."""
        names = self._names(tables)
        shared, own = keys_by_table(keys, names, self.name)
        request = planning.PlanRequest(
            tables=names,
            consumer=checked_consumer(consumer),
            branch=branch,
            start=_start(start),
            end=None if upto is None else parse_end(upto),
            bound=Bound(max_snapshots, max_bytes),
            spec=capture_spec_of(changes, operations, shared, mode, has_keys=own.keys() >= set(names)),
            keys=own,
            lookback_days=lookback_days,
            event_time=event_time,
        )
        return planning.plan(self, request)

    def commit(self, capture_id: str, *others: str) -> Committed:
        """Move the checkpoint to the end of the capture's range, then drop its change tables.

        Captures that one step has consumed together are committed together.
        """
        capture, *more = [self.store.capture(each) for each in (capture_id, *others)]
        for each in (capture, *more):
            self.refuse_foreign_rows(each)
        commit = self.store.commit(capture.id, *(each.id for each in more), by=self.actor, now=self.clock())
        problems = [problem for each in (capture, *more) for problem in self._tidy_up(each, release=True)]
        return Committed(commit.checkpoint, commit.is_new, tuple(problems))

    def refuse_foreign_rows(self, capture: Capture) -> None:
        """Raise if somebody else wrote to a change table: what is read of it is not what was captured."""
        if capture.state is not CaptureState.READY:
            return
        for captured in capture.tables:
            for role, name in () if captured.is_view else captured.tables.items():
                table = None
                # One that is gone, or that cannot be looked at, says nothing against what was processed.
                with suppress(DalsegnoError):
                    table = change_table.find(self.catalog(name.catalog), name)
                if table is not None and change_table.has_other_rows(table, capture.id, captured, role):
                    raise DataError(
                        f"Somebody else wrote to {name} since capture {capture.id} made it, so it does not hold what "
                        "was captured. The checkpoint was not moved.",
                        hint="Take back what was written from it, if anything was: dalsegno undo "
                        f"{capture.id}. Then run it again: the next capture makes the table anew.",
                    )

    def abandon(self, capture_id: str, *, reason: str = "abandoned by hand") -> Capture:
        """Give a capture up: the next one takes its range again."""
        capture = self.store.capture(capture_id)
        abandoned = self.store.abandon(capture.id, by=self.actor, now=self.clock(), reason=reason)
        self._tidy_up(abandoned, release=False)
        return self.store.capture(capture.id)

    def drop(self, capture_id: str) -> Capture:
        """Remove the change tables of a capture that is committed or abandoned."""
        capture = self.store.capture(capture_id)
        if capture.state.is_pending:
            raise UserError(
                f"Capture {capture.id} of {capture.consumer!r} is {capture.state}: its change table is still needed.",
                actions=settle_first(capture.id),
            )
        self.remove_change_tables(capture)
        return self.store.mark_dropped(capture.id, self.clock())

    def tidy_up(self, capture_id: str) -> tuple[str, ...]:
        """Remove what a capture that was committed leaves behind; what could not be removed is left for ``clean``."""
        return self._tidy_up(self.store.capture(capture_id), release=True)

    def clean(self) -> Cleaned:
        """Give up captures whose time is over, and remove what settled captures left behind."""
        now = self.clock()
        abandoned: list[str] = []
        dropped: list[str] = []
        left_over: list[str] = []
        kept: list[str] = []
        for capture in self.store.captures(pending_only=True):
            if capture.expires_at > now:
                continue
            if why := self.store.is_worked_on(capture.id):
                kept.append(f"{capture.id}: {why}")
                continue
            with suppress(CaptureSettled, CapturePending):
                self.store.abandon(capture.id, by=self.actor, now=now, reason="its time was over")
                abandoned.append(capture.id)
        every = self.store.captures()
        settled = [capture for capture in every if not capture.state.is_pending]
        # A name that a user chose passes from capture to capture.
        in_use = {name for capture in every if capture.state.is_pending for name in _names_of(capture)}
        registered = self._registered(settled) - in_use
        for capture in settled:
            names = _names_of(capture)
            if capture.dropped_at and registered.isdisjoint(names):
                continue
            problems = self._tidy_up(capture, release=capture.state is CaptureState.COMMITTED)
            left_over.extend(problems)
            if not problems:
                dropped.append(capture.id)
        scratch, remaining = remove_left_over(self)
        return Cleaned(tuple(abandoned), tuple(dropped), tuple(scratch), (*left_over, *remaining), tuple(kept))

    # Checkpoints.

    def position(self, consumer: str, table: str) -> Position | None:
        """Where a consumer stands on a table, whatever the table was called before; None before its first commit."""
        name = self.name(table)
        if (known := self.store.position(consumer, name)) is not None:
            return known
        return standing(self, consumer, self.load(name), is_start_chosen=True).position

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
        name = self.name(table)
        expected = self.store.position(checked_consumer(consumer), name)
        loaded = self.load(name)
        refuse_pending_elsewhere(self, consumer, loaded)
        history = history_of(loaded.metadata, branch or (expected.branch if expected else MAIN), table=name)
        position = starting_position(name, history, parse_start(to), history.head)
        if expected is not None and not reprocess and may_reprocess(history, expected, position):
            raise UserError(
                f"{consumer!r} has processed {name} up to {expected}; from {position}, rows would be handed out again: "
                "targets that have them would get them twice, and groups that are gone since would stay.",
                hint="To rebuild the targets of a workflow: dalsegno run WORKFLOW --full-refresh. "
                "If the targets no longer have these rows: add --reprocess.",
            )
        return self.store.move_checkpoint(
            consumer, {name: (expected, position)}, by=self.actor, now=self.clock(), reason=reason
        )

    def rebuild_checkpoints(
        self, *targets: str, consumer: str | None = None, is_dry_run: bool = False
    ) -> rebuilding.Rebuilt:
        """Set checkpoints to where the tables written for captures say, if the store has none or older ones."""
        return rebuilding.rebuild(self, self._names(targets), consumer, is_dry_run=is_dry_run)

    # Catalogs.

    def catalog(self, name: str) -> Catalog:
        if name not in self._catalogs:
            self._catalogs[name] = open_catalog(self.settings.catalog(name))
        return self._catalogs[name]

    def check_catalogs(self, name: str | None = None) -> list[checking.CatalogReport]:
        """What each catalog lets us do."""
        names = [name] if name else sorted(self.settings.catalogs)
        return [checking.check(self.catalog(each), self.settings.change_namespace, self.clock()) for each in names]

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Every table of a catalog."""
        opened = self.catalog(catalog or self.settings.default_catalog)
        return sorted(name for namespace in opened.namespaces() for name in opened.tables(namespace))

    def load(self, name: TableName) -> LoadedTable:
        catalog = self.catalog(name.catalog)
        try:
            return catalog.load(name)
        except UnknownName as error:
            raise missing_tables.explained(error, name, catalog, self.settings) from error

    def remove_change_tables(self, capture: Capture) -> None:
        """Drop the change tables and delete the files that the capture wrote; borrowed files are not ours."""
        for captured in capture.tables:
            catalog = self.catalog(captured.change_table.catalog)
            views.remove(catalog, capture.id, captured)
            change_table.remove(catalog, capture.id, captured)

    def hold(self, name: TableName, consumer: str) -> None:
        """Move the consumer's pin to its checkpoint: what is processed may expire, what came since may not."""
        position = self.store.position(consumer, name)
        if position is not None:
            self.pin(self.load(name), consumer, position)

    def pin(self, table: LoadedTable, consumer: str, after: Position) -> tuple[LoadedTable, pins.Pin]:
        if table.metadata["table-uuid"] != after.table_uuid:
            return table, pins.Pin(False, f"not pinned: {table.name} is another table by now")
        return pins.pin(
            self.catalog(table.name.catalog),
            table,
            consumer,
            after,
            now_ms=to_millis(self.clock()),
            lifetime=self.settings.capture_lifetime,
        )

    def _names(self, tables: Sequence[str]) -> tuple[TableName, ...]:
        names = tuple(self.name(table) for table in tables)
        if not names or len(set(names)) != len(names):
            raise UserError("Name at least one table, and each only once.")
        return names

    def _tidy_up(self, capture: Capture, *, release: bool) -> tuple[str, ...]:
        """Remove what a settled capture no longer needs; what fails is left for ``clean``."""
        problems = []
        for captured in capture.tables:
            try:
                catalog = self.catalog(captured.change_table.catalog)
                views.remove(catalog, capture.id, captured)
                change_table.remove(catalog, capture.id, captured)
                if release:
                    self.hold(captured.table, capture.consumer)
            except UnknownName as error:
                # The source itself is gone, and its pin with it.
                if self.catalog(captured.change_table.catalog).has(captured.change_table):
                    problems.append(f"{captured.change_table}: {error.message}")
            except (DalsegnoError, OSError) as error:
                problems.append(f"{captured.change_table}: {error}")
        if not problems:
            self.store.mark_dropped(capture.id, self.clock())
        return tuple(problems)

    def _registered(self, captures: Sequence[Capture]) -> set[TableName]:
        """All that is beside the captures' change tables: one that should be gone was made by a late process."""
        places = {(c.change_table.catalog, c.change_table.namespace) for item in captures for c in item.tables}
        found: set[TableName] = set()
        for catalog, namespace in places:
            found.update(self.catalog(catalog).tables(namespace), self.catalog(catalog).views(namespace))
        return found


def _names_of(capture: Capture) -> set[TableName]:
    """Every name under which the capture may have something in a catalog."""
    return {name for captured in capture.tables for name in (*captured.tables.values(), *captured.views)}


def _start(text: str | None) -> Start | None:
    return None if text is None else parse_start(text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
