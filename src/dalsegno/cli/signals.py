"""Commands for signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import opened, show, show_page
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.signals import SignalValue
    from dalsegno.operations.signals import SignalView

signal = typer.Typer(help="Announce and list signals.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(signal, name="signal", no_args_is_help=True)


@signal.command("announce")
def announce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The signal's name.", autocompletion=completion.signals)],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set a parameter; NAME:STRING=1 makes it a text. Repeatable."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Idempotency key: the same key announces the same signal only once."),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Announce a signal.

    Steps that wait for it continue, and triggers start runs.
    """
    with opened(settings, as_json=json) as operations:
        show(operations.signals.announce(name, _params(param), key=key), _announced, as_json=json)


@signal.command("list")
def list_signals(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only signals with this name.", autocompletion=completion.signals),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="List at most this many.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="List what follows the page that named this cursor.")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List announced signals, newest first."""
    with opened(settings, as_json=json) as operations:
        show_page(operations.signals.list(name, limit=limit, cursor=after), _lines, as_json=json)


def _params(pairs: list[str] | None) -> dict[str, SignalValue]:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.operations.signals import typed_value  # noqa: PLC0415 - not for --help

    found: dict[str, SignalValue] = {}
    for pair in pairs or ():
        left, equals, text = pair.partition("=")
        if not equals or not left:
            raise UserError(
                f"{pair!r} is not a parameter: expected NAME=VALUE.", hint="For instance: --param day=20261116"
            )
        name, value = typed_value(left, text)
        found[name] = value
    return found


# For people.


def _announced(found: SignalView) -> str:
    if found.is_repeated:
        return f"Signal {found.id}, {found.name}, was announced before with the same key."
    return f"Announced {found.name} as signal {found.id}."


def _lines(found: list[SignalView]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help
    from dalsegno.cli.times import when  # noqa: PLC0415
    from dalsegno.clock import utc_now  # noqa: PLC0415

    now = utc_now()
    rows = [
        (
            each.id,
            each.name,
            ", ".join(f"{name}={value}" for name, value in each.params.items()),
            when(each.announced_at, now, seconds=True),
            _by(each),
            each.key or "" if "by" in each.source else "",
        )
        for each in found
    ]
    return table(("ID", "NAME", "PARAMETERS", "ANNOUNCED", "BY", "KEY"), rows, empty="There are no signals.")


def _by(found: SignalView) -> str:
    source = found.source
    return str(source["by"]) if "by" in source else f"{source['workflow_id']}/{source['run']} {source['step']}"
