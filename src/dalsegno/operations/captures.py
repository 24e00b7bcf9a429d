"""The verbs of captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

from dalsegno.model.captures import Capture
from dalsegno.operations.context import Context

if TYPE_CHECKING:
    from dalsegno.capture.changes import Changes
    from dalsegno.capture.key_columns import Keys
    from dalsegno.capture.planning import TablePlan
    from dalsegno.capture.settling import Committed
    from dalsegno.model.work_units import WorkUnit
    from dalsegno.operations.pages import Page
    from dalsegno.operations.resolving import Resolved
    from dalsegno.operations.undoing import Undone


class _Range(TypedDict, total=False):
    """What ``Lake.plan`` and ``Lake.capture`` take."""

    start: str | None
    upto: str | None
    max_snapshots: int | None
    max_bytes: int | None
    branch: str
    changes: str | None
    operations: Sequence[str] | None
    keys: Keys
    mode: str | None


class PlanOptions(_Range, total=False):
    lookback_days: int
    event_time: str | None


class CaptureOptions(_Range, total=False):
    ranges: Sequence[str]
    partitions: bool | None
    target: str | None


class Captures:
    def __init__(self, context: Context) -> None:
        self._context = context

    # Looking.

    def list(
        self,
        consumer: str | None = None,
        *,
        pending_only: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Capture]:
        """Newest first."""
        from dalsegno.operations.pages import key_of, page_of  # noqa: PLC0415 - a capture does without
        from dalsegno.store import capture_queries  # noqa: PLC0415

        with self._context.database.reading() as connection:
            found = capture_queries.listed(
                connection,
                consumer,
                pending_only=pending_only,
                undropped_only=False,
                limit=limit + 1,
                after=key_of(cursor, "captures"),
            )
        return page_of(found, limit, "captures", lambda capture: capture.id)

    def plan(self, *tables: str, consumer: str, **options: Unpack[PlanOptions]) -> tuple[TablePlan, ...]:
        """What a capture of the same options would do, and what it would cost, without doing it."""
        return tuple(self._context.lake.plan(*tables, consumer=consumer, **options))

    def query(self, capture_id: str, *, engine: str = "spark", table: str | None = None) -> str:
        """The changed rows of a capture with their ``_change_type``, as a query for an engine."""
        return self._context.lake.query(capture_id, engine=engine, table=table)

    def query_setup(self, capture_id: str, *, engine: str = "spark", table: str | None = None) -> tuple[str, ...]:
        """The statements that an engine needs before the query, to reach the files; they hold no secret."""
        return self._context.lake.query_setup(capture_id, engine=engine, table=table)

    def work(self, capture_id: str) -> tuple[WorkUnit, ...]:
        """What steps have written behind a capture, oldest first."""
        from dalsegno.operations.resolving import work_behind  # noqa: PLC0415 - slow import

        return tuple(work_behind(self._context.lake, capture_id))

    # Changing.

    def capture(self, *tables: str, consumer: str, **options: Unpack[CaptureOptions]) -> Changes:
        """Everything that was added to the tables since the consumer's checkpoint, as change tables."""
        with self._context.changing("captures.capture"):
            return self._context.lake.capture(*tables, consumer=consumer, **options)

    def commit(self, capture_id: str, *others: str) -> Committed:
        """Move the checkpoint to the end of the capture's range, then drop its change tables."""
        with self._context.changing("captures.commit"):
            return self._context.lake.commit(capture_id, *others)

    def abandon(self, capture_id: str, *, reason: str = "abandoned by hand") -> Capture:
        """Give a capture up: the next one takes its range again."""
        with self._context.changing("captures.abandon", reason):
            return self._context.lake.abandon(capture_id, reason=reason)

    def drop(self, capture_id: str) -> Capture:
        """Remove the change tables of a capture that is committed or abandoned."""
        with self._context.changing("captures.drop") as change:
            capture = self._context.store.capture(capture_id)
            if capture.dropped_at is None:
                change.describe("capture", capture.id, {"is_dropped": False}, {"is_dropped": True})
            return self._context.lake.drop(capture.id)

    def resolve(self, capture_id: str, *, step: str | None = None, is_written: bool) -> Resolved:
        """Say whether a statement in doubt was executed."""
        with self._context.changing("captures.resolve") as change:
            from dalsegno.operations.resolving import resolve  # noqa: PLC0415 - slow import

            capture = self._context.store.capture(capture_id)
            change.describe("capture", capture.id, after={"step": step, "is_written": is_written})
            return resolve(self._context.lake, capture.id, step=step, is_written=is_written)

    def undo(self, capture_id: str, *, step: str | None = None, leave_rows: bool = False) -> Undone:
        """Roll back what was written behind a capture; ``leave_rows``: only forget that it was."""
        with self._context.changing("captures.undo") as change:
            from dalsegno.operations.undoing import undo  # noqa: PLC0415 - slow import

            capture = self._context.store.capture(capture_id)
            change.describe("capture", capture.id, after={"step": step, "leave_rows": leave_rows})
            return undo(self._context.lake, capture.id, step=step, leave_rows=leave_rows)
