"""The tables that statements write to, asked through our own catalogs: no Spark job is needed for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dalsegno.errors import UnknownName
from dalsegno.iceberg.catalogs import Catalog, open_catalog
from dalsegno.iceberg.history import RawMetadata
from dalsegno.model.tables import TableName
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session
from dalsegno.spark.forms.words import Words

#: A name ends so in Spark if it means a branch of the table before it.
BRANCH = "branch_"

#: The session's catalog and namespace: what names mean that leave them out.
Names = tuple[str, tuple[str, ...]]


#: Settings of a catalog that do not change which tables it has.
_HARMLESS = ("cache", "table-default.", "table-override.", "default-namespace")


def redefines(catalog: str, key: str) -> bool:
    """Whether a setting of Spark may make a catalog another one than the settings of dalsegno say."""
    named, _, rest = key.removeprefix("spark.sql.catalog.").partition(".")
    return key.startswith("spark.sql.catalog.") and named == catalog and not rest.startswith(_HARMLESS)


def names_of(session: Session) -> Names:
    """What names without catalog or namespace mean in a session."""
    row = session.execute("SELECT current_catalog() AS catalog, current_schema() AS namespace", 1)
    # Spark quotes the parts of a namespace where they need it.
    return row["catalog"][0].as_py(), Words(row["namespace"][0].as_py()).name()


@dataclass(frozen=True)
class Target:
    name: TableName
    #: None: there is no such table.
    metadata: RawMetadata | None
    #: The branch that the statement names.
    branch: str | None = None


def partition_fields(metadata: RawMetadata) -> int:
    """By how many fields a table is partitioned now."""
    for spec in metadata.get("partition-specs", ()):
        if spec["spec-id"] == metadata.get("default-spec-id", 0):
            return sum(field["transform"] != "void" for field in spec["fields"])
    # Only very old writers of format version 1 say it so.
    return len(metadata.get("partition-spec", ()))


@dataclass
class Targets:
    """Finds the tables that statements name; a connection to each catalog is kept for as long as it is needed."""

    settings: Settings
    #: What names without a catalog mean now, where that is known. It is asked for when a statement has one.
    names: Callable[[], Names | None]
    _catalogs: dict[str, Catalog] = field(default_factory=dict, init=False)

    def find(self, parts: tuple[str, ...]) -> Target | None:
        """The table that a name means; None if that is not in one of our catalogs."""
        full = self._full(parts)
        if full is None:
            return None
        found = self.load(full)
        if found is not None or not full.name.startswith(BRANCH) or len(full.namespace) < 2:  # noqa: PLR2004
            return Target(full, found)
        table = TableName(full.catalog, full.namespace[:-1], full.namespace[-1])
        return Target(table, self.load(table), full.name.removeprefix(BRANCH))

    def load(self, name: TableName) -> RawMetadata | None:
        """The table's metadata as it is now; None if there is no such table."""
        if name.catalog not in self._catalogs:
            self._catalogs[name.catalog] = open_catalog(self.settings.catalog(name.catalog))
        try:
            return self._catalogs[name.catalog].load(name).metadata
        except UnknownName:
            return None

    def close(self) -> None:
        for catalog in self._catalogs.values():
            catalog.close()

    def _full(self, parts: tuple[str, ...]) -> TableName | None:
        known = self.settings.catalogs
        if len(parts) > 1 and parts[0] in known:
            catalog, rest = parts[0], parts[1:]
        else:
            names = self.names()
            if names is None:
                return None
            catalog, namespace = names
            rest = (*namespace, *parts) if len(parts) == 1 else parts
        if catalog not in known or len(rest) < 2:  # noqa: PLR2004 - namespace and name
            return None
        return TableName(catalog, rest[:-1], rest[-1])
