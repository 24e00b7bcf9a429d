"""Commands for breakpoints, and for limits on steps with the same tag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import opened, show, show_all
from dalsegno.cli.runs import Json, SettingsFile, StepId, WorkflowId

if TYPE_CHECKING:
    from dalsegno.operations.admin import Limit

breakpoints = typer.Typer(help="Set breakpoints: pause runs before a step.", rich_markup_mode=None)
limits = typer.Typer(help="Limit how many steps with a tag run at the same time.", rich_markup_mode=None)

Tag = Annotated[str, typer.Argument(metavar="TAG", help="The tag.", autocompletion=completion.tags)]


def register(app: typer.Typer) -> None:
    app.add_typer(breakpoints, name="breakpoints", no_args_is_help=True)
    app.add_typer(limits, name="limits", no_args_is_help=True)


@breakpoints.command("set")
def set_breakpoint(workflow: WorkflowId, step: StepId, json: Json = False, settings: SettingsFile = None) -> None:
    """Pause every run of a workflow before a step.

    To resume a run: dalsegno resume RUN --step STEP
    """
    with opened(settings, as_json=json) as operations:
        operations.workflows.set_breakpoint(workflow, step)
        found = {"workflow_id": workflow, "step_id": step, "is_set": True}
        show(found, lambda _: f"Runs of {workflow} pause before {step}.", as_json=json)


@breakpoints.command("clear")
def clear_breakpoint(workflow: WorkflowId, step: StepId, json: Json = False, settings: SettingsFile = None) -> None:
    """Remove a breakpoint. Runs that wait there continue once you resume them."""
    with opened(settings, as_json=json) as operations:
        operations.workflows.clear_breakpoint(workflow, step)
        found = {"workflow_id": workflow, "step_id": step, "is_set": False}
        show(found, lambda _: f"Runs of {workflow} no longer pause before {step}.", as_json=json)


@breakpoints.command("list")
def list_breakpoints(workflow: WorkflowId, json: Json = False, settings: SettingsFile = None) -> None:
    """List the breakpoints of a workflow."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.operations.pages import read_all  # noqa: PLC0415

        found = read_all(lambda cursor: operations.workflows.breakpoints(workflow, cursor=cursor))
        show([each.step for each in found], _breakpoints, as_json=json)


@limits.command("set")
def set_limit(
    tag: Tag,
    most: Annotated[int, typer.Argument(metavar="MOST", min=0, help="How many at the same time; 0 starts none.")],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Limit how many steps with a tag run at the same time.

    The limit counts steps of all workflows.
    """
    with opened(settings, as_json=json) as operations:
        operations.admin.set_limit(tag, most)
        found = {"tag": tag, "most": most}
        show(found, lambda _: f"At most {most} steps with the tag {tag} run at the same time.", as_json=json)


@limits.command("clear")
def clear_limit(tag: Tag, json: Json = False, settings: SettingsFile = None) -> None:
    """Remove the limit of a tag."""
    with opened(settings, as_json=json) as operations:
        operations.admin.clear_limit(tag)
        show({"tag": tag, "most": None}, lambda _: f"Removed the limit of the tag {tag}.", as_json=json)


@limits.command("list")
def list_limits(json: Json = False, settings: SettingsFile = None) -> None:
    """List limits, and how many steps run under each now."""
    with opened(settings, as_json=json) as operations:
        show_all(lambda cursor: operations.admin.limits(cursor=cursor), _limits, as_json=json)


def _breakpoints(found: list[str]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help

    return table(("STEP",), [(step,) for step in found], empty="There are no breakpoints.")


def _limits(found: Sequence[Limit]) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415 - not for --help

    rows = [(each.tag, each.running, each.most) for each in found]
    return table(("TAG", "RUNNING", "LIMIT"), rows, empty="There are no limits.")
