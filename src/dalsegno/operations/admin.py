"""The verbs of whoever looks after the store: limits, tokens, clean-up, copies, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, number_of, page_of, sorted_page
from dalsegno.store import audit_queries

if TYPE_CHECKING:
    from dalsegno.operations.backup import Backup


@dataclass(frozen=True)
class Limit:
    """How many steps with a tag run at once."""

    tag: str
    most: int
    running: int


@dataclass(frozen=True)
class CleanUp:
    """What a clean-up removed."""

    abandoned: tuple[str, ...]
    dropped: tuple[str, ...]
    #: The namespaces of clones that an audit left behind.
    scratch: tuple[str, ...]
    #: What could not be removed, and why.
    left_over: tuple[str, ...]
    #: Captures that have expired, but behind which work was begun, and by whom.
    kept: tuple[str, ...]
    #: How many finished runs, and how many folders of their steps.
    runs: int
    folders: int


@dataclass(frozen=True)
class RecordedChange:
    """One row of the audit log."""

    id: int
    at: datetime
    caller: str
    roles: Sequence[str]
    verb: str
    subject_kind: str
    subject: str
    #: None: it was not there before, or is not there any more.
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    reason: str | None
    request_id: str | None


class Admin:
    def __init__(self, context: Context) -> None:
        self._context = context

    # Looking.

    def history(
        self, subject: str | None = None, *, by: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> Page[RecordedChange]:
        """Who changed what, newest first: all of it, what concerns a subject, or what one caller did."""
        below = number_of(cursor, "changes")
        with self._context.database.reading() as connection:
            rows = audit_queries.newest(connection, subject=subject, caller=by, limit=limit + 1, below=below)
        return page_of([_recorded(row) for row in rows], limit, "changes", lambda change: change.id)

    def limits(self, *, limit: int = 100, cursor: str | None = None) -> Page[Limit]:
        """By tag."""
        from dalsegno.store import queue  # noqa: PLC0415 - history does without

        with self._context.store.database.reading() as connection:
            found = [Limit(*each) for each in queue.all_limits(connection)]
        return sorted_page(found, limit, cursor, "limits", lambda each: each.tag)

    # Changing.

    def set_limit(self, tag: str, most: int) -> None:
        """Limit how many steps with a tag run at once, over all workflows."""
        self._set_limit("admin.set_limit", tag, most)

    def clear_limit(self, tag: str) -> None:
        self._set_limit("admin.clear_limit", tag, None)

    def _set_limit(self, verb: str, tag: str, most: int | None) -> None:
        with self._context.changing(verb) as change:
            from dalsegno.store import queue  # noqa: PLC0415 - history does without

            with self._context.store.database.writing() as connection:
                before = {name: known for name, known, _ in queue.all_limits(connection)}.get(tag)
                if before != most:
                    change.describe("limit", tag, _limit(before), _limit(most))
                queue.set_limit(connection, tag, most)

    def new_token(self) -> str:
        """A token for the server; those that there were are revoked."""
        with self._context.changing("admin.new_token"):
            from dalsegno.operations.tokens import new_token  # noqa: PLC0415 - history does without

            return new_token(self._context.store, by=self._context.caller.name, now=self._context.clock())

    def clean(self) -> CleanUp:
        """Give up expired captures, and remove leftovers and what is older than the settings keep it."""
        with self._context.changing("admin.clean") as change:
            from dalsegno.operations.retention import Retention  # noqa: PLC0415 - history does without

            context = self._context
            retention = Retention(context.settings, context.store, context.clock)
            cleaned, runs, folders = context.lake.clean(), retention.forget_runs().runs, retention.remove_files()
            if cleaned.dropped or cleaned.scratch or folders:
                # These are tables and files: the row follows their removal.
                removed = {"dropped_captures": len(cleaned.dropped), "dropped_scratch": len(cleaned.scratch)}
                with context.store.database.writing():
                    change.describe("store", "store", after={**removed, "deleted_folders": folders})
        return CleanUp(
            cleaned.abandoned,
            cleaned.dropped,
            cleaned.scratch,
            cleaned.left_over,
            cleaned.kept,
            runs,
            folders,
        )

    def back_up(self, file: Path) -> Backup:
        """Copy the store into a new file, while it is in use."""
        self._context.require("admin.back_up")
        from dalsegno.operations.backup import back_up  # noqa: PLC0415 - history does without

        return back_up(self._context.store, file)


def _limit(most: int | None) -> dict[str, int] | None:
    return None if most is None else {"most": most}


def _recorded(row: Mapping[str, Any]) -> RecordedChange:
    renamed = {"recorded_at": "at", "before_change": "before", "after_change": "after"}
    return RecordedChange(**{renamed.get(name, name): value for name, value in row.items()})
