"""The commands. Each opens the lake, calls one operation and shows what it returned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dalsegno
from dalsegno.cli import (
    auditing,
    backing_up,
    breakpoints_and_limits,
    lookups,
    runs,
    serving,
    signals,
    spark,
    templates,
    triggers,
    workflows,
    writes,
)
from dalsegno.cli.output import line_of, opened, opened_lake_reader, reporting, show
from dalsegno.operations.json_values import plain

# Rich would make --help prettier and three times slower.
app = typer.Typer(
    help="Incremental processing on Apache Iceberg: every run starts from the mark the last one left.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
checkpoints = typer.Typer(help="See and move what consumers have processed.", rich_markup_mode=None)
catalogs = typer.Typer(help="See what the catalogs hold and allow.", rich_markup_mode=None)
app.add_typer(checkpoints, name="checkpoints", no_args_is_help=True)
app.add_typer(catalogs, name="catalogs", no_args_is_help=True)

Tables = Annotated[list[str], typer.Argument(metavar="TABLE", help="namespace.table or catalog.namespace.table")]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="namespace.table or catalog.namespace.table")]
CaptureId = Annotated[str, typer.Argument(metavar="CAPTURE", help="its id, or the beginning of it")]
Consumer = Annotated[str, typer.Option(help="who processes the changes: a name of your choice")]
AnyConsumer = Annotated[str | None, typer.Option("--consumer", help="only this consumer")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="START",
        help="where a first capture begins: earliest (the default: all that was ever added), latest (what comes from "
        "now on), full (the table as it is now; also later, to take all of it again), a snapshot's id, or a moment",
    ),
]
Upto = Annotated[
    str | None,
    typer.Option(metavar="END", help="leave what came after this snapshot or moment for the next capture"),
]
MaxSnapshots = Annotated[
    int | None,
    typer.Option(min=1, metavar="COUNT", help="take so many snapshots at most, and leave the others"),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(min=1, metavar="BYTES", help="take snapshots that added so much at most, but one at least"),
]
ChangesKind = Annotated[
    str | None,
    typer.Option(
        "--changes",
        metavar="KIND",
        help="added (the default: the files that were added), before_after (deletes and updates too), upserts, "
        "keys or range",
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        metavar="KIND",
        help="a kind of snapshot that may be in the range: append, overwrite or delete; repeatable",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="a column that tells rows apart, to know updates; of one table alone as TABLE:COLUMN; repeatable",
    ),
]
CaptureMode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="icdc (the default: a change table) or view (a view of what was appended, for Spark alone)",
    ),
]
Branch = Annotated[str, typer.Option(help="the branch to capture from")]
Json = Annotated[bool, typer.Option("--json", help="for machines")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="the settings file; by default the nearest dalsegno.toml"),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dalsegno {dalsegno.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="show it")] = False,
) -> None:
    pass


@app.command()
def plan(
    tables: Tables,
    consumer: Consumer,
    start: From = None,
    upto: Upto = None,
    max_snapshots: MaxSnapshots = None,
    max_bytes: MaxBytes = None,
    branch: Branch = "main",
    changes: ChangesKind = None,
    operations: Operations = None,
    keys: Keys = None,
    mode: CaptureMode = None,
    lookback_days: Annotated[int, typer.Option(min=1, help="the lookback to compare with")] = 14,
    event_time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="when events happened; by default the partitions' time"),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Show what a capture would do, and its cost.

    It takes the options of a capture. Nothing is created: snapshots by operation, what would be read against a lookback
    and a full scan, the partitions touched, how late the rows are, how far behind the consumer is, and what will expire
    when.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        plans = lake.plan(
            *tables,
            consumer=consumer,
            start=start,
            upto=upto,
            max_snapshots=max_snapshots,
            max_bytes=max_bytes,
            branch=branch,
            changes=changes,
            operations=operations,
            keys=keys or (),
            mode=mode,
            lookback_days=lookback_days,
            event_time=event_time,
        )
        show(plans, text.plans, as_json=json)


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
        typer.Option("--range", metavar="COLUMN", help="tell this column's smallest and largest value; repeatable"),
    ] = None,
    partitions: Annotated[
        bool | None,
        typer.Option(
            "--partitions/--no-partitions",
            help="list the touched partitions; by default if there are few files",
        ),
    ] = None,
    changes: ChangesKind = None,
    operations: Operations = None,
    keys: Keys = None,
    mode: CaptureMode = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Make the change table of what is new.

    It holds all that was added since the consumer's checkpoint, by reference. A capture that was neither committed nor
    abandoned is handed out again.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        made = lake.capture(
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
            operations=operations,
            keys=keys or (),
            mode=mode,
        )
        show(made.report() if json else made, lambda found: text.changes(found, start), as_json=json)


@app.command()
def query(
    capture_id: CaptureId,
    table: Annotated[str | None, typer.Option(help="which of the capture's tables, if it has several")] = None,
    engine: Annotated[str, typer.Option(help="whose SQL: spark or duckdb")] = "spark",
    settings: SettingsFile = None,
) -> None:
    """Print the SQL that gives a capture's changed rows.

    Each has a _change_type: insert, update_before, update_after or delete.
    """
    with opened(settings) as lake:
        print(lake.query(capture_id, engine=engine, table=table))


@app.command()
def commit(
    capture_id: CaptureId,
    others: Annotated[
        list[str] | None, typer.Argument(metavar="[CAPTURE]…", help="more that a step consumed together with it")
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Commit a capture: move the consumer's checkpoint past it.

    Its change table is dropped. Captures that one step consumed together are committed together.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.commit(capture_id, *(others or ())), text.committed, as_json=json)


@app.command()
def abandon(
    capture_id: CaptureId,
    reason: Annotated[str, typer.Option(help="for the record")] = "abandoned by hand",
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Give a capture up; the next takes it again.

    The checkpoint stays, and the change table is dropped.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.abandon(capture_id, reason=reason), text.settled, as_json=json)


@app.command()
def drop(capture_id: CaptureId, json: Json = False, settings: SettingsFile = None) -> None:
    """Remove a settled capture's change table.

    Committing and abandoning do that, too. The source and its files are never touched.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.drop(capture_id), text.settled, as_json=json)


