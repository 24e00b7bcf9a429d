"""The command that shows the audit log."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli.output import opened, show_page
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.operations.admin import RecordedChange

_LONGEST = 160


def register(app: typer.Typer) -> None:
    app.command()(history)


def history(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT",
            help="Only changes of this workflow and its runs, run, capture, consumer or tag.",
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this caller.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most this many.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Print what follows the page that named this cursor.")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Show who changed what, newest first."""
    with opened(settings, as_json=json) as operations:
        show_page(operations.admin.history(subject, by=by, limit=limit, cursor=after), _text, as_json=json)


def _text(found: Sequence[RecordedChange]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help
    from dalsegno.cli.times import moment  # noqa: PLC0415

    rows = [(moment(each.at, seconds=True), each.caller, each.verb, each.subject, _how(each)) for each in found]
    return table(("TIME", "CALLER", "VERB", "SUBJECT", "CHANGE"), rows, empty="There are no changes.")


def _how(change: RecordedChange) -> str:
    """Why, and what became of it, in one line."""
    how = " → ".join(filter(None, (_values(change.before), _values(change.after))))
    return ": ".join(filter(None, (change.reason, how)))


def _values(values: Mapping[str, Any] | None) -> str:
    text = ", ".join(
        f"{name} {value if isinstance(value, str) else json_module.dumps(value, ensure_ascii=False)}"
        for name, value in (values or {}).items()
        if value not in (None, [], {})
    )
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
