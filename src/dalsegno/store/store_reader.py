"""What a store says of captures, checkpoints and refreshes."""

from __future__ import annotations

from collections.abc import Iterable

from dalsegno.model.captures import Capture, Checkpoint
from dalsegno.model.refreshes import Cost, Refresh
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import capture_queries, proofs, refresh_queries
from dalsegno.store.capture_queries import CheckpointPosition
from dalsegno.store.closing import Closing
from dalsegno.store.reading import Readable, Row


class StoreReader(Closing):
    """Captures and checkpoints in one database, to look at."""

    def __init__(self, database: Readable) -> None:
        self.database = database

    def close(self) -> None:
        self.database.close()

    def position(self, consumer: str, table: TableName) -> Position | None:
        with self.database.reading() as connection:
            mark = capture_queries.mark(connection, consumer, table)
        return mark.position if mark else None

    def positions(self, consumer: str | None = None) -> list[CheckpointPosition]:
        """Where every consumer stands, or this one; by name."""
        with self.database.reading() as connection:
            return capture_queries.marks(connection, consumer)

    def standing(self) -> dict[tuple[str, str], Position]:
        """Where every consumer stands in every table, by the names of both."""
        with self.database.reading() as connection:
            return capture_queries.standing(connection)

    def checkpoints(self, consumer: str, table: TableName | None = None) -> list[Checkpoint]:
        """Every move of the consumer's checkpoint, or those that moved it on this table; newest first."""
        with self.database.reading() as connection:
            return capture_queries.history(connection, consumer, table)

    def last_position(self, consumer: str, table_uuid: str) -> tuple[TableName, Position] | None:
        """Where the consumer's checkpoint on a table was moved last, and what the table was called then."""
        with self.database.reading() as connection:
            return capture_queries.last_of_table(connection, consumer, table_uuid)

    def pending(self, consumer: str, table: TableName) -> Capture | None:
        """The capture that waits to be processed, the only one there can be."""
        with self.database.reading() as connection:
            return capture_queries.pending(connection, consumer, table)

    def holder(self, change_table: TableName) -> Capture | None:
        """The capture to which the name of a change table belongs, until its tables are dropped."""
        with self.database.reading() as connection:
            return capture_queries.owner(connection, change_table)

    def capture(self, capture_id: str) -> Capture:
        """The capture of this id, of which the beginning is enough if no other begins so."""
        with self.database.reading() as connection:
            return capture_queries.beginning_with(connection, capture_id)

    def captures(
        self, consumer: str | None = None, *, pending_only: bool = False, undropped_only: bool = False
    ) -> list[Capture]:
        """Newest first."""
        with self.database.reading() as connection:
            return capture_queries.listed(
                connection, consumer, pending_only=pending_only, undropped_only=undropped_only
            )

    def refreshes(self, target: TableName, *, limit: int, after: str | None = None) -> list[Refresh]:
        """What runs of a declared table did, newest first; those behind one, if that is given by its unit."""
        with self.database.reading() as connection:
            return refresh_queries.refreshes_of(connection, target, limit=limit, after=after)

    def strategies_taken(self, target: TableName, workflow_id: str) -> dict[str, int]:
        """How often the runs of a workflow have refreshed a table by each strategy; the most frequent first."""
        with self.database.reading() as connection:
            return refresh_queries.strategies_taken(connection, target, workflow_id)

    def refreshes_behind(self, capture_ids: Iterable[str]) -> list[Refresh]:
        """What was done behind captures that are committed; oldest first."""
        with self.database.reading() as connection:
            return refresh_queries.of_captures(connection, capture_ids)

    def proof(self, target: TableName, query_digest: str) -> Row | None:
        """The last proof of a SELECT for a target, whatever it showed."""
        with self.database.reading() as connection:
            return proofs.newest(connection, target, query_digest)

    def proof_costs(self, target: TableName) -> list[tuple[str, Cost]]:
        """The strategies and costs of the refreshes in the last proof of a target, newest first."""
        with self.database.reading() as connection:
            return proofs.costs(connection, target)