@app.command()
def clean(json: Json = False, settings: SettingsFile = None) -> None:
    """Give up expired captures, remove leftovers and what is too old.

    Captures whose time is over are abandoned; what commits and abandons could not remove is removed. Finished runs, and
    logs, go when they are older than the settings keep them.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415
        from dalsegno.operations.retention import Retention  # noqa: PLC0415

        retention = Retention(lake.settings, lake.store, lake.clock)
        cleaned, runs, folders = lake.clean(), retention.forget_runs().runs, retention.remove_files()
        found = {**plain(cleaned), "runs": runs, "folders": folders}
        show(found, lambda _: text.cleaned(cleaned, runs, folders), as_json=json)


@app.command()
def captures(
    consumer: AnyConsumer = None,
    everything: Annotated[bool, typer.Option("--all", help="settled ones as well")] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List captures that wait to be committed."""
    with opened_lake_reader(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.captures(consumer, pending_only=not everything), text.captures, as_json=json)


@app.command("eval")
def evaluate(
    expression: Annotated[str | None, typer.Argument(metavar="EXPRESSION", help="in SEL, Maestro's language")] = None,
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="or NAME:TYPE=VALUE; repeatable"),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="a JSON object in each line, with expression and params; - is standard input"
        ),
    ] = None,
    now: Annotated[str | None, typer.Option(metavar="MOMENT", help="what the expression takes for now")] = None,
    json: Json = False,
) -> None:
    """Evaluate an expression, and print its type and value.

    With --batch, every line is answered by a line of JSON: type and value, or error.
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
    """List where every consumer stands."""
    with opened_lake_reader(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.checkpoints(consumer), text.marks, as_json=json)


@checkpoints.command("show")
def show_checkpoint(table: Table, consumer: Consumer, json: Json = False, settings: SettingsFile = None) -> None:
    """Show one checkpoint in full."""
    with opened_lake_reader(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.checkpoint(table, consumer=consumer), text.mark, as_json=json)


@checkpoints.command("set")
def set_checkpoint(
    table: Table,
    consumer: Consumer,
    to: Annotated[str, typer.Option(metavar="PLACE", help="earliest, latest, a snapshot's id, or a moment")],
    branch: Annotated[str | None, typer.Option(help="by default the one it is on")] = None,
    reason: Annotated[str, typer.Option(help="for the record")] = "set by hand",
    reprocess: Annotated[
        bool, typer.Option("--reprocess", help="Move it back: hand out rows again that count as processed.")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Move a checkpoint by hand: what lies before it counts as processed."""
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        moved = lake.set_checkpoint(table, consumer=consumer, to=to, branch=branch, reason=reason, reprocess=reprocess)
        show(moved, text.moved, as_json=json)


