"""The same decision as a capture's, shown instead of done. Nothing is created, pinned or remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyiceberg.types import NestedField

from dalsegno.capture.capturing import start_of_abandoned
from dalsegno.capture.details import (
    DetailOptions,
    check_columns,
    contents_of,
    exactness,
    manifests_before,
    refuse_unreadable,
)
from dalsegno.capture.renames import standing
from dalsegno.capture.views import refuse_view
from dalsegno.clock import from_millis, to_millis
from dalsegno.errors import DataError, UserError
from dalsegno.iceberg import pins
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.change_table import Contents
from dalsegno.iceberg.entries import FileEntry, read_entries, those_taken
from dalsegno.iceberg.history import history_of
from dalsegno.iceberg.layout import Layout, UnreadableBound, is_time, read_bound, to_epoch_ms
from dalsegno.iceberg.manifests import Manifest, Take, adds_everything, read_list
from dalsegno.iceberg.partitions import Partition, touched_partitions
from dalsegno.model.captures import CaptureSpec, ChangeKind, Mode, Role
from dalsegno.model.snapshots import History, Position, Snapshot
from dalsegno.model.starts import AfterSnapshot, Bound, Full, Since, Start
from dalsegno.model.tables import TableName
from dalsegno.plan.forecast import Cost, Expiry, LatenessBar, expiry, lateness, lookback_start_ms
from dalsegno.plan.increments import (
    DEFAULT_START,
    Increment,
    Treatment,
    increment_between,
    next_increment,
    starting_position,
    unproven_beginning,
)

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

#: Up to how many files a plan looks into, about two seconds' worth; beyond that it says that it did not.
MANY_FILES = 20_000


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned."""

    tables: tuple[TableName, ...]
    consumer: str
    branch: str
    start: Start | None
    end: AfterSnapshot | Since | None
    bound: Bound
    spec: CaptureSpec
    lookback_days: int
    event_time: str | None
    #: The key columns of tables that have others than the spec says.
    keys: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)

    def spec_for(self, table: TableName) -> CaptureSpec:
        return replace(self.spec, keys=self.keys[table]) if table in self.keys else self.spec


@dataclass(frozen=True)
class TablePlan:
    """What a capture of one table would do."""

    table: str
    consumer: str
    branch: str
    #: Where the consumer stands; None before its first capture.
    checkpoint: Position | None
    #: Where a first capture would begin.
    start: str | None
    upto: Position | None
    #: Whether there would be something left to capture after it; None if it is refused.
    has_more: bool | None
    #: What would be handed over, and as what.
    changes: ChangeKind
    mode: Mode
    #: Whether the rows handed over would be the ones that changed, and if not, why; None if it is refused.
    exact: bool | None
    inexact_because: str | None
    #: What may be told as changed though its values are as they were; None if nothing is.
    may_be_more: str | None
    #: Why a capture would be refused: code, message, hint.
    refusal: dict[str, str | None] | None
    #: A capture that was made before and would be handed out again.
    pending_capture: str | None
    #: Operation and treatment → number of snapshots.
    snapshots: dict[str, int]
    #: All that would be handed over, and the part of it that shows the files as they were, if there is one.
    to_read: Cost | None
    before: Cost | None
    full_scan: Cost | None
    lookback_days: int
    lookback: Cost | None
    #: Why there is no figure for the lookback or the lateness.
    lookback_unknown_because: str | None
    partitions: list[Partition] | None
    event_time: str | None
    lateness: list[LatenessBar] | None
    #: Rows that are older than the lookback, which it would never see.
    missed_by_lookback: int | None
    behind_since: datetime | None
    behind_seconds: float | None
    #: None where the unprocessed history cannot be told.
    expiry: Expiry | None


def plan(lake: Lake, request: PlanRequest) -> list[TablePlan]:
    end = request.end or (Since(to_millis(lake.clock())) if len(request.tables) > 1 else None)
    loaded = [lake.load(name) for name in request.tables]
    check_columns(loaded, DetailOptions(), request.spec_for)
    starts = [request.start or start_of_abandoned(lake, request.consumer, table) for table in loaded]
    return [
        _TablePlanner(lake, replace(request, start=start), table, end).plan()
        for table, start in zip(loaded, starts, strict=True)
    ]


