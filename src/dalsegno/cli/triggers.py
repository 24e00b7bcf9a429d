"""Commands for triggers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import opened, show
from dalsegno.cli.runs import Json, SettingsFile
from dalsegno.cli.workflows import SUFFIXES, read_file

if TYPE_CHECKING:
    from dalsegno.operations.triggers import Outlook, TriggerSource

trigger = typer.Typer(help="Show when triggers start runs.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(trigger, name="trigger", no_args_is_help=True)


# A group of one command would be taken for the command itself.
@trigger.callback()
def _group() -> None:
    pass


@trigger.command("test")
def test(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|WORKFLOW|CRON",
            help="A workflow's file, its id, or a cron expression in quotes.",
            autocompletion=completion.workflows,
        ),
    ],
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Such as Europe/Berlin. By default, the trigger's own, or UTC.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Show due times around this time instead of now. UTC unless it has an offset."
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="How many past and next due times.")] = 5,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", help="Show when incremental triggers would have started runs, by the tables' history."
        ),
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List triggers, and past and next due times of time triggers.

    The command starts nothing. Where the clock is put forward or back, the list says what happens to times that are
    skipped or come twice.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli.evaluating import moment  # noqa: PLC0415 - not for --help

        source, seen_from = _source(what), moment(at, operations.clock(), option="--at")
        found = operations.triggers.outlook(source, at=seen_from, timezone=timezone, count=count, is_simulated=simulate)
        show(found, partial(_text, is_simulated=simulate), as_json=json)


def _source(what: str) -> TriggerSource:
    from dalsegno.operations.triggers import TriggerSource  # noqa: PLC0415 - not for --help

    if what == "-" or Path(what).is_file() or Path(what).suffix in SUFFIXES:
        return TriggerSource(text=read_file(what), file=what)
    return TriggerSource(what)


# For people.


def _text(outlook: Outlook, *, is_simulated: bool) -> str:
    return "\n".join(_lines(outlook, is_simulated=is_simulated))


def _lines(outlook: Outlook, *, is_simulated: bool) -> Iterator[str]:
    from dalsegno.triggers.cli import lines_of  # noqa: PLC0415 - not for --help

    if not outlook.triggers:
        yield f"{outlook.workflow_id} has no {'trigger that watches tables' if is_simulated else 'triggers'}."
    elif not outlook.is_enabled:
        yield f"{outlook.workflow_id} is not started by its triggers: it is not active, or they are disabled."
    for view in outlook.triggers:
        yield from lines_of(view, outlook.workflow_id)
