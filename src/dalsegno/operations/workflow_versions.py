"""Workflows as they were pushed, version by version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dalsegno.engine.blueprints import Blueprint
from dalsegno.errors import Problem, UserError
from dalsegno.model.stored_text import whole_number
from dalsegno.operations.channels import check_channels
from dalsegno.operations.job_templates import Templates
from dalsegno.operations.references import ReferencedFiles
from dalsegno.operations.step_files import files_of_workflow
from dalsegno.operations.trigger_registration import register_triggers
from dalsegno.operations.version_diff import VersionDiff, diff_of
from dalsegno.operations.version_reader import VersionReader, no_version
from dalsegno.settings import Settings
from dalsegno.spec import canonical
from dalsegno.spec import workflows as spec
from dalsegno.spec.files import with_files
from dalsegno.spec.problems import Problems
from dalsegno.store import Store, run_queries, runs, workflows

#: Versions that are kept parsed.
_KEPT = 256


@dataclass(frozen=True)
class Pushed:
    """What became of a push."""

    workflow_id: str
    version: int
    #: False: the newest version was the same already.
    is_new: bool
    is_active: bool
    #: What may be meant so, but is worth a look.
    warnings: tuple[Problem, ...] = ()


class Versions(VersionReader):
    """The versions there are; a version never changes, so those that were used stay in memory."""

    def __init__(
        self, store: Store, settings: Settings, templates: Templates, clock: Callable[[], datetime], actor: str
    ) -> None:
        super().__init__(store.database)
        self.store = store
        self.templates = templates
        self.settings = settings
        self.clock = clock
        self.actor = actor
        self._known: dict[tuple[str, int], Blueprint] = {}

    def push(self, text: str | bytes, *, file: str, folder: Path | None) -> Pushed:
        read = spec.read(text, now=self.clock(), file=file, types=self.templates.step_types())
        definition = with_files(read.definition, ReferencedFiles.beside(folder or self.settings.root, self.settings))
        problems = Problems()
        found = files_of_workflow(definition.workflow, read.marks, self.settings, problems)
        check_channels(definition, read.marks, self.settings, problems)
        problems.refuse(file)
        workflow_id, written = definition.workflow.id, canonical.to_json(definition)
        with self.store.database.writing() as connection:
            runs.hold_workflow(connection, workflow_id)
            version, is_new = workflows.add_version(
                connection,
                workflow_id,
                written,
                is_active=definition.is_active,
                by=self.actor,
                now=self.clock(),
                files=found.files,
                contents=found.contents,
            )
            register_triggers(connection, workflow_id, self.clock())
        return Pushed(workflow_id, version, is_new, definition.is_active, (*read.warnings, *problems.warnings))

    def blueprint(self, workflow_id: str, version: int) -> Blueprint:
        key = (workflow_id, version)
        if key not in self._known:
            with self.store.database.reading() as connection:
                row = run_queries.version_row(connection, workflow_id, version)
                files = run_queries.files_of_version(connection, workflow_id, version)
            if row is None:
                raise no_version(workflow_id, version)
            if len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = Blueprint(spec.from_json(row["definition"]), version, tuple(files))
        return self._known[key]

    def named(self, workflow_id: str, version: str) -> Blueprint:
        """``active``, ``latest``, ``default`` (the active one, else the latest) or a number."""
        row = self.row(workflow_id)
        match version:
            case "latest":
                number = row["latest_version"]
            case "default":
                number = row["active_version"] or row["latest_version"]
            case "active":
                number = row["active_version"]
                if number is None:
                    raise UserError(
                        f"{workflow_id} has no active version.",
                        hint=f"Activate one: dalsegno versions {workflow_id} --activate latest",
                    )
            case _ if version.isdecimal():
                number = whole_number(version)
                if number is None:
                    raise no_version(workflow_id, version)
            case _:
                raise UserError(f"{version!r} is no version: expected active, latest, default or a number.")
        return self.blueprint(workflow_id, number)

    def active(self, workflow_id: str) -> Blueprint | None:
        """The version that triggers start, if there is one."""
        with self.store.database.reading() as connection:
            row = run_queries.workflow_row(connection, workflow_id)
        return self.blueprint(workflow_id, row["active_version"]) if row and row["active_version"] else None

    def diff(self, workflow_id: str, first: str, second: str) -> VersionDiff:
        """What differs between two versions, each a number or as ``named`` takes it."""
        numbers = [self.named(workflow_id, each).version for each in (first, second)]
        with self.store.database.reading() as connection:
            return diff_of(connection, workflow_id, *numbers)

    def activate(self, workflow_id: str, version: str) -> int:
        number = self.named(workflow_id, version).version
        with self.store.database.writing() as connection:
            runs.hold_workflow(connection, workflow_id)
            workflows.activate(connection, workflow_id, number, now=self.clock())
            register_triggers(connection, workflow_id, self.clock())
        return number

    def deactivate(self, workflow_id: str) -> None:
        self.row(workflow_id)
        with self.store.database.writing() as connection:
            runs.hold_workflow(connection, workflow_id)
            workflows.activate(connection, workflow_id, None, now=self.clock())
            register_triggers(connection, workflow_id, self.clock())

    def delete(self, workflow_id: str) -> None:
        """Refused while a run is open."""
        self.row(workflow_id)
        with self.store.database.writing() as connection:
            runs.hold_workflow(connection, workflow_id)
            if waiting := runs.open_runs(connection, workflow_id):
                number = waiting[0]["number"]
                raise UserError(
                    f"{workflow_id} has {len(waiting)} runs that have not ended.",
                    hint=f"Stop them first: dalsegno stop {workflow_id}/{number}",
                )
            workflows.mark_deleted(connection, workflow_id, now=self.clock())
            register_triggers(connection, workflow_id, self.clock())