class _TablePlanner:
    """Works out the plan of one table, each part from what is known so far."""

    def __init__(self, lake: Lake, request: PlanRequest, table: LoadedTable, end: AfterSnapshot | Since | None) -> None:
        self.lake, self.request, self.table, self.end = lake, request, table, end
        self.history: History = history_of(table.metadata, request.branch, table=table.name)
        self.checkpoint, self.unknown_standing = self._standing()
        self.now = lake.clock()
        self.layout = Layout(table.metadata, self.history.current_schema_id)
        self.column = self._event_time()
        self._entries_by_path: dict[str, list[FileEntry]] = {}

    def _standing(self) -> tuple[Position | None, DataError | None]:
        """Where the consumer stands, or why that cannot be told."""
        is_chosen = self.request.start is not None
        try:
            found = standing(self.lake, self.request.consumer, self.table, is_start_chosen=is_chosen)
        except DataError as error:
            return None, error
        return found.position, None

    def plan(self) -> TablePlan:
        increment, refusal = self._increment()
        known = self._unprocessed(increment)
        unprocessed = known or ()
        treatments = [
            (snapshot.operation.value if snapshot.operation else "unnamed", treatment)
            for snapshot, treatment in unprocessed
        ]
        contents = self._contents(increment)
        takes = [take for each in contents.values() for take in each.data]
        few = sum(take.cost.files or 0 for take in takes) <= MANY_FILES
        files = self._events(increment, takes) if few and takes else None
        bars, missed = lateness(files, self.request.lookback_days) if files is not None else (None, None)
        exact = exactness(increment) if increment else dict.fromkeys(("exact", "inexact_because", "may_be_more"))
        costs = {role: each.cost for role, each in contents.items()}
        lookback, unknown = self._lookback()
        pending = self.lake.store.pending(self.request.consumer, self.table.name)
        first_start = self.request.start or DEFAULT_START
        behind = from_millis(unprocessed[0][0].timestamp_ms) if unprocessed else None
        head = self.history.head
        return TablePlan(
            table=str(self.table.name),
            consumer=self.request.consumer,
            branch=self.request.branch,
            checkpoint=self.checkpoint,
            start=None if self.checkpoint else type(first_start).__name__.lower(),
            upto=self._upto(increment),
            has_more=increment.has_more if increment else None,
            changes=self.request.spec.changes,
            mode=self.request.spec.mode,
            **exact,
            refusal={"code": refusal.code, "message": refusal.message, "hint": refusal.hint} if refusal else None,
            pending_capture=pending.id if pending else None,
            snapshots={f"{op}: {how.value}": n for (op, how), n in sorted(Counter(treatments).items())},
            to_read=Cost.total(costs.values()) if increment else None,
            before=costs.get(Role.BEFORE),
            full_scan=_totals(head),
            lookback_days=self.request.lookback_days,
            lookback=lookback,
            lookback_unknown_because=unknown,
            partitions=self._partitions(increment, takes) if few else None,
            event_time=self.column.name if self.column else None,
            lateness=bars,
            missed_by_lookback=missed,
            behind_since=behind,
            behind_seconds=max((self.now - behind).total_seconds(), 0) if behind else None,
            expiry=None if known is None else self._expiry(known),
        )

    def _expiry(self, unprocessed: Sequence[tuple[Snapshot, Treatment]]) -> Expiry:
        held = pins.held(self.table, self.history, self.request.consumer)
        return expiry([snapshot for snapshot, _ in unprocessed], self.table.metadata.get("properties", {}), *held)

    def _upto(self, increment: Increment | None) -> Position | None:
        """Where the range would end; of one that is refused, where the branch stands."""
        if increment is not None:
            return increment.upto if increment.upto.snapshot_id is not None else None
        return self.history.position(self.history.head) if self.history.head else None

    def _increment(self) -> tuple[Increment | None, DataError | UserError | None]:
        name, consumer = self.table.name, self.request.consumer
        spec = self.request.spec_for(name)
        if self.unknown_standing is not None:
            return None, self.unknown_standing
        try:
            increment = next_increment(
                name,
                consumer,
                self.history,
                self.checkpoint,
                start=self.request.start,
                end=self.end,
                bound=self.request.bound,
                spec=spec,
            )
            if increment.root is not None and not adds_everything(self.table.files, increment.root):
                return None, unproven_beginning(name, consumer, increment.root)
            refuse_unreadable(self.table, self.history, increment, consumer)
            if spec.mode is Mode.VIEW:
                refuse_view(self.lake.catalog(name.catalog), self.table, self.history, increment)
        except (DataError, UserError) as error:
            return None, error
        return increment, None

    def _unprocessed(self, increment: Increment | None) -> Sequence[tuple[Snapshot, Treatment]] | None:
        """The snapshots of the range, oldest first; None if they cannot be told."""
        if increment is not None:
            return increment.snapshots if increment.is_line else None
        try:
            start = self.request.start or DEFAULT_START
            if isinstance(start, Full):
                return None
            after = self.checkpoint or starting_position(self.table.name, self.history, start, self.history.head)
            found = increment_between(
                self.table.name,
                self.request.consumer,
                self.history,
                after,
                self.history.head,
                is_first=False,
                spec=self.request.spec_for(self.table.name),
            )
        except (DataError, UserError):
            return None
        return found.snapshots if found.is_line else None

    def _contents(self, increment: Increment | None) -> Mapping[Role, Contents]:
        """What the capture would hand over for each end of the range that it shows."""
        if increment is None or not increment.has_news:
            return {}
        contents = contents_of(self.table, self.history, increment, self.lake.settings.io_threads)
        return {role: contents[role] for role in increment.spec.ends}

    def _partitions(self, increment: Increment | None, takes: Sequence[Take]) -> list[Partition] | None:
        if increment is None:
            return None
        before = manifests_before(self.table.files, self.history, increment)
        entries_of = partial(read_entries, self.table.files)
        return touched_partitions(self.layout, self._entries(takes), before, entries_of)

    def _event_time(self) -> NestedField | None:
        if self.request.event_time is None:
            return self.layout.event_time_column()
        column = self.layout.column(self.request.event_time)
        if not is_time(column):
            raise UserError(f"{column.name!r} is a {column.field_type}; an event time must be a date or a timestamp.")
        return column

    def _events(self, increment: Increment | None, takes: Sequence[Take]) -> list[tuple[int, int, int]] | None:
        """Commit, oldest event and rows of each file; None if a file does not tell.

        A file that replaced another carries its rows over, and its commit says nothing about when they arrived.
        """
        if self.column is None or increment is None or increment.removing or not increment.is_line:
            return None
        found = []
        for entry in self._entries(takes):
            oldest = _bound(self.layout, entry, self.column, entry.lower)
            snapshot = self.history.snapshots.get(entry.snapshot_id)
            if oldest is None or snapshot is None:
                return None
            found.append((snapshot.timestamp_ms, oldest, entry.rows))
        return found

    def _entries(self, takes: Sequence[Take]) -> Iterator[FileEntry]:
        for take in takes:
            yield from those_taken(take, self._looked_into(take.manifest))

    def _looked_into(self, manifest: Manifest) -> list[FileEntry]:
        """A manifest's files; several parts of a plan look at the same ones."""
        if manifest.path not in self._entries_by_path:
            ids = (self.column.field_id,) if self.column else ()
            self._entries_by_path[manifest.path] = list(read_entries(self.table.files, manifest, ids))
        return self._entries_by_path[manifest.path]

    def _lookback(self) -> tuple[Cost | None, str | None]:
        layout, column, head = self.layout, self.column, self.history.head
        if column is None:
            return None, "no column is known to be the time of the event; name one with --event-time"
        if head is None:
            return Cost(0, 0, 0), None
        since = lookback_start_ms(self.now, self.request.lookback_days)
        listed = [m for m in read_list(self.table.files, head.manifest_list).manifests if m.is_data]
        near = [manifest for manifest in listed if _may_reach(layout, manifest, column, since)]
        if sum(manifest.live_files or 0 for manifest in near) > MANY_FILES:
            return None, f"more than {MANY_FILES:,} files would have to be looked at"
        files = rows = size = 0
        for manifest in near:
            for entry in self._looked_into(manifest):
                newest = _bound(layout, entry, column, entry.upper)
                if newest is None or newest >= since:
                    files, rows, size = files + 1, rows + entry.rows, size + entry.size
        return Cost(files, rows, size), None


