"""Names of tables: catalog, namespace and name, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


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

    @property
    def quoted(self) -> str:
        """As Spark reads it, whatever the parts are."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in (self.catalog, *self.identifier))

    @staticmethod
    def of_quoted(text: str) -> TableName:
        """Read back what ``quoted`` wrote."""
        catalog, *namespace, name = (found[1].replace("``", "`") or found[2] for found in _PART.finditer(text))
        return TableName(catalog, tuple(namespace), name)
