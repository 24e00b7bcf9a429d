"""Names of tables: catalog, namespace and name, as users write them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class TableName:
    """A table in a catalog, written ``catalog.namespace.name``; a namespace may have several parts."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @property
    def identifier(self) -> tuple[str, ...]:
        """What the catalog itself calls the table."""
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.identifier))

    @staticmethod
    def of(text: str) -> TableName:
        """Read back what ``str`` wrote; for names that people type see ``operations.tables``."""
        catalog, *namespace, name = text.split(".")
        return TableName(catalog, tuple(namespace), name)
