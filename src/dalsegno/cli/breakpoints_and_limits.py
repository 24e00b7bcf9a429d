"""Commands that hold steps up: breakpoints, and limits on steps with the same tag."""

from __future__ import annotations

from typing import Annotated

import typer

from dalsegno.cli.output import show
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile, WorkflowId

breakpoints = typer.Typer(help="Hold steps before they begin.", rich_markup_mode=None)
limits = typer.Typer(help="Limit how many steps with a tag run at once.", rich_markup_mode=None)

StepId = Annotated[str, typer.Argument(metavar="STEP", help="the step's id")]
Tag = Annotated[str, typer.Argument(metavar="TAG", help="the tag's name")]


def register(app: typer.Typer) -> None:
    app.add_typer(breakpoints, name="breakpoints", no_args_is_help=True)
    app.add_typer(limits, name="limits", no_args_is_help=True)


@breakpoints.command("set")
def set_breakpoint(workflow: WorkflowId, step: StepId, settings: SettingsFile = None) -> None:
    """Let every run of a workflow halt before a step, until it is resumed: dalsegno resume RUN --step STEP."""
    with opened_orchestrator(settings) as orchestrator:
        orchestrator.set_breakpoint(workflow, step)
        print(f"Runs of {workflow} halt before {step}.")


@breakpoints.command("clear")
def clear_breakpoint(workflow: WorkflowId, step: StepId, settings: SettingsFile = None) -> None:
    """Remove a breakpoint; runs that halt there go on when they are resumed."""
    with opened_orchestrator(settings) as orchestrator:
        orchestrator.clear_breakpoint(workflow, step)
        print(f"Runs of {workflow} no longer halt before {step}.")


@breakpoints.command("list")
def list_breakpoints(workflow: WorkflowId, json: Json = False, settings: SettingsFile = None) -> None:
    """List the steps that a workflow's runs halt before."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        show(orchestrator.breakpoints(workflow), lambda found: "\n".join(found) or "None.", as_json=json)


@limits.command("set")
def set_limit(
    tag: Tag,
    most: Annotated[int, typer.Argument(metavar="MOST", min=0, help="how many at once; 0 holds all of them up")],
    settings: SettingsFile = None,
) -> None:
    """Limit how many steps with this tag run at once, over all workflows."""
    with opened_orchestrator(settings) as orchestrator:
        orchestrator.set_limit(tag, most)
        print(f"At most {most} steps with the tag {tag} run at once.")


@limits.command("clear")
def clear_limit(tag: Tag, settings: SettingsFile = None) -> None:
    """Let any number of steps with this tag run."""
    with opened_orchestrator(settings) as orchestrator:
        orchestrator.set_limit(tag, None)
        print(f"Steps with the tag {tag} are not limited.")


@limits.command("list")
def list_limits(json: Json = False, settings: SettingsFile = None) -> None:
    """List the limits, and how many steps run under each now."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        found = [{"tag": tag, "most": most, "running": held} for tag, most, held in orchestrator.limits()]
        show(found, _limits, as_json=json)


def _limits(found: list[dict[str, object]]) -> str:
    return "\n".join(f"{each['tag']}: {each['running']} of {each['most']}" for each in found) or "None."
