"""One definition of a catalog → PyIceberg properties and Spark configuration; and what dalsegno asks of a catalog.

PyIceberg does the talking. Three things it cannot do are done here for SQL catalogs, with the same statements on the
catalog's table that Iceberg's own JDBC catalog uses: finding a table without parsing all of its metadata, changing
references of a table of format version 3, and views.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    NotInstalledError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

from dalsegno.clock import to_millis, utc_now
from dalsegno.errors import DalsegnoError, PlatformError, UnknownName, UserError
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads, parse_metadata
from dalsegno.model.tables import TableName
from dalsegno.private_files import OWN_FOLDER, make_private_folder
from dalsegno.settings import CatalogSettings, CatalogType

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog

    from dalsegno.iceberg.sql_tables import SqlTables

_SPARK_TYPES = {CatalogType.REST: "rest", CatalogType.HIVE: "hive", CatalogType.GLUE: "glue"}
#: Properties that mean the same but are spelt differently by PyIceberg and by Iceberg's Java library.
_JAVA_NAMES = {"s3.region": "client.region"}
_DEFAULT_PREVIOUS_VERSIONS = 100
#: What a table without rows says its current snapshot is.
_NO_SNAPSHOT = -1
#: What Iceberg's JDBC catalog calls the rows that are tables, and those that are views.
_TABLE, _VIEW = "TABLE", "VIEW"
#: So many tables are asked for by their names; beyond that, all of their namespaces.
_NAMED = 2_000

Ref = Mapping[str, Any]


class ConcurrentChange(Exception):
    """Somebody else changed the table in between: load it again and retry."""


def pyiceberg_properties(catalog: CatalogSettings) -> dict[str, str]:
    """What PyIceberg's ``load_catalog`` takes."""
    properties = {"type": catalog.type.value, **catalog.properties}
    if catalog.uri:
        properties["uri"] = _psycopg(catalog.uri) if catalog.type is CatalogType.SQL else catalog.uri
    if catalog.warehouse:
        properties["warehouse"] = catalog.warehouse
    # A server that sends only the snapshots that references name would hide the history captures walk through.
    if catalog.type is CatalogType.REST:
        properties["snapshot-loading-mode"] = "all"
    return properties | dict(catalog.pyiceberg)


def spark_configuration(catalog: CatalogSettings) -> dict[str, str]:
    """What a Spark session needs to see the same catalog under the same name."""
    own = {_JAVA_NAMES.get(key, key): value for key, value in catalog.properties.items()}
    if catalog.type is CatalogType.SQL:
        own |= _jdbc(catalog)
    else:
        own["type"] = _SPARK_TYPES[catalog.type]
        if catalog.uri:
            own["uri"] = catalog.uri
    if catalog.warehouse:
        own["warehouse"] = catalog.warehouse
    prefix = f"spark.sql.catalog.{catalog.name}"
    own |= catalog.spark
    return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {f"{prefix}.{k}": v for k, v in own.items()}


def _jdbc(catalog: CatalogSettings) -> dict[str, str]:
    from sqlalchemy.engine import make_url  # noqa: PLC0415 - only SQL catalogs need it

    url = make_url(catalog.uri or "")
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


def _psycopg(uri: str) -> str:
    """SQLAlchemy's spelling of a PostgreSQL URL with the driver that dalsegno installs."""
    scheme, separator, rest = uri.partition("://")
    return f"postgresql+psycopg{separator}{rest}" if scheme in ("postgres", "postgresql") else uri


def is_configured_elsewhere() -> bool:
    """Whether PyIceberg's own configuration may have something to say of a catalog."""
    if any(name.upper().startswith("PYICEBERG_") for name in os.environ):
        return True
    # Not Path.home(), which fails where a user has none.
    folders = (Path(os.path.expanduser("~")), Path.cwd())  # noqa: PTH111
    return any((folder / ".pyiceberg.yaml").exists() for folder in folders)


