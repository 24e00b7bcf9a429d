"""A catalog in a SQL database.

Three things that PyIceberg cannot do are done here, with the same statements on the catalog's table that Iceberg's own
JDBC catalog uses: finding a table without parsing all of its metadata, swapping its pointer, and views.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy import delete, insert, make_url, select, update
from sqlalchemy.exc import IntegrityError

from dalsegno.iceberg.catalogs.catalog import LoadedTable
from dalsegno.iceberg.catalogs.pointers import PointerCatalog
from dalsegno.iceberg.catalogs.sql_tables import SqlTables, entries
from dalsegno.iceberg.files import FileOptions
from dalsegno.iceberg.history import RawMetadata, parse_metadata
from dalsegno.model.tables import TableName
from dalsegno.private_files import OWN_FOLDER, make_private_folder
from dalsegno.settings import CatalogSettings

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog

#: What Iceberg's JDBC catalog calls the rows that are tables, and those that are views.
_TABLE, _VIEW = "TABLE", "VIEW"
#: So many tables are asked for by their names; beyond that, all of their namespaces.
_NAMED = 2_000


class SqlCatalog(PointerCatalog):
    """A catalog in a SQL database, shared with Iceberg's JDBC catalog."""

    def __init__(self, settings: CatalogSettings, options: FileOptions | None = None) -> None:
        super().__init__(settings, options)
        self._ensured: set[tuple[str, ...]] = set()

    @cached_property
    def pyiceberg(self) -> PyIcebergCatalog:
        """The connection, made on first use; there is one pool of them for both."""
        catalog: Any = super().pyiceberg
        if (known := self.__dict__.get("_sql")) is not None:
            catalog.engine.dispose()
            catalog.engine = known.engine
        return cast("PyIcebergCatalog", catalog)

    @cached_property
    def _sql(self) -> SqlTables:
        """The catalog's tables. PyIceberg, which takes long to load, makes them if they are not there."""
        self.make_local_folders()
        with self._talking("be reached"):
            if "pyiceberg" not in self.__dict__ and not _is_configured_elsewhere():
                found = SqlTables.find(self._properties)
                if found is not None:
                    return found
            catalog: Any = self.pyiceberg
            return SqlTables(catalog.engine, has_kinds=catalog._schema_version == "v1")

    @cached_property
    def _properties(self) -> Mapping[str, str]:
        return self.pyiceberg.properties if _is_configured_elsewhere() else self.pyiceberg_properties()

    def _own_properties(self) -> Mapping[str, str]:
        uri = self.settings.uri
        return {"uri": _psycopg(uri)} if uri else {}

    def _spark_properties(self) -> Mapping[str, str]:
        url = make_url(self.settings.uri or "")
        kind = url.get_backend_name()
        if kind == "sqlite":
            address = f"jdbc:sqlite:{url.database}"
        else:
            query = "&".join(f"{key}={value}" for key, value in url.query.items())
            port = f":{url.port}" if url.port else ""
            address = f"jdbc:{kind}://{url.host or 'localhost'}{port}/{url.database}" + (f"?{query}" if query else "")
        own = {"type": "jdbc", "uri": address, "jdbc.schema-version": "V1"}
        if url.username:
            own["jdbc.user"] = url.username
        if url.password:
            own["jdbc.password"] = str(url.password)
        return own

    def make_local_folders(self) -> None:
        """SQLite needs the folder of its file."""
        prefix, uri = "sqlite:///", self.settings.uri
        if uri and uri.startswith(prefix):
            folder = Path(uri.removeprefix(prefix)).parent
            if OWN_FOLDER in folder.parts:
                make_private_folder(folder)
            else:
                # Others may share it.
                folder.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        super().close()
        if (found := self.__dict__.get("_sql")) is not None:
            found.engine.dispose()

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._talking(f"look for the namespace {'.'.join(namespace)}"):
            if self._sql.has_namespace(self.settings.name, ".".join(namespace)):
                return
        super().ensure_namespace(namespace)

    def metadata_locations(self, names: Collection[TableName], threads: int = 8) -> dict[TableName, str]:
        """With one question for all of them."""
        columns = entries.c
        wanted = {(".".join(name.namespace), name.name): name for name in names}
        query = select(columns.table_namespace, columns.table_name, columns.metadata_location).where(
            columns.catalog_name == self.settings.name,
            columns.table_namespace.in_(sorted({namespace for namespace, _ in wanted})),
        )
        if len(wanted) <= _NAMED:
            query = query.where(columns.table_name.in_(sorted({name for _, name in wanted})))
        kinds = self._sql.is_table()
        with self._talking("look for tables"), self._sql.engine.connect() as connection:
            found = connection.execute(query if kinds is None else query.where(kinds)).all()
        return {wanted[row[0], row[1]]: row[2] for row in found if (row[0], row[1]) in wanted and row[2]}

    def register(self, name: TableName, metadata_location: str) -> bool:
        return self._insert(name, metadata_location, _TABLE)

    @cached_property
    def has_views(self) -> bool:
        """A catalog's table that was made long ago has no column that distinguishes views from tables."""
        return self._sql.has_kinds

    def create_view(self, name: TableName, metadata: RawMetadata, metadata_location: str) -> bool:
        files = self.files_at(metadata_location)
        with self._talking(f"write the view {name}"):
            files.write(metadata_location, json.dumps(metadata, separators=(",", ":")).encode())
        if self._insert(name, metadata_location, _VIEW):
            return True
        files.delete(metadata_location)
        return False

    def view_metadata(self, name: TableName) -> RawMetadata | None:
        with self._talking(f"load the view {name}"):
            location = self._view_location(name)
            return None if location is None else parse_metadata(self.files_at(location).read(location))

    def has_view(self, name: TableName) -> bool:
        with self._talking(f"look for the view {name}"):
            return self.has_views and self._view_location(name) is not None

    def views(self, namespace: tuple[str, ...]) -> list[TableName]:
        if not self.has_views:
            return []
        columns = entries.c
        wanted = (columns.catalog_name == self.settings.name, columns.table_namespace == ".".join(namespace))
        with self._talking("list views"), self._sql.engine.connect() as connection:
            query = select(columns.table_name).where(*wanted, columns.iceberg_type == _VIEW)
            return [TableName(self.settings.name, namespace, found) for found in connection.execute(query).scalars()]

    def forget_view(self, name: TableName) -> None:
        with self._talking(f"drop the view {name}"), self._sql.engine.connect() as connection:
            connection.execute(delete(entries).where(*self._is(name), entries.c.iceberg_type == _VIEW))
            connection.commit()

    def _insert(self, name: TableName, metadata_location: str, kind: str) -> bool:
        """Add a row to the catalog's table; False if the name is taken."""
        # Once is enough: a table can be registered even if somebody drops the namespace later, and brings it back.
        if name.namespace not in self._ensured:
            self.ensure_namespace(name.namespace)
            self._ensured.add(name.namespace)
        with self._talking(f"register {name}"), self._sql.engine.connect() as connection:
            row = {
                "catalog_name": self.settings.name,
                "table_namespace": ".".join(name.namespace),
                "table_name": name.name,
                "metadata_location": metadata_location,
            }
            if self._sql.has_kinds:
                row["iceberg_type"] = kind
            try:
                connection.execute(insert(entries).values(**row))
                connection.commit()
            except IntegrityError:
                return False
            return True

    def forget(self, name: TableName, *, metadata_location: str | None = None) -> None:
        if metadata_location is None:
            super().forget(name)
            return
        same = (*self._is(name), entries.c.metadata_location == metadata_location)
        with self._talking(f"drop {name}"), self._sql.engine.connect() as connection:
            connection.execute(delete(entries).where(*same))
            connection.commit()

    def _swap(self, table: LoadedTable, changed: RawMetadata, location: str) -> bool:
        same = (*self._is(table.name), entries.c.metadata_location == table.metadata_location)
        values = {"metadata_location": location, "previous_metadata_location": table.metadata_location}
        with self._sql.engine.connect() as connection:
            swapped = connection.execute(update(entries).where(*same).values(**values))
            connection.commit()
        return swapped.rowcount == 1

    def _location_of(self, name: TableName) -> str:
        with self._sql.engine.connect() as connection:
            query = select(entries.c.metadata_location).where(*self._is(name))
            kinds = self._sql.is_table()
            found = connection.execute(query if kinds is None else query.where(kinds)).scalar()
        if not found:
            raise NoSuchTableError(str(name))
        return str(found)

    def _view_location(self, name: TableName) -> str | None:
        columns = entries.c
        with self._sql.engine.connect() as connection:
            query = select(columns.metadata_location).where(*self._is(name), columns.iceberg_type == _VIEW)
            found: str | None = connection.execute(query).scalar()
        return found

    def _is(self, name: TableName) -> tuple[Any, ...]:
        columns = entries.c
        return (
            columns.catalog_name == self.settings.name,
            columns.table_namespace == ".".join(name.namespace),
            columns.table_name == name.name,
        )


def _psycopg(uri: str) -> str:
    """SQLAlchemy's spelling of a PostgreSQL URL with the driver that dalsegno installs."""
    scheme, separator, rest = uri.partition("://")
    return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgres", "postgresql") else uri


def _is_configured_elsewhere() -> bool:
    """Whether PyIceberg's own configuration may have something to say of a catalog."""
    if any(name.upper().startswith("PYICEBERG_") for name in os.environ):
        return True
    # Not Path.home(), which fails where a user has none.
    folders = (Path(os.path.expanduser("~")), Path.cwd())  # noqa: PTH111
    return any((folder / ".pyiceberg.yaml").exists() for folder in folders)
