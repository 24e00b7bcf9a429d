"""The verbs of checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalsegno.model.captures import Checkpoint
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, number_of, page_of, sorted_page
from dalsegno.store import capture_queries
from dalsegno.store.capture_queries import CheckpointPosition

if TYPE_CHECKING:
    from dalsegno.capture.rebuilding import Rebuilt


class Checkpoints:
    def __init__(self, context: Context) -> None:
        self._context = context

    # Looking.

    def list(
        self, consumer: str | None = None, *, limit: int = 1000, cursor: str | None = None
    ) -> Page[CheckpointPosition]:
        """Where each consumer stands, by name: one entry for each of its tables."""
        found = self._context.lake_reader.checkpoints(consumer)
        return sorted_page(found, limit, cursor, "checkpoints", lambda each: f"{each.consumer} {each.table}")

    def get(self, table: str, *, consumer: str) -> CheckpointPosition:
        """Where one consumer stands on one table."""
        return self._context.lake_reader.checkpoint(table, consumer=consumer)

    def history(
        self, consumer: str, table: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> Page[Checkpoint]:
        """Every move of a consumer's checkpoint, newest first."""
        name = self._context.lake_reader.name(table) if table else None
        below = number_of(cursor, "moves")
        with self._context.database.reading() as connection:
            found = capture_queries.history(connection, consumer, name, limit=limit + 1, below=below)
        return page_of(found, limit, "moves", lambda move: move.id)

    # Changing.

    def set(
        self,
        table: str,
        *,
        consumer: str,
        to: str,
        branch: str | None = None,
        reason: str = "set by hand",
        reprocess: bool = False,
    ) -> Checkpoint:
        """Move a checkpoint by hand, to earliest, latest, a snapshot's id or a moment."""
        with self._context.changing("checkpoints.set", reason):
            return self._context.lake.set_checkpoint(
                table, consumer=consumer, to=to, branch=branch, reason=reason, reprocess=reprocess
            )

    def rebuild(self, *targets: str, consumer: str | None = None, is_dry_run: bool = False) -> Rebuilt:
        """Set checkpoints to where the tables written for captures say, if the store has none or older ones."""
        with self._context.changing("checkpoints.rebuild"):
            return self._context.lake.rebuild_checkpoints(*targets, consumer=consumer, is_dry_run=is_dry_run)
