"""What incremental triggers would have done, for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dalsegno.cli.output import counted, size

if TYPE_CHECKING:
    from dalsegno.operations.simulations import SimulatedTrigger, TableView

_LIMITS = ("min_snapshots", "min_files", "min_rows", "min_bytes")
_TIMES = ("quiet", "min_interval", "max_wait")


@dataclass(frozen=True)
class Simulation:
    """What was asked about, and what was found."""

    workflow_id: str
    is_enabled: bool
    at: datetime
    triggers: list[SimulatedTrigger]


def simulation_text(simulation: Simulation) -> str:
    return "\n".join(_lines(simulation))


def _lines(simulation: Simulation) -> Iterator[str]:
    if not simulation.triggers:
        yield f"{simulation.workflow_id} has no incremental trigger."
    elif not simulation.is_enabled:
        yield f"{simulation.workflow_id} is not started by its triggers: it is not active, or they are disabled."
    for each in simulation.triggers:
        yield _title(each)
        if each.since is None:
            yield "  nothing was committed"
            continue
        yield f"  since {_moment(each.since)}: {counted(each.commits, 'commit')} to process, {_starts(each)}"
        for start in each.latest:
            for number, table in enumerate(start.unprocessed):
                yield f"  {_moment(start.started_at) if number == 0 else '':<23}  {_table(table)}"


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


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _table(table: TableView) -> str:
    if table.refusal:
        return f"{table.table}: refused: {table.refusal}"
    rows = "? rows" if table.rows is None else counted(table.rows, "row")
    return f"{table.table}: {counted(table.snapshots, 'snapshot')}, {rows}, {size(table.bytes)}"
