"""How a workflow is pushed: read, checked, and stored as a version."""

from __future__ import annotations

from pathlib import Path

from dalsegno.operations.channels import check_channels
from dalsegno.operations.context import Context
from dalsegno.operations.declared_tables import with_declared_tables
from dalsegno.operations.pushed import Pushed
from dalsegno.operations.references import ReferencedFiles
from dalsegno.operations.step_files import files_of_workflow
from dalsegno.operations.trigger_registration import register_triggers
from dalsegno.spec import canonical
from dalsegno.spec import workflows as spec
from dalsegno.spec.files import with_files
from dalsegno.spec.problems import Problems
from dalsegno.store import audit_log, run_queries, runs, workflows


def push(context: Context, text: str | bytes, *, file: str, folder: Path | None) -> Pushed:
    settings, clock = context.settings, context.clock
    read = spec.read(text, now=clock(), file=file, types=context.machinery.templates.step_types())
    definition = with_files(read.definition, ReferencedFiles.beside(folder or settings.root, settings))
    problems = Problems()
    found = files_of_workflow(definition.workflow, read.marks, settings, problems)
    check_channels(definition, read.marks, settings, problems)
    definition = with_declared_tables(definition, read.marks, settings, problems)
    problems.refuse(file)
    workflow_id, written = definition.workflow.id, canonical.to_json(definition)
    with context.store.database.writing() as connection:
        runs.hold_workflow(connection, workflow_id)
        before = run_queries.workflow_row(connection, workflow_id)
        version, is_new = workflows.add_version(
            connection,
            workflow_id,
            written,
            is_active=definition.is_active,
            by=context.caller.name,
            now=clock(),
            files=found.files,
            contents=found.contents,
        )
        after = run_queries.workflow_row(connection, workflow_id)
        was, became = (
            row and {name: row[name] for name in ("active_version", "latest_version")} for row in (before, after)
        )
        if was != became:
            audit_log.describe("workflow", workflow_id, was, became)
        register_triggers(connection, workflow_id, clock())
    return Pushed(workflow_id, version, is_new, definition.is_active, (*read.warnings, *problems.warnings))
