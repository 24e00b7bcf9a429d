"""Versions of workflows, parsed."""

from __future__ import annotations

from dalsegno.engine.blueprints import Blueprint
from dalsegno.errors import Conflict, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.stored_text import whole_number
from dalsegno.operations.version_diff import VersionDiff, diff_of
from dalsegno.operations.version_reader import VersionReader, no_version
from dalsegno.spec import workflows as spec
from dalsegno.store import Store, run_queries

#: Versions that are kept parsed.
_KEPT = 256


class Versions(VersionReader):
    """The versions there are; a version never changes, so those that were used stay in memory."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database)
        self.store = store
        self._known: dict[tuple[str, int], Blueprint] = {}

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
                    raise Conflict(
                        f"{workflow_id} has no active version.",
                        actions=[action("Activate one", Verb.LIST_VERSIONS, workflow=workflow_id, activate="latest")],
                    )
            case _ if version.isdecimal():
                number = whole_number(version)
                if number is None:
                    raise no_version(workflow_id, version)
            case _:
                raise UserError(f"{version!r} is not a version: expected active, latest, default or a number.")
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
