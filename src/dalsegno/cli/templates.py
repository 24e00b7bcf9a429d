"""Commands for job templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import show, tell_warnings
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.model.templates import JobTemplate

templates = typer.Typer(help="Step types made of others: job templates.", rich_markup_mode=None)

JobType = Annotated[str, typer.Argument(metavar="TYPE", help="the template's job_type")]
Version = Annotated[str | None, typer.Option(help="this version only")]


def register(app: typer.Typer) -> None:
    app.add_typer(templates, name="templates", no_args_is_help=True)


@templates.command("push")
def push(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="a job template in YAML or JSON")],
    settings: SettingsFile = None,
) -> None:
    """Store job templates; one of the same type and version is replaced."""
    with opened_orchestrator(settings) as orchestrator:
        for file in files:
            pushed = orchestrator.templates.push(file.read_bytes(), file=str(file))
            tell_warnings(pushed.warnings, file)
            found = pushed.template
            print(f"Pushed the job template {found.job_type}, version {found.version}: it runs as {found.step_type}.")


@templates.command("list")
def list_templates(json: Json = False, settings: SettingsFile = None) -> None:
    """List the job templates there are."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        show(orchestrator.templates.all(), _lines, as_json=json)


@templates.command("delete")
def delete(job_type: JobType, version: Version = None, settings: SettingsFile = None) -> None:
    """Remove a job template; steps made from it fail from then on."""
    with opened_orchestrator(settings) as orchestrator:
        orchestrator.templates.delete(job_type, version)
        print(f"Removed the job template {job_type}.")


def _lines(found: list[JobTemplate]) -> str:
    lines = (
        f"{each.job_type}  version {each.version}, runs as {each.step_type}  {each.description or ''}".rstrip()
        for each in found
    )
    return "\n".join(lines) or "None."
