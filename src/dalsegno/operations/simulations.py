"""When incremental triggers would have started runs, as it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dalsegno.capture.lake import Lake
from dalsegno.engine.watches import watches_of
from dalsegno.iceberg.history import history_of
from dalsegno.model.watching import Unprocessed, Watch
from dalsegno.model.workflow import IncrementalTrigger, Workflow
from dalsegno.plan.simulation import PastStart, simulate
from dalsegno.spec.watching import rules_of


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

    tables: tuple[str, ...]
    rules: IncrementalTrigger
    #: When the known history of the tables begins; None: they have none.
    since: datetime | None
    #: How many commits had something to process: so many runs there would be, if each started one.
    commits: int
    starts: int
    #: The oldest first.
    latest: tuple[StartView, ...]


def simulations(lake: Lake, workflow: Workflow, *, at: datetime, count: int) -> list[SimulatedTrigger]:
    """Of each incremental trigger the latest starts, up to a moment. Metadata is read, no data."""
    found = []
    for trigger in workflow.incremental_triggers:
        watches = watches_of(lake, workflow, trigger)
        histories = {watch: history_of(lake.load(watch.table).metadata, watch.branch) for watch in watches}
        past = simulate(rules_of(trigger), histories, at)
        found.append(
            SimulatedTrigger(
                tables=tuple(str(watch.table) for watch in watches),
                rules=trigger,
                since=past.since,
                commits=past.commits,
                starts=len(past.starts),
                latest=tuple(map(_start, past.starts[-count:])),
            )
        )
    return found


def _start(start: PastStart) -> StartView:
    return StartView(start.at, tuple(_table(watch, each) for watch, each in start.tables.items()))


def _table(watch: Watch, each: Unprocessed) -> TableView:
    return TableView(str(watch.table), watch.consumer, each.snapshots, each.files, each.rows, each.bytes, each.refusal)
