"""What can be seen of workflows and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from dalsegno.errors import UnknownName
from dalsegno.hints import Verb, action
from dalsegno.store import run_queries
from dalsegno.store.reading import Readable


class VersionReader:
    """The versions there are."""

    def __init__(self, database: Readable) -> None:
        self.database = database

    def definition(self, workflow_id: str, version: int) -> Mapping[str, Any]:
        """A version as it is stored."""
        with self.database.reading() as connection:
            row = run_queries.version_row(connection, workflow_id, version)
        if row is None:
            raise no_version(workflow_id, version)
        found: Mapping[str, Any] = row["definition"]
        return found

    def row(self, workflow_id: str) -> Mapping[str, Any]:
        with self.database.reading() as connection:
            row = run_queries.workflow_row(connection, workflow_id)
            known = [] if row else [each["id"] for each in run_queries.workflow_rows(connection)]
        if row is None:
            close = get_close_matches(workflow_id, known, n=1)
            raise UnknownName(
                f"There is no workflow {workflow_id!r}.",
                hint=f"Did you mean {close[0]!r}?" if close else None,
                actions=[] if close else [action("Push it first", Verb.PUSH)],
            )
        return dict(row)

    def newest(self, workflow_id: str) -> int | None:
        """The number of the newest version; None if the workflow is deleted."""
        with self.database.reading() as connection:
            row = run_queries.workflow_row(connection, workflow_id)
        return row["latest_version"] if row else None


def no_version(workflow_id: str, version: object) -> UnknownName:
    return UnknownName(
        f"{workflow_id} has no version {version!s:.40}.",
        actions=[action("See the versions there are", Verb.LIST_VERSIONS, workflow=workflow_id)],
    )
