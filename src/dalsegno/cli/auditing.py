"""The command that audits a workflow's targets, and what people read of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli import completion
from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted, opened, show
from dalsegno.cli.runs import Json, SettingsFile, WorkflowId

if TYPE_CHECKING:
    from dalsegno.operations.results import Audit, Comparison, Culprit, Difference, TargetResult

#: How the command ends if a target is not what it should be.
DRIFTED = 5
#: Partitions that differ and are shown.
_SHOWN_PARTITIONS = 5
#: How much of a query is shown.
_SHOWN_QUERY = 200
#: What a target is compared with, by ``basis``.
_BASES = {
    "workflow_sql": "the workflow's SQL",
    "oracle": "its oracle",
    "query": "--query",
}


def register(app: typer.Typer) -> None:
    app.command()(audit)


def audit(
    workflow: WorkflowId,
    version: Annotated[
        str,
        typer.Option(
            metavar="VERSION", help="Whose SQL to use: active, latest, default (active, else latest) or a number."
        ),
    ] = "default",
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Compare this many partitions of each target, chosen at random."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed chooses the same partitions.")] = 0,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Compare this partition, such as day=2026-01-01/region=eu. Repeatable."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Key column. By default, what MERGE compares. Repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Do not compare this column. Repeatable.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Only this table, or the table of --query.",
            autocompletion=completion.tables,
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="What the target should contain: a SELECT in Spark SQL, or a .sql file. By default, the oracle in the "
            "workflow, else the workflow's own SQL.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most this many differing rows.")] = 10,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Compare the targets of a workflow with what they should be.

    The audit uses --query, or the oracle that the workflow names for the table. Otherwise it uses the workflow's own
    SQL, which cannot show a mistake in that SQL. If a target differs, the audit names the first run that went wrong,
    and the exit code is 5.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.operations.results import AuditRequest  # noqa: PLC0415

        request = AuditRequest(
            workflow,
            sample=sample,
            seed=seed,
            partitions=partition or (),
            keys=key or (),
            left_out=without or (),
            query=_query(query),
            target=target,
            limit=limit,
        )
        found = operations.audits.run(request, version=version, say=_silent if json else _say)
        show(found, text, as_json=json)
        if not found.is_equal:
            raise typer.Exit(DRIFTED)


def _query(given: str | None) -> str | None:
    """A query, or what is in the file of that name."""
    if given is None or "\n" in given or not given.strip().lower().endswith(".sql"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except OSError as error:
        from dalsegno.errors import UserError  # noqa: PLC0415

        raise UserError(f"--query: {given} cannot be read: {error.strerror}.") from error


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _silent(_: str) -> None:
    pass


def text(found: Audit) -> str:
    sources = ", ".join(f"{each.table} at snapshot {each.snapshot_id}" for each in found.sources)
    lines = [f"{found.workflow_id}, version {found.version}, {counted(found.runs, 'run')} up to {found.run}: {sources}"]
    for target in found.targets:
        lines += _target(target)
    lines += [found.cannot_see] if found.cannot_see else []
    lines += [f"Note: {note}" for note in found.notes]
    lines += [f"Left for dalsegno clean: {problem}" for problem in found.left_over]
    return "\n".join(lines)


def _target(target: TargetResult) -> Iterator[str]:
    found, basis = target.comparison, _BASES[target.basis]
    looked = "" if target.looked_at is None else f", looked at {', '.join(map(_path, target.looked_at))}"
    if target.is_equal:
        partitions = f" in {counted(found.partitions, 'partition')}" if found.partitions > 1 else ""
        columns = counted(len(found.columns), "column")
        rows = counted(found.found_rows, "row")
        yield f"{paint('✔', 'green')} {target.table} matches {basis}: {rows}{partitions}, {columns}{looked}"
    else:
        missing = f"{counted(found.missing_rows, 'row')} missing"
        superfluous = f"{found.superfluous_rows:,} superfluous"
        yield f"{paint('✘', 'red')} {target.table} differs from {basis}: {missing}, {superfluous}{looked}"
    if target.query:
        query = " ".join(target.query.split())
        yield f"  {target.basis:<11} {query if len(query) <= _SHOWN_QUERY else f'{query[:_SHOWN_QUERY]}…'}"
    if target.strategies:
        taken = ", ".join(f"{name} in {counted(count, 'run')}" for name, count in target.strategies.items())
        yield f"  strategies  {taken}"
    if not target.is_equal:
        yield from _drift(found)
        if target.culprit:
            yield f"  {_culprit(target.culprit)}"
    if found.uncompared:
        yield f"  not compared, because only one of them has it: {', '.join(found.uncompared)}"
    if target.written_by_others and target.is_equal:
        yield f"  written since by others: {counted(len(target.written_by_others), 'snapshot')}"


def _drift(found: Comparison) -> Iterator[str]:
    yield f"  rows        expected {found.expected_rows:,}, found {found.found_rows:,}"
    for column in found.columns:
        if not column.is_equal:
            nulls = column.expected_nulls, column.found_nulls
            more = f"; nulls {nulls[0]:,} and {nulls[1]:,}" if nulls[0] != nulls[1] else ""
            sums = f"checksum expected {column.expected_checksum}, found {column.found_checksum}"
            yield f"  column      {column.name}: {sums}{more}"
    if any(each.values for each in found.differing_partitions):
        yield f"  partitions  {len(found.differing_partitions):,} of {found.partitions:,} differ"
        for each in found.differing_partitions[:_SHOWN_PARTITIONS]:
            yield f"    {_path(each.values)}: expected {counted(each.expected_rows, 'row')}, found {each.found_rows:,}"
        if len(found.differing_partitions) > _SHOWN_PARTITIONS:
            yield "    …"
    if found.differing_keys is not None:
        yield f"  keys        {found.differing_keys:,} differ"
    for difference in found.differences:
        yield f"    {difference.kind:<11} {_difference(difference)}"


def _difference(found: Difference) -> str:
    key = ", ".join(f"{name}={value}" for name, value in found.key.items())
    if found.kind != "changed" or len(found.expected) != 1 or len(found.found) != 1:
        rest = {name: value for name, value in (*found.expected, *found.found)[0].items() if name not in found.key}
        return f"{key}: {_values(rest)}" if rest and found.kind != "changed" else key
    [expected], [present] = found.expected, found.found
    changed = [name for name in expected if expected[name] != present[name]]
    return f"{key}: " + "; ".join(f"{name} expected {expected[name]}, found {present[name]}" for name in changed)


def _values(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())


def _culprit(found: Culprit) -> str:
    what = "wrote nothing" if found.snapshot_id is None else f"snapshot {found.snapshot_id}, {found.operation}"
    before = f" It was correct after {found.last_good_run}." if found.last_good_run else ""
    if not found.is_certain:
        return f"It was wrong after {found.run} already (version {found.version}: {what}); what was before has expired."
    if found.is_run:
        return f"The first run that went wrong is {found.run} (version {found.version}: {what}).{before}"
    return f"Somebody else changed it after {found.run}: {what}, which no run of the workflow wrote.{before}"


def _path(values: Mapping[str, str | None]) -> str:
    return "/".join(f"{name}={'null' if value is None else value}" for name, value in values.items())
