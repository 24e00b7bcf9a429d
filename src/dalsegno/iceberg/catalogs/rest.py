"""A catalog behind Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError

from dalsegno.iceberg.catalogs.catalog import Catalog
from dalsegno.iceberg.history import RawMetadata
from dalsegno.model.tables import TableName


class RestCatalog(Catalog):
    compares_whole_tables: ClassVar[bool] = False

    def _own_properties(self) -> Mapping[str, str]:
        # A server that sends only the snapshots that references name would hide the history captures walk through.
        return {"snapshot-loading-mode": "all"}

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
