"""Commands for job templates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import opened, show, show_all, tell_warnings
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.templates import JobTemplate
    from dalsegno.operations.templates import PushedTemplate

templates = typer.Typer(help="Push, list and delete job templates: your own step types.", rich_markup_mode=None)

JobType = Annotated[
    str, typer.Argument(metavar="TYPE", help="The template's job_type.", autocompletion=completion.templates)
]
Version = Annotated[str | None, typer.Option(metavar="VERSION", help="Only this version.")]


def register(app: typer.Typer) -> None:
    app.add_typer(templates, name="templates", no_args_is_help=True)


@templates.command("push")
def push(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="A job template in YAML or JSON.")],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Store job templates. They replace those of the same type and version."""
    with opened(settings, as_json=json) as operations:
        for file in files:
            pushed = operations.templates.push(file.read_bytes(), file=str(file))
            if not json:
                tell_warnings(pushed.warnings, file)
            show(pushed, _pushed, as_json=json)


@templates.command("list")
def list_templates(json: Json = False, settings: SettingsFile = None) -> None:
    """List job templates."""
    with opened(settings, as_json=json) as operations:
        show_all(lambda cursor: operations.templates.list(cursor=cursor), _lines, as_json=json)


@templates.command("delete")
def delete(job_type: JobType, version: Version = None, json: Json = False, settings: SettingsFile = None) -> None:
    """Delete a job template. Steps that use it fail from then on."""
    with opened(settings, as_json=json) as operations:
        operations.templates.delete(job_type, version)
        show({"deleted": job_type, "version": version}, _deleted, as_json=json)


def _pushed(made: PushedTemplate) -> str:
    found = made.template
    return f"Pushed the job template {found.job_type}, version {found.version}: it runs as {found.step_type}."


def _deleted(found: dict[str, str | None]) -> str:
    return f"Deleted the job template {found['deleted']}."


def _lines(found: Sequence[JobTemplate]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help

    rows = [(each.job_type, str(each.version), each.step_type, each.description or "") for each in found]
    return table(("TYPE", "VERSION", "RUNS AS", "DESCRIPTION"), rows, empty="There are no job templates.")
