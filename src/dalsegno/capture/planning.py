"""The same decision as a capture's, shown instead of done. Nothing is created, pinned or remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pyiceberg.types import NestedField

from dalsegno.capture.context import CaptureContext
from dalsegno.capture.decisions import Decision, decide
from dalsegno.capture.details import contents_of, exactness, manifests_before
from dalsegno.clock import from_millis
from dalsegno.errors import DataError, UserError
from dalsegno.iceberg import pins
from dalsegno.iceberg.change_table import Contents
from dalsegno.iceberg.entries import FileEntry, read_entries, those_taken
from dalsegno.iceberg.layout import Layout, UnreadableBound, is_time, read_bound, to_epoch_ms
from dalsegno.iceberg.manifests import Manifest, Take, prefetch, read_list
from dalsegno.iceberg.partitions import Partition, touched_partitions
from dalsegno.model.capture_requests import CaptureRequest
from dalsegno.model.captures import ChangeKind, Mode, Role
from dalsegno.model.snapshots import Position, Snapshot
from dalsegno.model.starts import Full
from dalsegno.plan.forecast import Cost, Expiry, LatenessBar, expiry, lateness, lookback_start_ms
from dalsegno.plan.increments import DEFAULT_START, Increment, Treatment, increment_between, starting_position

#: Up to how many files a plan looks into, about two seconds' worth; beyond that it says that it did not.
MANY_FILES = 20_000


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
    #: Which unchanged rows may be reported as changed, and why; None if none.
    may_be_more: str | None
    #: Why a capture would be refused: code, message, hint.
    refusal: dict[str, str | None] | None
    #: A capture that was made before and would be handed out again.
    pending_capture: str | None
    #: Operation and treatment → number of snapshots.
    snapshots: dict[str, int]
    #: All that would be handed over, and the part of it that shows the files before the change, if there is one.
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
    #: None where the unprocessed history is unknown.
    expiry: Expiry | None


def plan(
    context: CaptureContext, request: CaptureRequest, *, lookback_days: int, event_time: str | None
) -> list[TablePlan]:
    return [_TablePlanner(context, decision, lookback_days, event_time).plan() for decision in decide(context, request)]


class _TablePlanner:
    """Works out the plan of one table, each part from what is known so far."""

    def __init__(self, context: CaptureContext, decision: Decision, lookback_days: int, event_time: str | None) -> None:
        self.context, self.decision, self.lookback_days = context, decision, lookback_days
        self.request, self.table, self.history = decision.request, decision.table, decision.history
        self.checkpoint = decision.checkpoint.position if decision.checkpoint else None
        self.now = context.clock()
        self.layout = Layout(self.table.metadata, self.history.current_schema_id)
        self.column = self._event_time(event_time)
        self._entries_by_path: dict[str, list[FileEntry]] = {}

    def plan(self) -> TablePlan:
        outcome = self.decision.outcome
        increment, refusal = (outcome, None) if isinstance(outcome, Increment) else (None, outcome)
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
        bars, missed = lateness(files, self.lookback_days) if files is not None else (None, None)
        exact = exactness(increment) if increment else dict.fromkeys(("exact", "inexact_because", "may_be_more"))
        costs = {role: each.cost for role, each in contents.items()}
        lookback, unknown = self._lookback()
        pending = self.context.store.pending(self.request.consumer, self.table.name)
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
            lookback_days=self.lookback_days,
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

    def _unprocessed(self, increment: Increment | None) -> Sequence[tuple[Snapshot, Treatment]] | None:
        """The snapshots of the range, oldest first; None if they are unknown."""
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
                spec=self.request.spec,
            )
        except (DataError, UserError):
            return None
        return found.snapshots if found.is_line else None

    def _contents(self, increment: Increment | None) -> Mapping[Role, Contents]:
        """What the capture would hand over for each end of the range that it shows."""
        if increment is None or not increment.has_news:
            return {}
        contents = contents_of(self.table, self.history, increment, self.context.settings.io_threads)
        return {role: contents[role] for role in increment.spec.ends}

    def _partitions(self, increment: Increment | None, takes: Sequence[Take]) -> list[Partition] | None:
        if increment is None:
            return None
        before = manifests_before(self.table.files, self.history, increment)
        entries_of = partial(read_entries, self.table.files)
        soon = partial(prefetch, self.table.files)
        return touched_partitions(self.layout, self._entries(takes), before, entries_of, soon=soon)

    def _event_time(self, name: str | None) -> NestedField | None:
        if name is None:
            return self.layout.event_time_column()
        column = self.layout.column(name)
        if not is_time(column):
            raise UserError(f"{column.name!r} is a {column.field_type}; an event time must be a date or a timestamp.")
        return column

    def _events(self, increment: Increment | None, takes: Sequence[Take]) -> list[tuple[int, int, int]] | None:
        """Commit, oldest event and rows of each file; None if one file does not say.

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
        prefetch(self.table.files, (t.manifest for t in takes if t.manifest.path not in self._entries_by_path))
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
            return None, "no column is known to be the time of the event; name one as 'event_time'"
        if head is None:
            return Cost(0, 0, 0), None
        since = lookback_start_ms(self.now, self.lookback_days)
        listed = [m for m in read_list(self.table.files, head.manifest_list).manifests if m.is_data]
        near = [manifest for manifest in listed if _may_reach(layout, manifest, column, since)]
        if sum(manifest.live_files or 0 for manifest in near) > MANY_FILES:
            return None, f"more than {MANY_FILES:,} files would have to be looked at"
        files = rows = size = 0
        prefetch(self.table.files, (manifest for manifest in near if manifest.path not in self._entries_by_path))
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
