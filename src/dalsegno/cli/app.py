"""The commands. Each calls one operation and shows what it returned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dalsegno
from dalsegno.cli import (
    auditing,
    backing_up,
    breakpoints_and_limits,
    changes_made,
    lookups,
    models,
    runs,
    serving,
    signals,
    spark,
    templates,
    triggers,
    workflows,
    writes,
)
from dalsegno.cli import completion as names
from dalsegno.cli.help_groups import GroupedCommands
from dalsegno.cli.output import line_of, opened, reporting, show, show_all, show_page

app = typer.Typer(
    cls=GroupedCommands,
    help="Process what changed in Apache Iceberg tables: each run resumes where the last one ended.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
checkpoints = typer.Typer(help="List and move checkpoints: what consumers have processed.", rich_markup_mode=None)
catalogs = typer.Typer(help="List tables, and check what catalogs allow.", rich_markup_mode=None)
app.add_typer(checkpoints, name="checkpoints", no_args_is_help=True)
app.add_typer(catalogs, name="catalogs", no_args_is_help=True)

Tables = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help="namespace.table or catalog.namespace.table.", autocompletion=names.tables),
]
Table = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="namespace.table or catalog.namespace.table.", autocompletion=names.tables),
]
PendingCapture = Annotated[
    str,
    typer.Argument(
        metavar="CAPTURE", help="The capture's id, or how it begins.", autocompletion=names.pending_captures
    ),
]
CaptureId = Annotated[
    str, typer.Argument(metavar="CAPTURE", help="The capture's id, or how it begins.", autocompletion=names.captures)
]
Consumer = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Who processes the changes: a name of your choice.", autocompletion=names.consumers
    ),
]
AnyConsumer = Annotated[
    str | None,
    typer.Option("--consumer", metavar="NAME", help="Only this consumer.", autocompletion=names.consumers),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="START",
        help="Where a first capture starts: earliest (the default), latest (only what comes from now on), full (the "
        "whole table as it is now; also allowed later), a snapshot id, or a time.",
    ),
]
Upto = Annotated[
    str | None,
    typer.Option(metavar="END", help="Stop at this snapshot id or time. The next capture takes the rest."),
]
MaxSnapshots = Annotated[
    int | None,
    typer.Option(min=1, metavar="COUNT", help="Take at most this many snapshots."),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(min=1, metavar="BYTES", help="Take at most this much, but at least one snapshot."),
]
ChangesKind = Annotated[
    str | None,
    typer.Option(
        "--changes",
        metavar="KIND",
        help="What to capture: added (the default: added files), before_after (deletes and updates too), upserts, keys "
        "or range.",
    ),
]
OperationKinds = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        metavar="KIND",
        help="Allow snapshots of this kind: append, overwrite or delete. Repeatable.",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="Key column, to recognise updates. For one table only: TABLE:COLUMN. Repeatable.",
    ),
]
CaptureMode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="icdc (the default: a change table) or view (a view of the appended rows, for Spark only).",
    ),
]
Branch = Annotated[str, typer.Option(metavar="NAME", help="Capture from this branch.")]
Limit = Annotated[int, typer.Option(min=1, metavar="N", help="List at most this many.")]
After = Annotated[str | None, typer.Option(metavar="CURSOR", help="List what follows the page that named this cursor.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Use this settings file instead of the nearest dalsegno.toml."),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dalsegno {dalsegno.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def plan(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE",
            help="The tables to capture. Without --consumer: workflows that declare tables.",
            autocompletion=names.tables,
        ),
    ],
    consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who processes the changes: a name of your choice.", autocompletion=names.consumers
        ),
    ] = None,
    start: From = None,
    upto: Upto = None,
    max_snapshots: MaxSnapshots = None,
    max_bytes: MaxBytes = None,
    branch: Branch = "main",
    changes: ChangesKind = None,
    operation_kinds: OperationKinds = None,
    keys: Keys = None,
    mode: CaptureMode = None,
    lookback_days: Annotated[
        int, typer.Option(min=1, metavar="N", help="Compare with a lookback of this many days.")
    ] = 14,
    event_time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that says when an event happened. By default, the time of the partitions.",
        ),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Show what a capture would read and cost. Create nothing.

    The plan compares what a capture reads with a lookback and a full scan. It shows the snapshots, the partitions, how
    late rows are, how far behind the consumer is, and when unprocessed snapshots may expire.

    dalsegno plan WORKFLOW shows how the next run would refresh each table that the workflow declares.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import plan_text  # noqa: PLC0415
        from dalsegno.cli.lookups import plan_refreshes  # noqa: PLC0415

        if consumer is None:
            plan_refreshes(
                operations,
                tables,
                start or upto or max_snapshots or max_bytes or changes or operation_kinds or keys or mode or event_time,
                as_json=json,
            )
            return
        plans = operations.captures.plan(
            *tables,
            consumer=consumer,
            start=start,
            upto=upto,
            max_snapshots=max_snapshots,
            max_bytes=max_bytes,
            branch=branch,
            changes=changes,
            operations=operation_kinds,
            keys=keys or (),
            mode=mode,
            lookback_days=lookback_days,
            event_time=event_time,
        )
        show(plans, plan_text.plans, as_json=json)


@app.command()
def capture(
    tables: Tables,
    consumer: Consumer,
    start: From = None,
    upto: Upto = None,
    max_snapshots: MaxSnapshots = None,
    max_bytes: MaxBytes = None,
    branch: Branch = "main",
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="COLUMN", help="Print the smallest and largest value of this column. Repeatable."
        ),
    ] = None,
    partitions: Annotated[
        bool | None,
        typer.Option(
            "--partitions/--no-partitions",
            help="List the changed partitions. By default, only if there are few files.",
        ),
    ] = None,
    changes: ChangesKind = None,
    operation_kinds: OperationKinds = None,
    keys: Keys = None,
    mode: CaptureMode = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Create a change table of what is new for a consumer.

    It holds the changes since the consumer's checkpoint. It references data files and copies none. If a capture is
    pending, the command returns that capture again. Commit or abandon it to get the next one.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        made = operations.captures.capture(
            *tables,
            consumer=consumer,
            start=start,
            upto=upto,
            max_snapshots=max_snapshots,
            max_bytes=max_bytes,
            branch=branch,
            ranges=ranges or (),
            partitions=partitions,
            changes=changes,
            operations=operation_kinds,
            keys=keys or (),
            mode=mode,
        )
        show(made.report() if json else made, lambda found: text.changes(found, start), as_json=json)


@app.command()
def query(
    capture_id: PendingCapture,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="The table, if the capture has several.", autocompletion=names.tables),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="The SQL dialect: spark or duckdb.")] = "spark",
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Print the SQL that returns the changed rows of a capture.

    Each row has a _change_type: insert, update_before, update_after or delete. DuckDB gets the statements first that
    it needs to reach an object store.
    """
    with opened(settings, as_json=json) as operations:
        sql = operations.captures.query(capture_id, engine=engine, table=table)
        setup = operations.captures.query_setup(capture_id, engine=engine, table=table)
        text = "".join(f"{each};\n" for each in setup) + sql
        show({"engine": engine, "setup": setup, "sql": sql} if json else text, str, as_json=json)


