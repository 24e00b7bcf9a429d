"""Commands that look something up: the workflows there are, a stored definition, the rows of a query."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import Decimal
from json import loads
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import counted, line_of, opened, show, show_all, show_page
from dalsegno.cli.runs import Json, SettingsFile, WorkflowId
from dalsegno.cli.workflows import read_file

if TYPE_CHECKING:
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.querying import QueryResult


def register(app: typer.Typer) -> None:
    app.command("workflows")(list_workflows)
    app.command()(cat)
    app.command()(sql)
    app.command()(rewrite)
    app.command()(refreshes)


def list_workflows(json: Json = False, settings: SettingsFile = None) -> None:
    """List workflows with their last run, next run and lag."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415

        now = operations.clock()
        show_all(
            lambda cursor: operations.workflows.list(cursor=cursor),
            lambda views: run_text.workflows(views, now),
            as_json=json,
        )


def cat(
    workflow: WorkflowId,
    version: Annotated[
        str, typer.Option(metavar="VERSION", help="active, latest, default (active, else latest) or a number.")
    ] = "default",
    file: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print this file of the version, as it was pushed.")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Print a stored workflow as JSON. dalsegno push accepts it."""
    with opened(settings, as_json=json) as operations:
        if file is None:
            found = operations.workflows.definition(workflow, version)
            print(line_of(loads(found)) if json else found)
        else:
            text = operations.workflows.file(workflow, file, version)
            print(line_of({"name": file, "text": text}) if json else text, end="\n" if json else "")


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT; - reads it from standard input.")],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most this many rows.")] = 100,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Run a query on Spark and print its rows."""
    with opened(settings, as_json=json) as operations:
        text = sys.stdin.read() if query == "-" else query
        found = operations.tables.sql(text, limit=limit, say=lambda line: print(line, file=sys.stderr))
        show(found, _rows, as_json=json)


def rewrite(
    query: Annotated[str, typer.Argument(metavar="FILE", help="A file with one SELECT; - reads standard input.")],
    target: Annotated[str, typer.Option(metavar="TABLE", help="The table that the SELECT declares.")],
    key: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Replace rows by this output column. Repeatable.")
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="State a fact about a source, such as 'id -> day'. Repeatable."),
    ] = None,
    prove: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Replay the last N snapshots of the sources on clones, try made-up changes, and compare with the full "
            "SELECT after each.",
        ),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Push a workflow with this SELECT, if it is proven, now or before.")
    ] = False,
    workflow: Annotated[
        str | None, typer.Option(metavar="ID", help="Of --adopt: the workflow's id. By default, the target's name.")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Show how a SELECT becomes incremental; prove and adopt it.

    It prints the SQL for added rows and for any change, and why. Without --prove, it executes nothing. With --prove, it
    writes to clones only, and the exit code is 5 if the result differs from the full SELECT.
    """
    with opened(settings, as_json=json) as operations:
        if prove is not None or adopt:
            from dalsegno.cli.proving import prove_and_adopt  # noqa: PLC0415

            given = {"keys": list(key or ()), "facts": list(fact or ())}
            options = {name: values for name, values in given.items() if values}
            prove_and_adopt(
                operations, read_file(query).decode(), target, options, prove, workflow, is_adopted=adopt, as_json=json
            )
            return
        from dalsegno.cli.rewrite_text import rewritten  # noqa: PLC0415

        found = operations.tables.rewrite(read_file(query).decode(), target, keys=key or (), facts=fact or ())
        show(found, rewritten, as_json=json)


def refreshes(
    target: Annotated[
        str, typer.Argument(metavar="TABLE", help="A table that a workflow declares.", autocompletion=completion.tables)
    ],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="List at most this many.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="List what follows the page that named this cursor.")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List what the runs of a declared table did, newest first.

    For each run: the strategy and why, what it read and wrote, and what a full refresh reads.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import refresh_text  # noqa: PLC0415

        found = operations.tables.refreshes(target, limit=limit, cursor=after)
        show_page(found, refresh_text.refreshes, as_json=json)


def plan_refreshes(operations: Operations, workflows: list[str], option: object, *, as_json: bool) -> None:
    """How the next run of each workflow would refresh the tables that it declares."""
    from dalsegno.cli import refresh_text  # noqa: PLC0415
    from dalsegno.errors import UnknownName, UserError  # noqa: PLC0415

    hint = "To plan a capture of tables, name the consumer: --consumer NAME"
    if option:
        raise UserError(f"The plan of a workflow takes no options of a capture, found {option!r}.", hint=hint)
    try:
        found = [plan for workflow in workflows for plan in operations.workflows.plan(workflow)]
    except UnknownName as error:
        error.hint = hint
        raise
    show(found, refresh_text.plans, as_json=as_json)


def _rows(found: QueryResult) -> str:
    from dalsegno.cli.tables import table  # noqa: PLC0415
    from dalsegno.steps.spark.rows import cell  # noqa: PLC0415

    more = ", and there are more: --limit" * found.has_more
    total = f"{counted(len(found.rows), 'row')}{more}"
    numbers = [index for index in range(len(found.columns)) if _are_numbers(row[index] for row in found.rows)]
    rows = [tuple(cell(value) for value in row) for row in found.rows]
    # Without rows there is nothing to align, but the columns are part of the answer.
    shown = table(found.columns, rows, right=numbers, keeps_empty_columns=True, empty="  ".join(found.columns))
    return f"{shown}\n{total}" if found.columns else total


def _are_numbers(values: Iterable[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float | Decimal) for value in known)
