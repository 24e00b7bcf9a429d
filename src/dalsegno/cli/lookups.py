"""Commands that look something up: the workflows there are, a stored definition, the rows of a query."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli.output import reporting, show
from dalsegno.cli.running import opened_orchestrator
from dalsegno.cli.runs import Json, SettingsFile, WorkflowId

if TYPE_CHECKING:
    from dalsegno.operations.querying import QueryResult
    from dalsegno.operations.workflow_list import WorkflowView


def register(app: typer.Typer) -> None:
    app.command("workflows")(list_workflows)
    app.command()(cat)
    app.command()(sql)


def list_workflows(json: Json = False, settings: SettingsFile = None) -> None:
    """List workflows with their last run, the next one, and how far they are behind."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.operations.workflow_list import workflow_views  # noqa: PLC0415

        now = orchestrator.clock()
        found = workflow_views(orchestrator.store, orchestrator.versions, now)
        show(found, lambda views: _workflows(views, now), as_json=json)


def cat(
    workflow: WorkflowId,
    version: Annotated[
        str, typer.Option(help="active, latest, default (the active one, else the latest) or a number")
    ] = "default",
    file: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print this file of the version instead, as it was pushed.")
    ] = None,
    settings: SettingsFile = None,
) -> None:
    """Print a stored workflow as JSON, which push takes back."""
    with opened_orchestrator(settings) as orchestrator:
        from dalsegno.operations.workflow_list import definition_text, file_text  # noqa: PLC0415

        if file is None:
            print(definition_text(orchestrator.versions, workflow, version))
        else:
            print(file_text(orchestrator.versions, workflow, version, file), end="")


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="one SELECT; - reads it from the standard input")],
    limit: Annotated[int, typer.Option(min=1, help="Print at most this many rows.")] = 100,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Run a query on the local Spark and print its rows."""
    with reporting(as_json=json):
        from dalsegno.operations import querying  # noqa: PLC0415 - slow import
        from dalsegno.settings import load  # noqa: PLC0415

        text = sys.stdin.read() if query == "-" else query
        found = querying.query(load(settings), text, limit=limit, say=lambda line: print(line, file=sys.stderr))
        show(found, _rows, as_json=json)


def _workflows(views: Sequence[WorkflowView], now: Any) -> str:
    from dalsegno.cli.run_text import SIGNS, lasted  # noqa: PLC0415
    from dalsegno.cli.text import moment  # noqa: PLC0415

    if not views:
        return "There are no workflows. Push one: dalsegno push FILE"
    lines = []
    for view in views:
        last = view.last_run
        active = "" if view.active_version == view.latest_version else f" of {view.latest_version}"
        due = (
            moment(view.next_due_at)
            if view.next_due_at
            else " ".join(view.watches and ("when", *view.watches, "changes"))
        )
        lines.append(
            (
                view.id,
                f"{view.active_version or '-'}{active}",
                f"{SIGNS[last.status][0]} {view.id}/{last.number} {last.status}" if last else "-",
                moment(last.created_at) if last else "",
                due or "-",
                lasted(view.waiting_since, None, now) or "-",
            )
        )
    return _aligned([("WORKFLOW", "VERSION", "LAST RUN", "STARTED", "NEXT", "BEHIND"), *lines])


def _rows(found: QueryResult) -> str:
    from dalsegno.steps.spark.rows import cell  # noqa: PLC0415

    count = len(found.rows)
    total = f"{count:,} row{'s' * (count != 1)}{', and there are more: --limit' if found.has_more else ''}"
    cells = [tuple(cell(value) for value in row) for row in found.rows]
    return f"{_aligned([found.columns, *cells])}\n{total}" if found.columns else total


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