@app.command()
def commit(
    capture_id: PendingCapture,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CAPTURE]…",
            help="More captures that a step consumed together with it.",
            autocompletion=names.pending_captures,
        ),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Commit a capture: move the consumer's checkpoint past it.

    This drops the change table. Commit captures that one step consumed together in one command.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show(operations.captures.commit(capture_id, *(others or ())), text.committed, as_json=json)


@app.command()
def abandon(
    capture_id: PendingCapture,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Record this reason.")] = "abandoned by hand",
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Abandon a capture; the next capture covers the same range.

    The checkpoint stays. This drops the change table.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show(operations.captures.abandon(capture_id, reason=reason), text.settled, as_json=json)


@app.command()
def drop(capture_id: CaptureId, json: Json = False, settings: SettingsFile = None) -> None:
    """Drop the change table of a committed or abandoned capture.

    Commit and abandon do so themselves; use this if they failed to. It never touches the source table or its files.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show(operations.captures.drop(capture_id), text.settled, as_json=json)


@app.command()
def clean(json: Json = False, settings: SettingsFile = None) -> None:
    """Delete leftovers, old runs and logs; abandon old captures.

    The settings say how long captures, finished runs and logs are kept.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show(operations.admin.clean(), text.cleaned, as_json=json)


@app.command()
def captures(
    consumer: AnyConsumer = None,
    everything: Annotated[bool, typer.Option("--all", help="List committed and abandoned captures, too.")] = False,
    limit: Limit = 100,
    after: After = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List pending captures, newest first."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        found = operations.captures.list(consumer, pending_only=not everything, limit=limit, cursor=after)
        show_page(found, text.captures, as_json=json)


@app.command("eval")
def evaluate(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPRESSION", help="An expression in SEL, Maestro's expression language.")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=VALUE", help="Set a parameter; NAME:TYPE=VALUE sets its type. Repeatable."
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Evaluate each line of a file: a JSON object with expression and params. - reads standard input.",
        ),
    ] = None,
    now: Annotated[str | None, typer.Option(metavar="TIME", help="Evaluate as if it were this time.")] = None,
    json: Json = False,
) -> None:
    """Evaluate an expression and print its type and value.

    With --batch, the command prints one line of JSON for each line: type and value, or error.
    """
    with reporting(as_json=json):
        from dalsegno.cli import evaluating  # noqa: PLC0415
        from dalsegno.clock import utc_now  # noqa: PLC0415
        from dalsegno.errors import UserError  # noqa: PLC0415

        moment = evaluating.moment(now, utc_now())
        if (expression is None) == (batch is None):
            raise UserError("Give either an expression or --batch.", hint="dalsegno eval '1 + x' --param x=1")
        if batch is not None:
            for answer in evaluating.answers(batch, moment):
                print(line_of(answer), flush=True)
            return
        value = evaluating.evaluated(str(expression), params or [], moment)
        show(evaluating.shown(value) if json else value, evaluating.text, as_json=json)


