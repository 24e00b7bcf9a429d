"""The verbs of workflows and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno.errors import Conflict, UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.step_files import StepFile
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, key_of, number_of, page_of, sorted_page
from dalsegno.operations.pushed import Pushed
from dalsegno.operations.version_reader import VersionReader
from dalsegno.store import run_queries

if TYPE_CHECKING:
    from dalsegno.operations.proving.adopting import Adopted
    from dalsegno.operations.proving.request import ProofRequest
    from dalsegno.operations.refresh_plans import RefreshPlan
    from dalsegno.operations.version_diff import VersionDiff
    from dalsegno.operations.workflow_list import WorkflowView

_KIND = "workflow"


@dataclass(frozen=True)
class Version:
    """One version of a workflow."""

    version: int
    is_active: bool
    created_at: datetime
    created_by: str
    files: tuple[StepFile, ...]


@dataclass(frozen=True)
class Breakpoint:
    """Every run of the workflow halts before the step."""

    workflow_id: str
    step: str


class Workflows:
    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _reader(self) -> VersionReader:
        return VersionReader(self._context.database)

    # Looking.

    def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[WorkflowView]:
        """By id, with the last run, the next one, and how far each is behind."""
        from dalsegno.operations.workflow_list import workflow_views  # noqa: PLC0415 - the engine takes a moment

        context, after = self._context, key_of(cursor, "workflows")
        views = workflow_views(context.store, context.machinery.versions, context.clock(), after=after, limit=limit + 1)
        return page_of(views, limit, "workflows", lambda view: view.id)

    def plan(self, workflow_id: str, *, version: str = "default") -> tuple[RefreshPlan, ...]:
        """How the next run would refresh each table that the workflow declares, from metadata. Nothing is created."""
        from dalsegno.operations.refresh_plans import plans  # noqa: PLC0415 - slow import

        workflow = self._context.machinery.versions.named(workflow_id, version).workflow
        return tuple(plans(self._context.lake, workflow))

    def versions(self, workflow_id: str, *, limit: int = 1000, cursor: str | None = None) -> Page[Version]:
        """Newest first."""
        below, row = number_of(cursor, "versions"), self._reader.row(workflow_id)
        with self._context.database.reading() as connection:
            found = run_queries.version_rows(connection, workflow_id)
            files = run_queries.files_of_versions(connection, workflow_id)
        listed = [
            Version(
                each["version"],
                each["version"] == row["active_version"],
                each["created_at"],
                each["created_by"],
                tuple(files.get(each["version"], ())),
            )
            for each in found
            if below is None or each["version"] < below
        ]
        return page_of(listed[: limit + 1], limit, "versions", lambda each: each.version)

    def newest_version(self, workflow_id: str) -> int | None:
        """None if the workflow is deleted."""
        return self._reader.newest(workflow_id)

    def definition(self, workflow_id: str, version: str = "default") -> str:
        """A version as JSON, which ``push`` takes back."""
        from dalsegno.operations.workflow_list import definition_text  # noqa: PLC0415 - the engine takes a moment

        return definition_text(self._context.machinery.versions, workflow_id, version)

    def file(self, workflow_id: str, name: str, version: str = "default") -> str:
        """What a file of a version holds, as it was pushed."""
        from dalsegno.operations.workflow_list import file_text  # noqa: PLC0415 - the engine takes a moment

        return file_text(self._context.machinery.versions, workflow_id, version, name)

    def diff(self, workflow_id: str, first: str, second: str) -> VersionDiff:
        """What differs between two versions, each a number, ``active``, ``latest`` or ``default``."""
        return self._context.machinery.versions.diff(workflow_id, first, second)

    def breakpoints(self, workflow_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Breakpoint]:
        """By step."""
        from dalsegno.store import workflows  # noqa: PLC0415 - not for those who list versions

        self._reader.row(workflow_id)
        with self._context.store.database.reading() as connection:
            found = [Breakpoint(workflow_id, step) for step in workflows.breakpoints_of(connection, workflow_id)]
        return sorted_page(found, limit, cursor, "breakpoints", lambda each: each.step)

    # Changing.

    def push(self, text: str | bytes, *, file: str = "workflow", folder: Path | None = None) -> Pushed:
        """Store a workflow as a new version, unless it is the newest one; a file with a problem changes nothing."""
        with self._context.changing("workflows.push"):
            from dalsegno.operations.pushing import push  # noqa: PLC0415 - PyYAML takes a moment

            return push(self._context, text, file=file, folder=folder)

    def adopt(self, request: ProofRequest, *, workflow_id: str | None = None) -> Adopted:
        """Push a workflow that keeps a declared table up to date, if its SELECT was proven for the target."""
        with self._context.changing("workflows.adopt"):
            from dalsegno.operations.proving.adopting import adopt  # noqa: PLC0415 - slow import

            return adopt(self._context, request, workflow_id)

    def push_file(self, file: Path) -> Pushed:
        self._context.require("workflows.push_file")
        try:
            text = file.read_bytes()
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}.") from error
        return self.push(text, file=str(file), folder=file.resolve().parent)

    def activate(self, workflow_id: str, version: str, *, reason: str | None = None) -> int:
        """Make a version the one that triggers start: its number."""
        with self._context.changing("workflows.activate", reason):
            number = self._context.machinery.versions.named(workflow_id, version).version
            self._set_active(workflow_id, number)
        return number

    def deactivate(self, workflow_id: str, *, reason: str | None = None) -> None:
        with self._context.changing("workflows.deactivate", reason):
            self._set_active(workflow_id, None)

    def _set_active(self, workflow_id: str, number: int | None) -> None:
        from dalsegno.operations.trigger_registration import register_triggers  # noqa: PLC0415 - the engine takes a moment
        from dalsegno.store import audit_log, runs, workflows  # noqa: PLC0415

        now = self._context.clock()
        with self._context.store.database.writing() as connection:
            runs.hold_workflow(connection, workflow_id)
            before = self._row(connection, workflow_id)["active_version"]
            if before != number:
                audit_log.describe(_KIND, workflow_id, {"active_version": before}, {"active_version": number})
            workflows.activate(connection, workflow_id, number, now=now)
            register_triggers(connection, workflow_id, now)

    def delete(self, workflow_id: str, *, reason: str | None = None) -> None:
        """Refused while a run is open."""
        with self._context.changing("workflows.delete", reason) as change:
            from dalsegno.operations.trigger_registration import register_triggers  # noqa: PLC0415 - the engine takes a moment
            from dalsegno.store import runs, workflows  # noqa: PLC0415

            now = self._context.clock()
            with self._context.store.database.writing() as connection:
                runs.hold_workflow(connection, workflow_id)
                row = self._row(connection, workflow_id)
                if waiting := runs.open_runs(connection, workflow_id):
                    number = waiting[0]["number"]
                    raise Conflict(
                        f"{workflow_id} has {len(waiting)} runs that have not ended.",
                        actions=[action("Stop them first", Verb.STOP, run=f"{workflow_id}/{number}")],
                    )
                numbers = {name: row[name] for name in ("active_version", "latest_version", "last_run")}
                change.describe(_KIND, workflow_id, before=numbers)
                workflows.mark_deleted(connection, workflow_id, now=now)
                register_triggers(connection, workflow_id, now)

    def set_breakpoint(self, workflow_id: str, step: str) -> None:
        """Let every run of a workflow halt before a step."""
        with self._context.changing("workflows.set_breakpoint") as change:
            from dalsegno.operations.run_reader import unknown_step  # noqa: PLC0415
            from dalsegno.store import runs, workflows  # noqa: PLC0415

            known = self._context.machinery.versions.named(workflow_id, "latest").steps
            if step not in known:
                raise unknown_step(workflow_id, step, known)
            with self._context.store.database.writing() as connection:
                if step not in workflows.breakpoints_of(connection, workflow_id):
                    change.describe("breakpoint", f"{workflow_id} {step}", after={"step": step})
                workflows.set_breakpoint(connection, workflow_id, step)
                runs.touch_open_runs(connection, workflow_id)

    def clear_breakpoint(self, workflow_id: str, step: str) -> None:
        with self._context.changing("workflows.clear_breakpoint") as change:
            from dalsegno.store import runs, workflows  # noqa: PLC0415

            with self._context.store.database.writing() as connection:
                if not workflows.clear_breakpoint(connection, workflow_id, step):
                    raise UnknownName(
                        f"{workflow_id} has no breakpoint before {step!r}.",
                        actions=[action("See those there are", Verb.LIST_BREAKPOINTS, workflow=workflow_id)],
                    )
                change.describe("breakpoint", f"{workflow_id} {step}", before={"step": step})
                runs.touch_open_runs(connection, workflow_id)

    def _row(self, connection: Any, workflow_id: str) -> Mapping[str, Any]:
        """The workflow inside of a transaction; otherwise whoever looks it up says that it is not there."""
        return run_queries.workflow_row(connection, workflow_id) or self._reader.row(workflow_id)
