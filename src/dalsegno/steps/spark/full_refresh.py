"""What a full refresh does to the targets of SQL: each is emptied once, before the first statement that writes to it.

The statement that empties a target is one of the step's work, so it is recorded, resumed and undone like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dalsegno.errors import DataError, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.iceberg import evidence
from dalsegno.iceberg.history import MAIN, branch_heads
from dalsegno.iceberg.stamps import PREFIX, stamped_ranges
from dalsegno.model.full_refresh import FullRefresh, replaces
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import WorkUnit
from dalsegno.plan.full_refresh import emptied_by, emptying, is_emptied
from dalsegno.spark.forms import Effect, Form, form_of
from dalsegno.steps.contract import Work
from dalsegno.steps.spark.targets import Target

_WORKFLOW = f"{PREFIX}workflow"
#: They bring rows, and where from is not known.
_BRINGING = ("LOAD DATA", "CALL add_files", "CALL cherrypick_snapshot", "CALL publish_changes")

Find = Callable[[tuple[str, ...]], Target | None]


def with_emptying(texts: Sequence[str], work: Work, units: Sequence[WorkUnit], find: Find) -> list[str]:
    """The statements with those that empty their targets. ``units``: all work behind the same captures."""
    _refuse_parts(work)
    # The id of work that was undone and begun anew has a number behind the digest.
    digest = work.unit.partition(".")[0]
    own = next((each for each in units if each.key.digest == digest), None)
    if own is not None and own.is_begun:
        known = {emptied_by(each.text) for each in own.statements}
        return _with(texts, work, lambda table: table.quoted in known)
    others = [each for each in units if each is not own]

    def is_to_empty(table: TableName) -> bool:
        if is_emptied(table, others):
            return False
        if target := find((table.catalog, *table.identifier)):
            _refuse_rows_of_others(target, work)
        return True

    return _with(texts, work, is_to_empty)


def _refuse_rows_of_others(target: Target, work: Work) -> None:
    """Raise if somebody else may have written to a target that is about to be emptied."""
    if target.metadata is None:
        return
    parent = branch_heads(target.metadata).get(target.branch or MAIN)
    stranger: str | None = None
    for raw in evidence.line(target.metadata, parent):
        summary = raw.get("summary") or {}
        _refuse_rows_of_other_sources(target.name, summary, work)
        if stranger is None and not _is_ours(summary, work.workflow_id):
            by = f"workflow {summary[_WORKFLOW]!r}" if _WORKFLOW in summary else "something else"
            stranger = f"{by} wrote snapshot {raw['snapshot-id']}"
        parent = raw.get("parent-snapshot-id")
    if stranger is None and parent is not None:
        stranger = "its older snapshots have expired, so who wrote its rows is not known"
    if stranger is not None and not _is_allowed(target.name, work):
        raise _may_be_others(target.name, work, stranger)


def _refuse_parts(work: Work) -> None:
    """Raise if some captures hold whole tables and others only what changed: the rest could not be written again."""
    for capture in work.captures:
        if not replaces([capture]):
            whole = next(each for each in work.captures if replaces([each]))
            raise UserError(
                f"Capture {whole.id} holds a whole table, and capture {capture.id} only what changed in "
                f"{', '.join(str(each.table) for each in capture.tables)}: with both, the targets of step "
                f"{work.step_id!r} cannot be refreshed.",
                actions=[
                    action("Abandon the first", Verb.ABANDON, capture=whole.id),
                    action("Abandon the second", Verb.ABANDON, capture=capture.id),
                    action("Then refresh all", Verb.RUN, workflow=work.workflow_id, full_refresh=True),
                ],
            )


def _is_allowed(table: TableName, work: Work) -> bool:
    allowed = work.full_refresh or FullRefresh()
    is_default = table.catalog == work.settings.default_catalog
    return bool({str(table), *([".".join(table.identifier)] if is_default else [])} & allowed.empty)


def _refuse_rows_of_other_sources(table: TableName, summary: Mapping[str, Any], work: Work) -> None:
    """Raise for rows that the captures of this step do not bring back."""
    if summary.get(_WORKFLOW) != work.workflow_id:
        return
    is_of_this_run = summary.get(f"{PREFIX}run") == str(work.run_number)
    if _is_allowed(table, work) and not is_of_this_run:
        return
    tables = [captured for capture in work.captures for captured in capture.tables]
    known = {*(each.upto.table_uuid for each in tables), *(str(each.table) for each in tables)}
    for told in stamped_ranges(summary):
        if not {told.get("uuid"), told.get("table")} & known:
            raise UserError(
                f"Step {work.step_id!r} writes to {table}, which also holds rows of {told.get('table')}: emptied, it "
                "would lose them, because this step does not consume a capture of that table.",
                hint="Put all captures before the first step that writes, so that it consumes all of them, and push.",
                actions=[_refresh_and_empty(f"If {told.get('table')} is no longer a source", work.workflow_id, table)],
            )


def _may_be_others(table: TableName, work: Work, because: str) -> DataError:
    workflow_id = work.workflow_id
    return DataError(
        f"A full refresh of {workflow_id} would empty {table}, which may hold rows of others: {because}. Nothing was "
        "removed.",
        actions=[_refresh_and_empty(f"If {workflow_id} writes all of its rows", workflow_id, table)],
    )


def _refresh_and_empty(aim: str, workflow_id: str, table: TableName) -> Action:
    return action(aim, Verb.RUN, workflow=workflow_id, full_refresh=True, empty=str(table))


def _is_ours(summary: Mapping[str, Any], workflow_id: str) -> bool:
    if _WORKFLOW in summary:
        return bool(summary[_WORKFLOW] == workflow_id)
    # What rewrites files, removes rows or adds none brings no row of anybody.
    adds_none = not any(int(summary.get(f"added-{what}") or 0) for what in ("records", "data-files"))
    return summary.get("operation") in ("replace", "delete") or adds_none


def _with(texts: Sequence[str], work: Work, is_to_empty: Callable[[TableName], bool]) -> list[str]:
    found: list[str] = []
    replaced: set[TableName] = set()
    sources = {captured.table for capture in work.captures for captured in capture.tables}
    for text in texts:
        form = form_of(text)
        table = _written(form, work)
        if table is not None and table in sources:
            raise UserError(
                f"Step {work.step_id!r} writes to {table}, which a full refresh reads: it cannot be emptied."
            )
        if table is not None and table not in replaced:
            replaced.add(table)
            if not form.creates and not form.drops and is_to_empty(table):
                found.append(emptying(table))
        found.append(text)
    return found


def _written(form: Form, work: Work) -> TableName | None:
    """The table whose rows a statement changes; None if it changes no rows."""
    if form.effect is Effect.UNKNOWN or form.name in _BRINGING:
        raise _unclear(
            work, f"{form.name} {f'cannot be understood, because {form.because}' if form.because else 'brings rows'}"
        )
    is_definition = form.is_ddl and form.effect is Effect.UNSTAMPED
    if form.effect not in (Effect.STAMPED, Effect.UNSTAMPED) or (is_definition and not form.drops):
        return None
    if form.creates and form.is_idempotent:
        raise _unclear(work, f"{form.name} with IF NOT EXISTS writes nothing where the table exists")
    parts = form.target
    if len(parts) < 3 or parts[0] not in work.settings.catalogs:  # noqa: PLR2004 - catalog, namespace, name
        if is_definition:
            return None
        raise _unclear(work, f"{'.'.join(parts)!r} has no catalog: write catalog.namespace.table")
    return TableName(parts[0], parts[1:-1], parts[-1])


def _unclear(work: Work, because: str) -> UserError:
    return UserError(
        f"A full refresh cannot empty the targets of step {work.step_id!r}: {because}.",
        hint="Change the statement, push the workflow, and ask for the full refresh again. Nothing was removed.",
    )
