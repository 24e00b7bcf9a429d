"""The command that copies the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import show, size
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.operations.backup import Backup


def register(app: typer.Typer) -> None:
    app.command()(backup)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="where the copy goes; it may not be there yet")],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Copy the store, if it is in SQLite, while it is in use.

    The copy is the store as it is at one moment. For PostgreSQL, use pg_dump.
    """
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.operations.backup import back_up  # noqa: PLC0415 - not for --help

        show(back_up(orchestrator.store, file), _text, as_json=json)


def _text(made: Backup) -> str:
    return f"A copy of the store is in {made.file}: {size(made.bytes)}."
