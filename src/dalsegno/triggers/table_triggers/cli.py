"""What incremental triggers watch and would have done, for people."""

from __future__ import annotations

from collections.abc import Iterator

from dalsegno.cli.output import counted, size
from dalsegno.cli.times import moment
from dalsegno.triggers.table_triggers.operations import SimulatedTrigger, TableTriggerView, TableView

_LIMITS = ("min_snapshots", "min_files", "min_rows", "min_bytes")
_TIMES = ("quiet", "min_interval", "max_wait")


def lines(view: TableTriggerView | SimulatedTrigger, workflow_id: str | None) -> Iterator[str]:
    if isinstance(view, TableTriggerView):
        yield f"{workflow_id} watches {view.watches}; --simulate shows when that would have started it."
        return
    yield _title(view)
    if view.since is None:
        yield "  nothing was committed"
        return
    yield f"  since {moment(view.since, seconds=True)}: {counted(view.commits, 'commit')} to process, {_starts(view)}"
    for start in view.latest:
        for number, table in enumerate(start.unprocessed):
            yield f"  {moment(start.started_at, seconds=True) if number == 0 else '':<23}  {_table(table)}"


def _title(each: SimulatedTrigger) -> str:
    rules = each.rules
    needed = f" {rules.when.lower()} of" if len(each.tables) > 1 else ""
    given = [f"{name} {value}" for name in (*_LIMITS, *_TIMES) if (value := getattr(rules, name)) is not None]
    return "; ".join([f"watches{needed} {', '.join(each.tables)}", *given])


def _starts(each: SimulatedTrigger) -> str:
    if not each.starts:
        return "no run would have been started"
    shown = f"; the last {len(each.latest)}" if len(each.latest) < each.starts else ""
    return f"{counted(each.starts, 'run')} would have been started{shown}:"


def _table(table: TableView) -> str:
    if table.refusal:
        return f"{table.table}: refused: {table.refusal}"
    rows = "? rows" if table.rows is None else counted(table.rows, "row")
    return f"{table.table}: {counted(table.snapshots, 'snapshot')}, {rows}, {size(table.bytes)}"
