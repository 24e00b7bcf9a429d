"""Catalogs that hold a pointer to each table's metadata file: clients write a new file, then swap the pointer.

PyIceberg cannot write metadata of format version 3, and rewrites all of it for one reference. So the file is written
here, and only the swap differs between catalogs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ClassVar

from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from dalsegno.errors import DalsegnoError
from dalsegno.iceberg.catalogs.catalog import Catalog, ConcurrentChange, LoadedTable, Ref
from dalsegno.iceberg.catalogs.references import next_metadata_location, with_reference
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.history import RawMetadata, parse_metadata
from dalsegno.model.tables import TableName


class PointerCatalog(Catalog):
    has_warehouse_folder: ClassVar[bool] = True

    def load(self, name: TableName) -> LoadedTable:
        with self._talking(f"load {name}"):
            location = self._location_of(name)
            files = self.files_at(location)
            return LoadedTable(name, parse_metadata(files.read(location)), location, files)

    def metadata_location(self, name: TableName) -> str:
        with self._talking(f"look for {name}"):
            return self._location_of(name)

    def metadata_locations(self, names: Collection[TableName], threads: int = 8) -> dict[TableName, str]:
        with self._talking("look for tables"), ThreadPoolExecutor(threads) as pool:
            found = zip(names, pool.map(self._location_if_there, names), strict=True)
            return {name: location for name, location in found if location is not None}

    def has(self, name: TableName) -> bool:
        with self._talking(f"look for {name}"):
            return self._location_if_there(name) is not None

    def files_at(self, location: str) -> Files:
        """Tables are read by the same, not by what PyIceberg chooses, so files can be copied inside one filesystem."""
        return Files.at(location, self._properties, self.options)

    def set_ref(self, table: LoadedTable, ref_name: str, ref: Ref | None) -> LoadedTable:
        changed = with_reference(table, ref_name, ref)
        location = next_metadata_location(table)
        content = json.dumps(changed, separators=(",", ":")).encode()
        with self._talking(f"write into {table.name}"):
            table.files.write(location, gzip.compress(content) if ".gz." in location else content)
        with self._talking(f"write a branch into {table.name}"):
            is_swapped = self._swap_or_find(table, changed, location)
        if is_swapped:
            return table.with_metadata(changed, location, changed_ref=ref_name)
        # A driver that retries reports a conflict with its own first attempt, if only the answer to that was lost.
        found = self.load(table.name)
        earlier = [each["metadata-file"] for each in found.metadata.get("metadata-log", ())]
        if location in (found.metadata_location, *earlier):
            return found
        with suppress(OSError):
            table.files.delete(location)
        raise ConcurrentChange(f"{table.name} was changed by another process")

    def _swap_or_find(self, table: LoadedTable, changed: RawMetadata, location: str) -> bool:
        try:
            return self._swap(table, changed, location)
        except DalsegnoError:
            raise
        except Exception:
            # The answer may be lost, not the swap. If it was not made yet, it still may be: the file stays.
            with suppress(Exception):
                if self._location_of(table.name) == location:
                    return True
            raise

    def _location_if_there(self, name: TableName) -> str | None:
        try:
            return self._location_of(name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    @property
    def _properties(self) -> Mapping[str, str]:
        """What file access is configured with."""
        return self.pyiceberg.properties

    def _location_of(self, name: TableName) -> str:
        """Where a table's metadata file is; NoSuchTableError if there is no such table."""
        raise NotImplementedError

    def _swap(self, table: LoadedTable, changed: RawMetadata, location: str) -> bool:
        """Point at another metadata file, if the table still is as it was loaded; False if it is not."""
        raise NotImplementedError
