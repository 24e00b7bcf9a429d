"""What incremental triggers watch, and when they would have started runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dalsegno.model.workflow import Workflow
from dalsegno.triggers.operations import OutlookRequest, TriggerViews
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Unprocessed, Watch
from dalsegno.triggers.table_triggers.plan.simulation import PastStart, simulate
from dalsegno.triggers.table_triggers.spec import rules_of, watch_name

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake


@dataclass(frozen=True)
class TableTriggerView:
    """One incremental trigger; when it starts a run is not known ahead."""

    kind: str
    #: The tables, as they are written.
    watches: str


@dataclass(frozen=True)
class TableView:
    """What a run would have been started for."""

    table: str
    consumer: str
    snapshots: int
    files: int | None
    rows: int | None
    bytes: int | None
    #: Why the capture would have been refused, if it would.
    refusal: str | None


@dataclass(frozen=True)
class StartView:
    started_at: datetime
    unprocessed: tuple[TableView, ...]


@dataclass(frozen=True)
class SimulatedTrigger:
    """One incremental trigger, as if it had watched its tables all along."""

    kind: str
    tables: tuple[str, ...]
    rules: IncrementalTrigger
    #: When the known history of the tables begins; None: they have none.
    since: datetime | None
    #: How many commits had something to process: so many runs there would be, if each started one.
    commits: int
    starts: int
    #: The oldest first.
    latest: tuple[StartView, ...]


class TableViews(TriggerViews[IncrementalTrigger]):
    def views(
        self, triggers: Sequence[IncrementalTrigger], workflow: Workflow | None, request: OutlookRequest
    ) -> list[TableTriggerView] | list[SimulatedTrigger]:
        """The latest starts of each, if it is simulated. Metadata is read, no data."""
        if not request.is_simulated:
            return [TableTriggerView(each.kind, watch_name(each)) for each in triggers]
        if workflow is None or not triggers:
            return []
        from dalsegno.capture.lake import Lake  # noqa: PLC0415 - PyIceberg takes seconds to import

        with Lake.open(request.settings) as lake:
            return [_simulated(lake, workflow, each, request) for each in triggers]

    def watched(self, triggers: Sequence[IncrementalTrigger]) -> Sequence[str]:
        return list(dict.fromkeys(table for each in triggers for table in each.tables))


VIEWS = TableViews()


def _simulated(
    lake: Lake, workflow: Workflow, trigger: IncrementalTrigger, request: OutlookRequest
) -> SimulatedTrigger:
    from dalsegno.iceberg.history import history_of  # noqa: PLC0415 - PyIceberg takes seconds to import
    from dalsegno.triggers.table_triggers.engine.watches import watches_of  # noqa: PLC0415

    watches = watches_of(lake, workflow, trigger)
    histories = {watch: history_of(lake.load(watch.table).metadata, watch.branch) for watch in watches}
    past = simulate(rules_of(trigger), histories, request.at)
    return SimulatedTrigger(
        kind=trigger.kind,
        tables=tuple(str(watch.table) for watch in watches),
        rules=trigger,
        since=past.since,
        commits=past.commits,
        starts=len(past.starts),
        latest=tuple(map(_start, past.starts[-request.count :])),
    )


def _start(start: PastStart) -> StartView:
    return StartView(start.at, tuple(_table(watch, each) for watch, each in start.tables.items()))


def _table(watch: Watch, each: Unprocessed) -> TableView:
    return TableView(str(watch.table), watch.consumer, each.snapshots, each.files, each.rows, each.bytes, each.refusal)
