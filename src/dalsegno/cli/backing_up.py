"""The command that copies the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import opened, show, size
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.operations.backup import Backup


def register(app: typer.Typer) -> None:
    app.command()(backup)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Write the copy to this file, which must not exist.")],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Back up a SQLite store while it is in use.

    The copy is consistent. For PostgreSQL, use pg_dump.
    """
    with opened(settings, as_json=json) as operations:
        show(operations.admin.back_up(file), _text, as_json=json)


def _text(made: Backup) -> str:
    return f"Backed up the store to {made.file}: {size(made.bytes)}."
