"""Commands for signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import show
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.signals import SignalValue
    from dalsegno.operations.signals import SignalView

signal = typer.Typer(help="Announce signals, and see those that were.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(signal, name="signal", no_args_is_help=True)


@signal.command("announce")
def announce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="the signal's name")],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="a parameter; NAME:STRING=1 is a text; repeatable"),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="announcing again with the same key is the same signal")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Say that something has happened: steps that wait for it go on, and triggers start runs."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        show(orchestrator.signals.announce(name, _params(param), key=key), _announced, as_json=json)


@signal.command("list")
def list_signals(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="only of this name")] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 20,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List signals that were announced, newest first."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        show(orchestrator.signals.all(name, limit=limit), _lines, as_json=json)


def _params(pairs: list[str] | None) -> dict[str, SignalValue]:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.operations.signals import typed_value  # noqa: PLC0415 - not for --help

    found: dict[str, SignalValue] = {}
    for pair in pairs or ():
        left, equals, text = pair.partition("=")
        if not equals or not left:
            raise UserError(
                f"{pair!r} is no parameter: expected NAME=VALUE.", hint="For instance: --param day=20261116"
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
    return "\n".join(map(_line, found)) or "No signals."


def _line(found: SignalView) -> str:
    params = ", ".join(f"{name}={value}" for name, value in found.params.items())
    key = f"key {found.key}" if found.key and "by" in found.source else ""
    when = f"{found.announced_at:%Y-%m-%d %H:%M:%S} UTC"
    return "  ".join(filter(None, (str(found.id), found.name, params, when, _by(found), key)))


def _by(found: SignalView) -> str:
    source = found.source
    return str(source["by"]) if "by" in source else f"{source['workflow_id']}/{source['run']} {source['step']}"
