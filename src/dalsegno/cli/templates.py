"""Commands for job templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import show, tell_warnings
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.templates import JobTemplate
    from dalsegno.operations.job_templates import PushedTemplate

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
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        for file in files:
            pushed = orchestrator.templates.push(file.read_bytes(), file=str(file))
            if not json:
                tell_warnings(pushed.warnings, file)
            show(pushed, _pushed, as_json=json)


@templates.command("list")
def list_templates(json: Json = False, settings: SettingsFile = None) -> None:
    """List job templates."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        show(orchestrator.templates.all(), _lines, as_json=json)


@templates.command("delete")
def delete(job_type: JobType, version: Version = None, json: Json = False, settings: SettingsFile = None) -> None:
    """Delete a job template. Steps that use it fail from then on."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        orchestrator.templates.delete(job_type, version)
        show({"deleted": job_type, "version": version}, _deleted, as_json=json)


def _pushed(made: PushedTemplate) -> str:
    found = made.template
    return f"Pushed the job template {found.job_type}, version {found.version}: it runs as {found.step_type}."


def _deleted(found: dict[str, str | None]) -> str:
    return f"Deleted the job template {found['deleted']}."


def _lines(found: list[JobTemplate]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help

    rows = [(each.job_type, str(each.version), each.step_type, each.description or "") for each in found]
    return table(("TYPE", "VERSION", "RUNS AS", "DESCRIPTION"), rows, empty="There are no job templates.")
