"""What a store says of captures and checkpoints."""

from __future__ import annotations

from dalsegno.model.captures import Capture, Checkpoint
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.store import capture_queries
from dalsegno.store.capture_queries import CheckpointPosition
from dalsegno.store.closing import Closing
from dalsegno.store.reading import Readable


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
