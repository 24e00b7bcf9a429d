"""What can be seen of captures and checkpoints without looking at a table."""

from __future__ import annotations

from dalsegno.errors import UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.captures import Capture, Checkpoint
from dalsegno.model.tables import TableName
from dalsegno.settings import Settings
from dalsegno.store.capture_queries import CheckpointPosition
from dalsegno.store.closing import Closing
from dalsegno.store.store_reader import StoreReader


class LakeReader(Closing):
    """What consumers have processed, to look at."""

    def __init__(self, settings: Settings, store: StoreReader) -> None:
        self.settings = settings
        self.store = store

    def close(self) -> None:
        self.store.close()

    def captures(self, consumer: str | None = None, *, pending_only: bool = False) -> list[Capture]:
        """Newest first."""
        return self.store.captures(consumer, pending_only=pending_only)

    def checkpoints(self, consumer: str | None = None) -> list[CheckpointPosition]:
        """Where each consumer stands."""
        return self.store.positions(consumer)

    def checkpoint(self, table: str, *, consumer: str) -> CheckpointPosition:
        """Where one consumer stands on one table."""
        name, found = self.name(table), self.store.positions(consumer)
        for position in found:
            if position.table == name:
                return position
        known = sorted({each.consumer for each in self.store.positions() if each.table == name})
        raise UnknownName(
            f"Consumer {consumer!r} has no checkpoint on {name}; {', '.join(known) or 'nobody'} has.",
            actions=[action("It gets one with its first commit", Verb.CAPTURE, table=str(name), consumer=consumer)],
        )

    def history(self, consumer: str, table: str | None = None) -> list[Checkpoint]:
        """Every move of a consumer's checkpoint, newest first."""
        return self.store.checkpoints(consumer, self.name(table) if table else None)

    def name(self, text: str) -> TableName:
        return table_name(self.settings, text)


def table_name(settings: Settings, text: str) -> TableName:
    """The table meant by ``namespace.name`` in the default catalog, or by ``catalog.namespace.name``.

    A name alone is in the default namespace of the default catalog.
    """
    parts = [part.strip('`" ') for part in text.split(".")]
    if len(parts) == 1 and settings.default_namespace:
        parts = [*settings.default_namespace.split("."), *parts]
    named = len(parts) > 2 and parts[0] in settings.catalogs  # noqa: PLR2004 - catalog, namespace, name
    catalog, rest = (parts[0], parts[1:]) if named else (settings.default_catalog, parts)
    if len(rest) < 2 or not all(rest):  # noqa: PLR2004 - namespace and name
        raise UserError(
            f"{text!r} is not the name of a table: expected namespace.table or catalog.namespace.table.",
            hint="Write its namespace, or set default_namespace.",
        )
    settings.catalog(catalog)
    return TableName(catalog, tuple(rest[:-1]), rest[-1])