def make_local_folders(catalog: CatalogSettings) -> None:
    """A catalog on SQLite needs the folder of its file, which a first use finds missing."""
    prefix = "sqlite:///"
    if catalog.uri and catalog.uri.startswith(prefix):
        folder = Path(catalog.uri.removeprefix(prefix)).parent
        if OWN_FOLDER in folder.parts:
            make_private_folder(folder)
        else:
            # Others may share it.
            folder.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class LoadedTable:
    """A table as its catalog had it at one moment."""

    name: TableName
    metadata: RawMetadata
    metadata_location: str
    files: Files


class Catalog:
    """What dalsegno asks of any catalog."""

    def __init__(self, settings: CatalogSettings) -> None:
        self.settings = settings

    @cached_property
    def pyiceberg(self) -> PyIcebergCatalog:
        """The connection, made on first use."""
        make_local_folders(self.settings)
        with self._talking("be reached"):
            from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - slow import

            return load_catalog(self.settings.name, **pyiceberg_properties(self.settings))

    def close(self) -> None:
        """Let go of connections; the catalog may be used again."""
        engine = getattr(self.__dict__.get("pyiceberg"), "engine", None)
        if engine is not None:
            engine.dispose()

    def load(self, name: TableName) -> LoadedTable:
        with self._talking(f"load {name}"):
            table = self.pyiceberg.load_table(name.identifier)
            files = Files(table.io)
            return LoadedTable(
                name, parse_metadata(files.read(table.metadata_location)), table.metadata_location, files
            )

    def metadata_location(self, name: TableName) -> str:
        """Where the table's metadata is said to be."""
        return self.load(name).metadata_location

    @property
    def is_for_threads(self) -> bool:
        """Whether several may ask at the same time; PyIceberg has one connection to Hive."""
        return self.settings.type is not CatalogType.HIVE

    def metadata_locations(self, names: Collection[TableName], threads: int = 8) -> dict[TableName, str]:
        """Where the metadata is said to be of those of the tables that are there. Each has to be asked for."""

        def find(name: TableName) -> str | None:
            try:
                return self.pyiceberg.load_table(name.identifier).metadata_location
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

        with self._talking("look for tables"), ThreadPoolExecutor(threads if self.is_for_threads else 1) as pool:
            found = zip(names, pool.map(find, names), strict=True)
            return {name: location for name, location in found if location is not None}

    def has(self, name: TableName) -> bool:
        with self._talking(f"look for {name}"):
            return self.pyiceberg.table_exists(name.identifier)

    def namespaces(self) -> list[tuple[str, ...]]:
        with self._talking("list namespaces"):
            return list(self.pyiceberg.list_namespaces())

    def tables(self, namespace: tuple[str, ...]) -> list[TableName]:
        with self._talking("list tables"):
            try:
                found = list(self.pyiceberg.list_tables(namespace))
            except NoSuchNamespaceError:
                return []
        return [TableName(self.settings.name, tuple(item[:-1]), item[-1]) for item in found]

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._talking(f"create the namespace {'.'.join(namespace)}"):
            self.pyiceberg.create_namespace_if_not_exists(namespace)

    def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        """Remove a namespace in which nothing is left; one that is gone already is fine."""
        with self._talking(f"drop the namespace {'.'.join(namespace)}"):
            try:
                self.pyiceberg.drop_namespace(namespace)
            except NoSuchNamespaceError:
                return

    def register(self, name: TableName, metadata_location: str) -> bool:
        """Make a table appear, complete, under a name; False if there is a table of that name already."""
        with self._talking(f"register {name}"):
            try:
                self.pyiceberg.register_table(name.identifier, metadata_location)
            except TableAlreadyExistsError:
                return False
            except NoSuchNamespaceError:
                self.pyiceberg.create_namespace_if_not_exists(name.namespace)
                return self.register(name, metadata_location)
            return True

    def forget(self, name: TableName, *, metadata_location: str | None = None) -> None:
        """Remove the catalog's entry and nothing else: ``purge`` would delete borrowed data files.

        A SQL catalog removes it only if the table's metadata still is where it was seen; others cannot be asked that.
        """
        with self._talking(f"drop {name}"):
            try:
                self.pyiceberg.drop_table(name.identifier)
            except NoSuchTableError:
                return

    @cached_property
    def has_views(self) -> bool:
        """Whether views can be kept in it; of what PyIceberg knows, a REST catalog that says so."""
        from pyiceberg.catalog.rest import Capability  # noqa: PLC0415 - slow import

        return Capability.V1_DELETE_VIEW in getattr(self.pyiceberg, "_supported_endpoints", ())

    def create_view(self, name: TableName, metadata: RawMetadata, metadata_location: str) -> bool:
        """Make a view appear under a name; False if the name is taken.

        The server writes the metadata file itself, under a name of its own below the view's location.
        """
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
        """What a view is made of; None if there is no view of that name."""
        with self._talking(f"load the view {name}"):
            try:
                return self.pyiceberg.load_view(name.identifier).metadata.model_dump(by_alias=True)
            except NoSuchViewError:
                return None

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
        """Remove the catalog's entry of a view, and nothing else."""
        with self._talking(f"drop the view {name}"):
            try:
                self.pyiceberg.drop_view(name.identifier)
            except NoSuchViewError:
                return

    def files_at(self, location: str) -> Files:
        """File access with the catalog's own properties, for locations that belong to no table."""
        from pyiceberg.io import load_file_io  # noqa: PLC0415 - slow import

        return Files(load_file_io({**self.pyiceberg.properties}, location))

    def set_ref(self, table: LoadedTable, ref_name: str, ref: Ref | None) -> LoadedTable:
        """Create, move or (None) remove a reference of a table, if nobody moved it in between; else ConcurrentChange.

        Returned is the table as it is then: others may have changed what the reference does not hold.
        """
        from pyiceberg.table import update as updates  # noqa: PLC0415 - slow import

        existing = table.metadata.get("refs", {}).get(ref_name)
        requirement = updates.AssertRefSnapshotId(ref=ref_name, **{"snapshot-id": existing and existing["snapshot-id"]})
        if ref is None:
            update: updates.TableUpdate = updates.RemoveSnapshotRefUpdate.model_validate({"ref-name": ref_name})
        else:
            update = updates.SetSnapshotRefUpdate.model_validate({"ref-name": ref_name, **ref})
        with self._talking(f"write a branch into {table.name}"):
            try:
                loaded = self.pyiceberg.load_table(table.name.identifier)
                self.pyiceberg.commit_table(loaded, (requirement,), (update,))
            except CommitFailedException as error:
                raise ConcurrentChange(str(error)) from error
        return self.load(table.name)

    @contextmanager
    def _talking(self, doing: str) -> Iterator[None]:
        """Turn what a driver raises into our errors; addresses may hold passwords, so they are not repeated."""
        try:
            yield
        except (DalsegnoError, ConcurrentChange):
            raise
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise UnknownName(
                f"Catalog {self.settings.name!r} could not {doing}: there is no such table.",
                hint=f"See what is there: dalsegno catalogs tables {self.settings.name}",
            ) from error
        except (NotInstalledError, ModuleNotFoundError) as error:
            raise UserError(
                f"Catalog {self.settings.name!r} needs a package that is not installed: {error}.",
                hint=f"pip install 'dalsegno[{_EXTRAS.get(self.settings.type, 'postgres')}]'",
            ) from error
        except Exception as error:  # drivers raise anything; the cause stays chained
            raise PlatformError(
                f"Catalog {self.settings.name!r} ({self.settings.type}) could not {doing}: {_summary(error)}",
                hint="Check with: dalsegno catalogs check",
            ) from error


