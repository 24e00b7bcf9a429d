"""The AWS Glue Data Catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

from dalsegno.errors import PlatformError
from dalsegno.iceberg.catalogs.catalog import LoadedTable
from dalsegno.iceberg.catalogs.column_types import column_type, current_fields
from dalsegno.iceberg.catalogs.pointers import PointerCatalog
from dalsegno.iceberg.history import RawMetadata, parse_metadata
from dalsegno.model.tables import TableName

_LOCATION, _PREVIOUS = "metadata_location", "previous_metadata_location"
#: Of what Glue says of a table, this is what it takes when the table is changed.
_INPUT = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)


class GlueCatalog(PointerCatalog):
    extra: ClassVar[str] = "glue"

    @property
    def _glue(self) -> Any:
        """The client of boto3's that PyIceberg made."""
        return self.pyiceberg.glue  # type: ignore[attr-defined]

    def _location_of(self, name: TableName) -> str:
        return _location(self._entry(name))

    def _entry(self, name: TableName) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = self._glue.get_table(DatabaseName=_database(name), Name=name.name)["Table"]
        except self._glue.exceptions.EntityNotFoundException as error:
            raise NoSuchTableError(str(name)) from error
        return found

    def _swap(self, table: LoadedTable, changed: RawMetadata, location: str) -> bool:
        entry = self._entry(table.name)
        if _location(entry) != table.metadata_location:
            return False
        version = entry.get("VersionId")
        if not version:
            raise PlatformError(f"Glue reports no version of {table.name}, so its pointer cannot be swapped safely.")
        parameters = {**entry["Parameters"], _LOCATION: location, _PREVIOUS: table.metadata_location}
        wanted = {key: entry[key] for key in _INPUT if key in entry} | {"Parameters": parameters}
        keeps_versions = str(self._properties.get("glue.skip-archive", "true")).lower() == "false"
        try:
            self._glue.update_table(
                DatabaseName=_database(table.name),
                TableInput=wanted,
                SkipArchive=not keeps_versions,
                VersionId=version,
            )
        except self._glue.exceptions.ConcurrentModificationException:
            return False
        return True

    def register(self, name: TableName, metadata_location: str) -> bool:
        with self._talking(f"register {name}"):
            metadata = parse_metadata(self.files_at(metadata_location).read(metadata_location))
            entry = {
                "Name": name.name,
                "TableType": "EXTERNAL_TABLE",
                "Parameters": {"table_type": "ICEBERG", _LOCATION: metadata_location},
                "StorageDescriptor": {"Columns": _columns(metadata), "Location": metadata["location"]},
            }
            for _ in range(2):
                try:
                    self._glue.create_table(DatabaseName=_database(name), TableInput=entry)
                except self._glue.exceptions.AlreadyExistsException:
                    return False
                except self._glue.exceptions.EntityNotFoundException:
                    self.pyiceberg.create_namespace_if_not_exists(name.namespace)
                else:
                    return True
        raise PlatformError(f"Glue has no database {_database(name)!r} for {name}, and does not keep a new one.")


def _columns(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "Name": field["name"],
            "Type": column_type(field["type"], zoned="timestamp"),
            "Parameters": {
                "iceberg.field.id": str(field["id"]),
                "iceberg.field.optional": str(not field["required"]).lower(),
                "iceberg.field.current": "true",
            },
        }
        for field in current_fields(metadata)
    ]


def _database(name: TableName) -> str:
    """Glue has one level of namespaces."""
    if len(name.namespace) != 1:
        raise NoSuchTableError(str(name))
    return name.namespace[0]


def _location(entry: Mapping[str, Any]) -> str:
    parameters = entry.get("Parameters", {})
    if str(parameters.get("table_type", "")).lower() != "iceberg" or _LOCATION not in parameters:
        raise NoSuchIcebergTableError(f"{entry['Name']} is not an Iceberg table")
    return str(parameters[_LOCATION])
