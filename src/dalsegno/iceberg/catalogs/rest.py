"""A catalog behind Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

from dalsegno.errors import UserError
from dalsegno.iceberg import object_stores
from dalsegno.iceberg.catalogs.catalog import Catalog, LoadedTable
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.history import RawMetadata, parse_metadata
from dalsegno.iceberg.vended_files import secrets_in, vended_files
from dalsegno.model.tables import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog


#: With this, a server sends credentials for the files of each table.
_DELEGATION = "header.X-Iceberg-Access-Delegation"
#: By this property, in its answer to the first request, Nessie makes itself known.
_IS_NESSIE = "nessie.is-nessie-catalog"


class RestCatalog(Catalog):
    compares_whole_tables: ClassVar[bool] = False
    #: Whether the server sends credentials with its tables; None: not known yet.
    _vends: bool | None = None

    def _prepare(self, catalog: PyIcebergCatalog) -> None:
        if str(catalog.properties.get(_IS_NESSIE, "")).lower() == "true":
            raise UserError(
                f"Catalog {self.settings.name!r} is served by Nessie, which is not supported: it shows only the "
                "current snapshot of a table, so nobody can see what changed since a checkpoint.",
                hint="Keep the tables in another catalog: REST, SQL, Hive or Glue.",
            )

    def _own_properties(self) -> Mapping[str, str]:
        # A server that sends only the snapshots that references name would hide the history captures walk through.
        return {"snapshot-loading-mode": "all"}

    def _spark_properties(self) -> Mapping[str, str]:
        """Spark asks for credentials, as PyIceberg does, unless the settings have some or say otherwise."""
        own = super()._spark_properties()
        written = {name.lower() for name in (*self.settings.properties, *self.settings.spark)}
        if _DELEGATION.lower() in written or secrets_in(self.settings.properties):
            return own
        return {**own, _DELEGATION: "vended-credentials"}

    def load(self, name: TableName) -> LoadedTable:
        with self._talking(f"load {name}"):
            table = self.pyiceberg.load_table(name.identifier)
            location = table.metadata_location
            files = self._files(location, table.io.properties, lambda: self._sent_for(name))
            return LoadedTable(name, parse_metadata(files.read(location)), location, files)

    def files_of(self, name: TableName, folder: str) -> Files:
        if self._vends is False or secrets_in(self.pyiceberg.properties) or object_stores.store_at(folder) is None:
            return self.files_at(folder)

        def send() -> Mapping[str, str]:
            try:
                return self._sent_for(name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return self._sent_for_new(name, folder)

        with self._talking(f"send credentials for {folder}"):
            return self._files(folder, send(), send)

    def _sent_for(self, name: TableName) -> Mapping[str, str]:
        return self.pyiceberg.load_table(name.identifier).io.properties

    def _sent_for_new(self, name: TableName, folder: str) -> Mapping[str, str]:
        """What the server sends for a table that is staged, which is never created.

        PyIceberg finds credentials by the location of a metadata file, which such a table does not have.
        """
        from pyiceberg.schema import Schema  # noqa: PLC0415 - slow import
        from pyiceberg.types import LongType, NestedField  # noqa: PLC0415

        self.pyiceberg.create_namespace_if_not_exists(name.namespace)
        schema = Schema(NestedField(1, "id", LongType(), required=False))
        catalog: Any = self.pyiceberg
        staged = catalog._create_table(name.identifier, schema, location=folder, stage_create=True)
        secrets = catalog._resolve_storage_credentials(staged.storage_credentials, f"{folder}/")
        return {**catalog.properties, **staged.config, **secrets}

    def _files(self, location: str, sent: Mapping[str, str], renew: Callable[[], Mapping[str, str]]) -> Files:
        own = self.pyiceberg.properties
        self._vends = any(own.get(name) != value for name, value in secrets_in(sent).items())
        if self._vends:
            return vended_files(location, sent, self.options, renew)
        return Files.at(location, sent, self.options)

    @cached_property
    def has_views(self) -> bool:
        """Whether the server says that it keeps views."""
        from pyiceberg.catalog.rest import Capability  # noqa: PLC0415 - slow import

        return Capability.V1_DELETE_VIEW in getattr(self.pyiceberg, "_supported_endpoints", ())

    def create_view(self, name: TableName, metadata: RawMetadata, metadata_location: str) -> bool:
        """The server writes the metadata file itself, under a name of its own below the view's location."""
        from pyiceberg.schema import Schema  # noqa: PLC0415 - slow import
        from pyiceberg.view.metadata import ViewVersion  # noqa: PLC0415

        self.ensure_namespace(name.namespace)
        with self._talking(f"create the view {name}"):
            try:
                schema = Schema.model_validate(metadata["schemas"][0])
                version = ViewVersion.model_validate(metadata["versions"][0])
                place, properties = metadata["location"], metadata["properties"]
                self.pyiceberg.create_view(name.identifier, schema, version, place, properties)
            except (ViewAlreadyExistsError, TableAlreadyExistsError):
                return False
            return True

    def view_metadata(self, name: TableName) -> RawMetadata | None:
        with self._talking(f"load the view {name}"):
            try:
                return self.pyiceberg.load_view(name.identifier).metadata.model_dump(by_alias=True)
            except NoSuchViewError:
                return None

    def has_view(self, name: TableName) -> bool:
        if not self.has_views:
            return False
        with self._talking(f"look for the view {name}"):
            return self.pyiceberg.view_exists(name.identifier)

    def views(self, namespace: tuple[str, ...]) -> list[TableName]:
        if not self.has_views:
            return []
        with self._talking("list views"):
            try:
                found = list(self.pyiceberg.list_views(namespace))
            except NoSuchNamespaceError:
                return []
        return [TableName(self.settings.name, tuple(item[:-1]), item[-1]) for item in found]

    def forget_view(self, name: TableName) -> None:
        with self._talking(f"drop the view {name}"):
            try:
                self.pyiceberg.drop_view(name.identifier)
            except NoSuchViewError:
                return
