"""The tables of all catalogs in the settings."""

from __future__ import annotations

from dalsegno.capture import missing_tables
from dalsegno.errors import UnknownName
from dalsegno.iceberg.catalogs import Catalog, LoadedTable, open_catalog
from dalsegno.iceberg.files import FileOptions
from dalsegno.iceberg.metadata_cache import MetadataCache
from dalsegno.model.tables import TableName
from dalsegno.settings import Settings


class Tables:
    """Finds and loads tables. Each catalog is opened once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._catalogs: dict[str, Catalog] = {}
        limit = settings.metadata_cache_mb << 20
        cache = MetadataCache(settings.metadata_cache_path, limit) if limit else None
        self._options = FileOptions(settings.io_threads, cache)

    def close(self) -> None:
        for catalog in self._catalogs.values():
            catalog.close()

    def catalog(self, name: str) -> Catalog:
        if name not in self._catalogs:
            self._catalogs[name] = open_catalog(self.settings.catalog(name), self._options)
        return self._catalogs[name]

    def catalog_of(self, table: TableName) -> Catalog:
        return self.catalog(table.catalog)

    def load(self, name: TableName) -> LoadedTable:
        catalog = self.catalog_of(name)
        try:
            return catalog.load(name)
        except UnknownName as error:
            raise missing_tables.explained(error, name, catalog, self.settings) from error

    def has(self, name: TableName, uuid: str) -> bool:
        """Whether a table of this name has this uuid; True if its catalog is no longer in the settings: it may have."""
        if name.catalog not in self.settings.catalogs:
            return True
        try:
            return bool(self.load(name).metadata["table-uuid"] == uuid)
        except UnknownName:
            return False
