"""What a capture hands over in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from dalsegno.capture.capturing import Captured, NothingNew
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.queries import query_of
from dalsegno.capture.settling import Committed, abandon, commit
from dalsegno.capture.views import metadata_location
from dalsegno.errors import UserError
from dalsegno.iceberg.object_stores import duckdb_setup, storage_options
from dalsegno.model.capture_requests import CaptureRequest
from dalsegno.model.captures import Capture, CapturedTable, Role
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment
from dalsegno.settings import CatalogSettings


@dataclass(frozen=True)
class Changes:
    """What changed, ready to be read; false if nothing did.

    As a context manager it commits when the block succeeds, and keeps the capture when it fails, so that the next
    ``capture`` hands out the same change table.
    """

    context: CaptureContext
    consumer: str
    #: None if there is nothing to process.
    capture: Capture | None
    #: What was looked at where there is nothing to process.
    increments: tuple[Increment, ...] = ()
    #: Whether an earlier call made it, which was neither committed nor abandoned.
    is_resumed: bool = False

    @classmethod
    def of(cls, context: CaptureContext, request: CaptureRequest, outcome: Captured | NothingNew) -> Self:
        match outcome:
            case Captured(capture, is_resumed):
                return cls(context, request.consumer, capture, is_resumed=is_resumed)
            case NothingNew(_, increments):
                return cls(context, request.consumer, None, increments)

    def __bool__(self) -> bool:
        return self.capture is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.capture is not None:
            self.commit()

    @property
    def id(self) -> str:
        return self._there().id

    @property
    def tables(self) -> Mapping[TableName, CapturedTable]:
        """Each source and what was captured of it."""
        return {captured.table: captured for captured in self._there().tables}

    @property
    def table(self) -> str:
        """The name of the change table, as engines write it; for a capture of a single source."""
        return str(self._only().change_table)

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name of the change table inside its catalog, as PyIceberg takes it."""
        return self._only().change_table.identifier

    @property
    def files(self) -> int:
        return int(self.details["files"])

    @property
    def rows(self) -> int:
        return int(self.details["rows"])

    @property
    def bytes(self) -> int | None:
        return self.details["bytes"]  # type: ignore[no-any-return] # JSON of our own

    @property
    def ranges(self) -> Mapping[str, Any]:
        """Column → its smallest and largest value, or why they are unknown."""
        return self.details["ranges"]  # type: ignore[no-any-return] # JSON of our own

    @property
    def partitions(self) -> list[Mapping[str, Any]] | None:
        """The touched partitions, each new or re-opened; None if they were not listed."""
        return self.details["partitions"]  # type: ignore[no-any-return] # JSON of our own

    @property
    def details(self) -> Mapping[str, Any]:
        """All that is known of the capture's single source."""
        return self._only().details

    @property
    def before(self) -> str | None:
        """The name of the table that shows the changed files as they were, if the capture compares both ends."""
        name = self._only().tables.get(Role.BEFORE)
        return None if name is None else str(name)

    @property
    def deleted_keys(self) -> str | None:
        """The name of the table of the keys that equality deletes in the range name, if there are any."""
        name = self._only().tables.get(Role.DELETED_KEYS)
        return None if name is None else str(name)

    @property
    def changes_view(self) -> str | None:
        """The name of the view of the changed rows, for Spark; if there is none, ``details`` say why."""
        return self.details.get("changes_view")

    @property
    def has_more(self) -> bool:
        """Whether one of the sources has changes after the range, which the next capture takes."""
        if self.capture is None:
            return any(increment.has_more for increment in self.increments)
        return any(captured.details.get("has_more", False) for captured in self.capture.tables)

    def query(self, engine: str = "spark") -> str:
        """The changed rows with their ``_change_type``, as a query for an engine.

        Of a capture of added files every row is an insert; with both ends there are deletes, and with keys, updates.
        """
        captured = self._only()
        return query_of(captured, engine, partial(metadata_location, self.context.tables, captured))

    @property
    def storage_options(self) -> dict[str, str]:
        """For ``polars.scan_iceberg``: how the files are reached. It may hold secrets."""
        return storage_options(self._settings)

    def duckdb_setup(self) -> tuple[str, ...]:
        """The statements that let DuckDB reach the files, to execute before the query. They may hold secrets."""
        return duckdb_setup(self._settings, with_secrets=True)

    @property
    def _settings(self) -> CatalogSettings:
        return self.context.settings.catalog(self._only().table.catalog)

    def report(self) -> dict[str, Any]:
        """The capture, or None, and each table with its range and details: what ``--json`` shows."""
        if self.capture is None:
            looked_at = [
                {
                    "table": str(increment.table),
                    "after": increment.after,
                    "upto": increment.upto,
                    "skipped_snapshots": len(increment.snapshots),
                    "has_more": increment.has_more,
                }
                for increment in self.increments
            ]
            return {"capture": None, "consumer": self.consumer, "tables": looked_at}
        return {
            "capture": self.capture.id,
            "consumer": self.consumer,
            "state": self.capture.state.value,
            "resumed": self.is_resumed,
            "expires_at": self.capture.expires_at.isoformat(),
            "tables": [
                {
                    "table": str(captured.table),
                    "change_table": str(captured.change_table),
                    "before_table": str(captured.tables[Role.BEFORE]) if Role.BEFORE in captured.tables else None,
                    "deleted_keys_table": str(captured.tables[Role.DELETED_KEYS])
                    if Role.DELETED_KEYS in captured.tables
                    else None,
                    "changes": captured.spec.changes.value,
                    "mode": captured.spec.mode.value,
                    "location": captured.location,
                    "after": captured.after,
                    "upto": captured.upto,
                    "first": captured.is_first,
                    "full": captured.is_full,
                    **captured.details,
                }
                for captured in self.capture.tables
            ],
        }

    def commit(self) -> Committed:
        """Commit the capture: move the consumer's checkpoint past it."""
        return commit(self.context, [self.id])

    def abandon(self, reason: str = "abandoned by hand") -> Capture:
        """Abandon the capture. The next capture covers the same range."""
        return abandon(self.context, self.id, reason)

    def _there(self) -> Capture:
        if self.capture is None:
            raise UserError(f"There is nothing new for {self.consumer!r}.", hint="Test it first: if changes: …")
        return self.capture

    def _only(self) -> CapturedTable:
        tables = self._there().tables
        if len(tables) != 1:
            raise UserError(f"The capture has {len(tables)} sources.", hint="Choose one: changes.tables[name]")
        return tables[0]