def _totals(snapshot: Snapshot | None) -> Cost:
    if snapshot is None:
        return Cost(0, 0, 0)
    return Cost(*(snapshot.count(f"total-{key}") for key in ("data-files", "records", "files-size")))


def _bound(layout: Layout, entry: FileEntry, column: NestedField, bounds: Any) -> int | None:
    """A file's bound of the event time in milliseconds; an identity partition is as good as a bound."""
    position = layout.identity_position(entry.spec_id, column)
    if position is not None and entry.partition[position] is not None:
        return to_epoch_ms(column, entry.partition[position])
    raw = bounds.get(column.field_id)
    try:
        return None if raw is None else to_epoch_ms(column, read_bound(column.field_type, raw))
    except UnreadableBound:
        return None


def _may_reach(layout: Layout, manifest: Manifest, column: NestedField, since_ms: int) -> bool:
    """Whether a manifest may name files with events at or after a moment, by the bounds of its partitions."""
    position = layout.identity_position(manifest.spec_id, column)
    if position is None or not manifest.partitions:
        return True
    try:
        newest = layout.partition_bound(manifest.spec_id, position, manifest.partitions[position]["upper_bound"])
    except UnreadableBound:
        return True
    return newest is None or to_epoch_ms(column, newest) >= since_ms