@checkpoints.command("rebuild")
def rebuild_checkpoints(
    targets: Tables,
    consumer: AnyConsumer = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only look")] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Read checkpoints back from the tables written to.

    For when the store is lost: what incremental runs wrote names the ranges that it was written for. A checkpoint is
    set where the store has none or an older one.
    """
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        rebuilt = lake.rebuild_checkpoints(*targets, consumer=consumer, is_dry_run=dry_run)
        show(rebuilt, text.rebuilt, as_json=json)
        if any(each.refusal for each in rebuilt.checkpoints):
            raise SystemExit(3)


@checkpoints.command("history")
def checkpoint_history(
    consumer: Consumer,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="only this table")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List every move of a consumer's checkpoint, newest first."""
    with opened_lake_reader(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        show(lake.history(consumer, table), text.history, as_json=json)


@catalogs.command("check")
def check_catalogs(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="only this one")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Try whether each catalog can be reached, and lets us list, read, register and pin."""
    with opened(settings, as_json=json) as lake:
        from dalsegno.cli import text  # noqa: PLC0415

        reports = lake.check_catalogs(name)
        show(reports, text.catalog_reports, as_json=json)
        if not all(report.works for report in reports):
            raise SystemExit(4)


@catalogs.command("tables")
def list_tables(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="by default the default one")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List a catalog's tables."""
    with opened(settings, as_json=json) as lake:
        show(lake.tables(name), lambda found: "\n".join(map(str, found)) or "No tables.", as_json=json)


@catalogs.command("spark")
def spark_settings(
    name: Annotated[str | None, typer.Argument(metavar="CATALOG", help="by default all")] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Print the Spark configuration that makes Spark see the same catalogs. It may hold passwords."""
    with reporting(as_json=json):
        from dalsegno.iceberg.catalogs import spark_configuration  # noqa: PLC0415
        from dalsegno.settings import load  # noqa: PLC0415

        loaded = load(settings)
        chosen = [loaded.catalog(name)] if name else list(loaded.catalogs.values())
        conf = {key: value for catalog in chosen for key, value in spark_configuration(catalog).items()}
        show(conf, lambda found: "\n".join(f"{key} {value}" for key, value in found.items()), as_json=json)


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish")],
) -> None:
    """Print what makes a shell complete commands and options."""
    with reporting():
        from typer._completion_shared import get_completion_script  # noqa: PLC0415

        from dalsegno.cli import COMPLETE  # noqa: PLC0415
        from dalsegno.errors import UserError  # noqa: PLC0415

        if shell not in ("bash", "zsh", "fish"):
            raise UserError(f"There is no completion for {shell!r}: expected bash, zsh or fish.")
        print(get_completion_script(prog_name="dalsegno", complete_var=COMPLETE, shell=shell))


workflows.register(app)
runs.register(app)
auditing.register(app)
writes.register(app)
lookups.register(app)
breakpoints_and_limits.register(app)
templates.register(app)
triggers.register(app)
signals.register(app)
serving.register(app)
backing_up.register(app)
spark.register(app)
