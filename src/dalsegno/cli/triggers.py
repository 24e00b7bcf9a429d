"""Commands for triggers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import reporting, show
from dalsegno.cli.runs import Json, SettingsFile
from dalsegno.cli.workflows import SUFFIXES, read_file

if TYPE_CHECKING:
    from dalsegno.cli.simulations import Simulation
    from dalsegno.model.workflow import Definition, TimeTrigger
    from dalsegno.operations.due_times import DueView, TriggerView

trigger = typer.Typer(help="See when triggers start runs.", rich_markup_mode=None)
#: So many times in one place are named.
_FEW = 3


def register(app: typer.Typer) -> None:
    app.add_typer(trigger, name="trigger", no_args_is_help=True)


# A group of one command would be taken for the command itself.
@trigger.callback()
def _group() -> None:
    pass


@dataclass(frozen=True)
class Outlook:
    """What was asked about, and what was found."""

    #: None if it is a cron line alone.
    workflow_id: str | None
    #: Whether runs are started at all.
    is_enabled: bool
    at: datetime
    triggers: list[TriggerView]
    #: What the incremental triggers watch; when these start a run is not known ahead.
    watches: list[str]


@trigger.command("test")
def test(
    what: Annotated[
        str, typer.Argument(metavar="FILE|WORKFLOW|CRON", help="a workflow's file, its id, or a cron line in quotes")
    ],
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="such as Europe/Berlin; by default the trigger's own, or UTC")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="as if it were then, UTC unless it says otherwise")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="how many due times to each side")] = 5,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="of incremental triggers: from the tables' history, the last starts"),
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List the past and the next due times of time triggers; or when incremental triggers would have started runs.

    Nothing is started, and no data is read. Where the clock is put forward or back, it says what becomes of times that
    are skipped or come twice.
    """
    with reporting(as_json=json):
        from dalsegno.cli.evaluating import moment  # noqa: PLC0415 - not for --help
        from dalsegno.clock import utc_now  # noqa: PLC0415
        from dalsegno.operations.due_times import trigger_views  # noqa: PLC0415

        seen_from = moment(at, utc_now(), option="--at")
        if simulate:
            from dalsegno.cli.simulations import simulation_text  # noqa: PLC0415 - PyIceberg takes seconds to import

            show(_simulated(what, settings, seen_from, count), simulation_text, as_json=json)
            return
        triggers, workflow_id, is_enabled, watches = _found(what, settings)
        views = trigger_views(triggers, workflow_id, timezone=timezone, at=seen_from, count=count)
        show(Outlook(workflow_id, is_enabled, seen_from, views, watches), _text, as_json=json)


def _simulated(what: str, settings: Path | None, at: datetime, count: int) -> Simulation:
    from dalsegno.capture.lake import Lake  # noqa: PLC0415 - PyIceberg takes seconds to import
    from dalsegno.cli.simulations import Simulation  # noqa: PLC0415
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.operations.simulations import simulations  # noqa: PLC0415

    if _is_line(what):
        raise UserError(f"{what!r} watches no tables, so there is no history to look at.", hint="Leave --simulate out.")
    definition, is_active = _definition(what, settings)
    is_enabled = is_active and not definition.properties.is_incremental_trigger_disabled
    with Lake.open(settings) as lake:
        found = simulations(lake, definition.workflow, at=at, count=count)
    return Simulation(definition.workflow.id, is_enabled, at, found)


def _is_line(what: str) -> bool:
    return what.startswith("@") or len(what.split()) > 1


def _found(what: str, settings: Path | None) -> tuple[tuple[TimeTrigger, ...], str | None, bool, list[str]]:
    """The triggers, of which workflow, whether they are in force, and what else the workflow watches."""
    from dalsegno.model.workflow import TimeTrigger  # noqa: PLC0415
    from dalsegno.spec.watching import watch_name  # noqa: PLC0415

    if _is_line(what):
        return (TimeTrigger(what),), None, True, []
    definition, is_active = _definition(what, settings)
    is_enabled = is_active and not definition.properties.is_time_trigger_disabled
    workflow = definition.workflow
    return workflow.time_triggers, workflow.id, is_enabled, [watch_name(each) for each in workflow.incremental_triggers]


def _definition(what: str, settings: Path | None) -> tuple[Definition, bool]:
    """A workflow, and whether it is active."""
    if what == "-" or Path(what).is_file() or Path(what).suffix in SUFFIXES:
        from dalsegno.spec.reading.context import AnyStepType  # noqa: PLC0415 - PyYAML is not for --help
        from dalsegno.spec.workflows import read  # noqa: PLC0415

        definition = read(read_file(what), file=what, types=AnyStepType()).definition
        return definition, definition.is_active
    from dalsegno.operations.orchestrator import Orchestrator  # noqa: PLC0415

    with Orchestrator.open(settings) as orchestrator:
        is_active = orchestrator.versions.row(what)["active_version"] is not None
        return orchestrator.versions.named(what, "default").definition, is_active


# For people.


def _text(outlook: Outlook) -> str:
    return "\n".join(_lines(outlook))


def _lines(outlook: Outlook) -> Iterator[str]:
    for watched in outlook.watches:
        yield f"{outlook.workflow_id} watches {watched}; --simulate shows when that would have started it."
    if not outlook.triggers:
        if not outlook.watches:
            yield f"{outlook.workflow_id} has no time trigger."
    elif not outlook.is_enabled:
        yield f"{outlook.workflow_id} is not started by its triggers: it is not active, or they are disabled."
    for each in outlook.triggers:
        yield _title(each, has_workflow=outlook.workflow_id is not None)
        width = max((len(_local(due)) for due in (*each.past, *each.next)), default=0)
        for name, found in (("past", each.past), ("next", each.next)):
            if not found:
                yield f"  {name}  never"
            for number, due in enumerate(found):
                yield f"  {name if number == 0 else '':<4}  {_line(due, each, width)}"


def _title(each: TriggerView, *, has_workflow: bool) -> str:
    parts = [f"{each.cron} in {each.timezone}"]
    if each.fuzzy_max_delay:
        parts.append(f"starts up to {each.fuzzy_max_delay} later")
    if has_workflow:
        parts.append(_CATCH_UP[each.catch_up.rule].format(most=each.catch_up.most))
    return "; ".join(parts)


_CATCH_UP = {
    "NONE": "catches up on nothing",
    "LATEST": "catches up on the latest",
    "ALL": "catches up on all, at most {most}",
}


def _line(due: DueView, each: TriggerView, width: int) -> str:
    utc = f"{due.due_at:%Y-%m-%d} {_clock(due.due_at)} UTC"
    start = f"starts at {due.start_at:%H:%M:%S}" if due.start_at != due.due_at else ""
    return "  ".join(filter(None, (f"{_local(due):<{width}}", utc, start, _odd(due, each))))


def _local(due: DueView) -> str:
    return f"{due.local:%a %Y-%m-%d} {_clock(due.local)} {due.local:%Z}"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def _odd(due: DueView, each: TriggerView) -> str:
    """What the clock does to it, if anything."""
    if due.shown:
        only = ", not the second" if not each.is_interval else ""
        return f"the clock shows this twice: the {due.shown} time{only}"
    if not due.skipped:
        return ""
    named = [("" if wall.date() == due.local.date() else f"{wall:%a} ") + _clock(wall) for wall in due.skipped]
    times = f"{named[0]} to {named[-1]}" if len(named) > _FEW else " and ".join(named)
    return f"the clock skips {times}" if each.is_interval else f"for {times}, which the clock skips"