_EXTRAS = {CatalogType.GLUE: "glue", CatalogType.HIVE: "hive"}


def _summary(error: Exception) -> str:
    """One line of an error; SQLAlchemy's further lines repeat the statement and its values."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip() if lines else 'no details'}"


class SqlCatalog(Catalog):
    """A catalog in a SQL database, shared with Iceberg's JDBC catalog."""

    def __init__(self, settings: CatalogSettings) -> None:
        super().__init__(settings)
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
        from dalsegno.iceberg.sql_tables import SqlTables  # noqa: PLC0415 - slow import

        make_local_folders(self.settings)
        with self._talking("be reached"):
            if "pyiceberg" not in self.__dict__ and not is_configured_elsewhere():
                found = SqlTables.find(self._properties)
                if found is not None:
                    return found
            catalog: Any = self.pyiceberg
            return SqlTables(catalog.engine, has_kinds=catalog._schema_version == "v1")

    @cached_property
    def _properties(self) -> Mapping[str, str]:
        return self.pyiceberg.properties if is_configured_elsewhere() else pyiceberg_properties(self.settings)

    def close(self) -> None:
        super().close()
        if (found := self.__dict__.get("_sql")) is not None:
            found.engine.dispose()

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._talking(f"look for the namespace {'.'.join(namespace)}"):
            if self._sql.has_namespace(self.settings.name, ".".join(namespace)):
                return
        super().ensure_namespace(namespace)

    def load(self, name: TableName) -> LoadedTable:
        with self._talking(f"load {name}"):
            location = self._metadata_location(name)
            files = self.files_at(location)
            return LoadedTable(name, parse_metadata(files.read(location)), location, files)

    def metadata_location(self, name: TableName) -> str:
        with self._talking(f"look for {name}"):
            return self._metadata_location(name)

    def metadata_locations(self, names: Collection[TableName], threads: int = 8) -> dict[TableName, str]:
        """With one question for all of them."""
        from sqlalchemy import select  # noqa: PLC0415 - slow import

        columns = self._columns
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

    def files_at(self, location: str) -> Files:
        """Tables are read by the same, not by what PyIceberg chooses, so files can be copied inside one filesystem."""
        return Files.at(location, self._properties)

    @cached_property
    def has_views(self) -> bool:
        """A catalog's table that was made long ago has no column to tell views from tables."""
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

    def views(self, namespace: tuple[str, ...]) -> list[TableName]:
        from sqlalchemy import select  # noqa: PLC0415 - slow import

        if not self.has_views:
            return []
        columns = self._columns
        wanted = (columns.catalog_name == self.settings.name, columns.table_namespace == ".".join(namespace))
        with self._talking("list views"), self._sql.engine.connect() as connection:
            query = select(columns.table_name).where(*wanted, columns.iceberg_type == _VIEW)
            return [TableName(self.settings.name, namespace, found) for found in connection.execute(query).scalars()]

    def forget_view(self, name: TableName) -> None:
        from sqlalchemy import delete  # noqa: PLC0415

        from dalsegno.iceberg.sql_tables import entries  # noqa: PLC0415 - slow import

        with self._talking(f"drop the view {name}"), self._sql.engine.connect() as connection:
            connection.execute(delete(entries).where(*self._is(name), self._columns.iceberg_type == _VIEW))
            connection.commit()

    def _insert(self, name: TableName, metadata_location: str, kind: str) -> bool:
        """Add a row to the catalog's table; False if the name is taken."""
        from sqlalchemy import insert  # noqa: PLC0415
        from sqlalchemy.exc import IntegrityError  # noqa: PLC0415

        from dalsegno.iceberg.sql_tables import entries  # noqa: PLC0415 - slow import

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
        from sqlalchemy import delete  # noqa: PLC0415

        from dalsegno.iceberg.sql_tables import entries  # noqa: PLC0415 - slow import

        if metadata_location is None:
            super().forget(name)
            return
        same = (*self._is(name), self._columns.metadata_location == metadata_location)
        with self._talking(f"drop {name}"), self._sql.engine.connect() as connection:
            connection.execute(delete(entries).where(*same))
            connection.commit()

    def set_ref(self, table: LoadedTable, ref_name: str, ref: Ref | None) -> LoadedTable:
        from sqlalchemy import update  # noqa: PLC0415

        from dalsegno.iceberg.sql_tables import entries  # noqa: PLC0415 - slow import

        changed = _with_ref(table, ref_name, ref)
        location = _next_metadata_location(table)
        content = json.dumps(changed, separators=(",", ":")).encode()
        with self._talking(f"write into {table.name}"):
            table.files.write(location, gzip.compress(content) if ".gz." in location else content)
        columns = self._columns
        with self._talking(f"write a branch into {table.name}"), self._sql.engine.connect() as connection:
            swapped = connection.execute(
                update(entries)
                .where(*self._is(table.name), columns.metadata_location == table.metadata_location)
                .values(metadata_location=location, previous_metadata_location=table.metadata_location)
            )
            connection.commit()
        if swapped.rowcount != 1:
            table.files.delete(location)
            raise ConcurrentChange(f"{table.name} was changed by another process")
        return LoadedTable(table.name, changed, location, table.files)

    def has(self, name: TableName) -> bool:
        with self._talking(f"look for {name}"):
            try:
                return bool(self._metadata_location(name))
            except NoSuchTableError:
                return False

    def _metadata_location(self, name: TableName) -> str:
        from sqlalchemy import select  # noqa: PLC0415 - slow import

        with self._sql.engine.connect() as connection:
            query = select(self._columns.metadata_location).where(*self._is(name))
            kinds = self._sql.is_table()
            found = connection.execute(query if kinds is None else query.where(kinds)).scalar()
        if not found:
            raise NoSuchTableError(str(name))
        return str(found)

    def _view_location(self, name: TableName) -> str | None:
        from sqlalchemy import select  # noqa: PLC0415 - slow import

        columns = self._columns
        with self._sql.engine.connect() as connection:
            query = select(columns.metadata_location).where(*self._is(name), columns.iceberg_type == _VIEW)
            found: str | None = connection.execute(query).scalar()
        return found

    @property
    def _columns(self) -> Any:
        from dalsegno.iceberg.sql_tables import entries  # noqa: PLC0415 - slow import

        return entries.c

    def _is(self, name: TableName) -> tuple[Any, ...]:
        columns = self._columns
        return (
            columns.catalog_name == self.settings.name,
            columns.table_namespace == ".".join(name.namespace),
            columns.table_name == name.name,
        )