@checkpoints.command("list")
def list_checkpoints(consumer: AnyConsumer = None, json: Json = False, settings: SettingsFile = None) -> None:
    """List how far each consumer has processed each table."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show_all(lambda cursor: operations.checkpoints.list(consumer, cursor=cursor), text.marks, as_json=json)


@checkpoints.command("show")
def show_checkpoint(table: Table, consumer: Consumer, json: Json = False, settings: SettingsFile = None) -> None:
    """Show one checkpoint in detail."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show(operations.checkpoints.get(table, consumer=consumer), text.mark, as_json=json)


@checkpoints.command("set")
def set_checkpoint(
    table: Table,
    consumer: Consumer,
    to: Annotated[str, typer.Option(metavar="POSITION", help="earliest, latest, a snapshot id, or a time.")],
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="By default, the branch of the checkpoint.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Record this reason.")] = "set by hand",
    reprocess: Annotated[
        bool, typer.Option("--reprocess", help="Allow moving it back: later captures return processed rows again.")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Move a checkpoint by hand. Everything before it counts as processed."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        moved = operations.checkpoints.set(
            table, consumer=consumer, to=to, branch=branch, reason=reason, reprocess=reprocess
        )
        show(moved, text.moved, as_json=json)


@checkpoints.command("rebuild")
def rebuild_checkpoints(
    targets: Tables,
    consumer: AnyConsumer = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing.")] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Rebuild checkpoints from what target tables say.

    Use it after the store was lost. Snapshots that incremental runs wrote name the ranges that they processed. The
    command sets a checkpoint where the store has none or an older one.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        rebuilt = operations.checkpoints.rebuild(*targets, consumer=consumer, is_dry_run=dry_run)
        show(rebuilt, text.rebuilt, as_json=json)
        if any(each.refusal for each in rebuilt.checkpoints):
            raise SystemExit(3)


@checkpoints.command("history")
def checkpoint_history(
    consumer: Consumer,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Only this table.", autocompletion=names.tables)
    ] = None,
    limit: Limit = 100,
    after: After = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List every move of a consumer's checkpoint, newest first."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        found = operations.checkpoints.history(consumer, table, limit=limit, cursor=after)
        show_page(found, text.history, as_json=json)


@catalogs.command("check")
def check_catalogs(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="Only this catalog.")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Check that catalogs work.

    For each catalog: dalsegno lists and reads tables, then writes, registers, pins and deletes a table of its own.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        reports = operations.tables.check_catalogs(name)
        show(reports, text.catalog_reports, as_json=json)
        if not all(report.works for report in reports):
            raise SystemExit(4)


@catalogs.command("tables")
def list_tables(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="By default, the default catalog.")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List the tables of a catalog."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import text  # noqa: PLC0415

        show_all(lambda cursor: operations.tables.list(name, cursor=cursor), text.catalog_tables, as_json=json)


@catalogs.command("spark")
def spark_settings(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="By default, all catalogs.")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Print the Spark configuration for the same catalogs. It may contain passwords."""
    with opened(settings, as_json=json) as operations:
        conf = operations.tables.spark_configuration(name)
        show(conf, lambda found: "\n".join(f"{key} {value}" for key, value in found.items()), as_json=json)


@app.command("completion")
def completion_script(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the completion script for a shell.

    It completes commands, options, and the names of workflows, runs, steps, tables, captures and consumers.
    """
    with reporting():
        from typer._completion_shared import get_completion_script  # noqa: PLC0415

        from dalsegno.cli import COMPLETE  # noqa: PLC0415
        from dalsegno.errors import UserError  # noqa: PLC0415

        if shell not in ("bash", "zsh", "fish"):
            raise UserError(f"There is no completion for {shell!r}: expected bash, zsh or fish.")
        print(get_completion_script(prog_name="dalsegno", complete_var=COMPLETE, shell=shell))


workflows.register(app)
runs.register(app)
models.register(app)
auditing.register(app)
writes.register(app)
lookups.register(app)
breakpoints_and_limits.register(app)
templates.register(app)
triggers.register(app)
signals.register(app)
serving.register(app)
changes_made.register(app)
backing_up.register(app)
spark.register(app)