def _with_ref(table: LoadedTable, ref_name: str, ref: Ref | None) -> dict[str, Any]:
    """The table's metadata with one reference more, or without one, every other detail as it was."""
    old = table.metadata
    refs = dict(old.get("refs", {}))
    if MAIN not in refs and MAIN in branch_heads(old):
        refs[MAIN] = {"snapshot-id": branch_heads(old)[MAIN], "type": "branch"}
    if ref is None:
        refs.pop(ref_name, None)
    else:
        refs[ref_name] = dict(ref)
    log = [
        *old.get("metadata-log", ()),
        {"metadata-file": table.metadata_location, "timestamp-ms": old["last-updated-ms"]},
    ]
    keep = int(old.get("properties", {}).get("write.metadata.previous-versions-max", _DEFAULT_PREVIOUS_VERSIONS))
    # The time of the last update stays: the rows did not change, and readers must not see it go backwards.
    changed = dict(old) | {"refs": refs, "metadata-log": log[-max(keep, 1) :]}
    return changed | _moved_main(old, ref) if ref_name == MAIN else changed


def _moved_main(old: RawMetadata, ref: Ref | None) -> dict[str, Any]:
    """What else changes with the main branch: the rows that readers see."""
    now = max(to_millis(utc_now()), old["last-updated-ms"] + 1)
    if ref is None:
        return {"current-snapshot-id": _NO_SNAPSHOT, "last-updated-ms": now}
    log = [*old.get("snapshot-log", ()), {"timestamp-ms": now, "snapshot-id": ref["snapshot-id"]}]
    return {"current-snapshot-id": ref["snapshot-id"], "last-updated-ms": now, "snapshot-log": log}


def _next_metadata_location(table: LoadedTable) -> str:
    folder, _, file_name = table.metadata_location.rpartition("/")
    number = file_name.partition("-")[0]
    version = int(number) + 1 if number.isdecimal() else 0
    suffix = ".gz.metadata.json" if ".gz." in file_name else ".metadata.json"
    return f"{folder}/{version:05d}-{uuid4()}{suffix}"


def open_catalog(settings: CatalogSettings) -> Catalog:
    return SqlCatalog(settings) if settings.type is CatalogType.SQL else Catalog(settings)
