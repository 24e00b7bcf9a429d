"""What dalsegno asks of a catalog, whatever its type."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    TableAlreadyExistsError,
)

from dalsegno.errors import DalsegnoError, PlatformError, UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg import object_stores
from dalsegno.iceberg.files import FileOptions, Files
from dalsegno.iceberg.history import MAIN, RawMetadata, history_of, parse_metadata
from dalsegno.iceberg.object_stores import ObjectStore, store_at
from dalsegno.model.snapshots import History
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings, CatalogType
from dalsegno.storage_problems import DENIED, refused, storage_problem

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog

Ref = Mapping[str, Any]


class ConcurrentChange(Exception):
    """Somebody else changed the table in between: load it again and retry."""


@dataclass(frozen=True)
class LoadedTable:
    """A table as its catalog had it at one moment."""

    name: TableName
    metadata: RawMetadata
    metadata_location: str
    files: Files
    _histories: dict[str, History] = field(default_factory=dict, repr=False, compare=False)

    def history(self, branch: str = MAIN) -> History:
        """The history of a branch; it is derived once, because there may be thousands of snapshots."""
        if branch not in self._histories:
            self._histories[branch] = history_of(self.metadata, branch, table=self.name)
        return self._histories[branch]

    def with_metadata(self, metadata: RawMetadata, location: str, *, changed_ref: str) -> LoadedTable:
        """The table after one of its references was changed, and nothing else."""
        known = {branch: history for branch, history in self._histories.items() if branch != changed_ref}
        return LoadedTable(self.name, metadata, location, self.files, known)


class Catalog:
    """What dalsegno asks of any catalog. PyIceberg answers, where a type of catalog does not do so itself."""

    #: The extra of dalsegno that installs its driver.
    extra: ClassVar[str] = "postgres"
    #: Whether several threads may use it at once.
    is_for_threads: ClassVar[bool] = True
    #: Whether its warehouse is a folder, in which each namespace has one; otherwise it is a name that a server knows.
    has_warehouse_folder: ClassVar[bool] = False
    #: Whether a commit fails if anything changed the table since it was loaded; otherwise only if its branch moved.
    compares_whole_tables: ClassVar[bool] = True

    def __init__(self, settings: CatalogSettings, options: FileOptions | None = None) -> None:
        self.settings = settings
        #: How its files are read.
        self.options = options or FileOptions()

    @cached_property
    def pyiceberg(self) -> PyIcebergCatalog:
        """The connection, made on first use."""
        self.make_local_folders()
        with self._talking("be reached"):
            from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - slow import

            catalog = load_catalog(self.settings.name, **self.pyiceberg_properties())
            self._prepare(catalog)
            return catalog

    def _prepare(self, catalog: PyIcebergCatalog) -> None:
        """Make a new connection fit, or refuse what it leads to."""

    def pyiceberg_properties(self) -> dict[str, str]:
        """What PyIceberg's ``load_catalog`` takes."""
        settings = self.settings
        properties = {
            "type": settings.type.value,
            **object_stores.pyiceberg_properties(settings),
            **settings.properties,
        }
        if settings.uri:
            properties["uri"] = settings.uri
        if settings.warehouse:
            properties["warehouse"] = settings.warehouse
        return {**properties, **self._own_properties(), **settings.pyiceberg}

    def _own_properties(self) -> Mapping[str, str]:
        """Properties of PyIceberg that catalogs of this type need."""
        return {}

    def spark_configuration(self) -> dict[str, str]:
        """What a Spark session needs to see the same catalog under the same name."""
        settings = self.settings
        own = object_stores.spark_properties(settings) | dict(self._spark_properties())
        if settings.warehouse:
            own["warehouse"] = settings.warehouse
        prefix = f"spark.sql.catalog.{settings.name}"
        own |= settings.spark
        return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {f"{prefix}.{k}": v for k, v in own.items()}

    def _spark_properties(self) -> Mapping[str, str]:
        uri = {"uri": self.settings.uri} if self.settings.uri else {}
        return {"type": self.settings.type.value, **uri}

    def make_local_folders(self) -> None:
        """Make the folders that a first use needs, if the catalog is in files."""

    def fixed_changes_folder(self, namespace: str) -> str | None:
        """The folder of change tables, if it is the same for all source tables."""
        if self.settings.changes_location:
            return self.settings.changes_location.rstrip("/")
        if self.has_warehouse_folder and self.settings.warehouse:
            return f"{self.settings.warehouse.rstrip('/')}/{namespace}"
        return None

    def changes_folder(self, namespace: str, table: LoadedTable) -> str:
        """The folder of a table's change tables: not below a table, where maintenance deletes what it does not know."""
        beside = str(table.metadata["location"]).rstrip("/").rpartition("/")[0]
        return self.fixed_changes_folder(namespace) or f"{beside}/{namespace}"

    def close(self) -> None:
        """Let go of connections; the catalog may be used again."""
        engine = getattr(self.__dict__.get("pyiceberg"), "engine", None)
        if engine is not None:
            engine.dispose()

    def load(self, name: TableName) -> LoadedTable:
        with self._talking(f"load {name}"):
            table = self.pyiceberg.load_table(name.identifier)
            files = Files.at(table.metadata_location, table.io.properties, self.options)
            return LoadedTable(
                name, parse_metadata(files.read(table.metadata_location)), table.metadata_location, files
            )

    def metadata_location(self, name: TableName) -> str:
        """Where the table's metadata is said to be."""
        with self._talking(f"look for {name}"):
            return str(self.pyiceberg.load_table(name.identifier).metadata_location)

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
        """Whether dalsegno can keep views in it."""
        return False

    def create_view(self, name: TableName, metadata: RawMetadata, metadata_location: str) -> bool:
        """Make a view appear under a name; False if the name is taken."""
        raise UserError(f"Catalog {self.settings.name!r} ({self.settings.type}) has no views that dalsegno can write.")

    def view_metadata(self, name: TableName) -> RawMetadata | None:
        """What a view is made of; None if there is no view of that name."""
        return None

    def has_view(self, name: TableName) -> bool:
        return False

    def views(self, namespace: tuple[str, ...]) -> list[TableName]:
        return []

    def forget_view(self, name: TableName) -> None:
        """Remove the catalog's entry of a view, and nothing else."""

    def check_store(self) -> None:
        """Ask the object store of the warehouse for one file, so that it can refuse now: Spark retries for minutes."""
        warehouse = self.settings.warehouse
        if self.settings.type is CatalogType.REST or store_at(warehouse) is not ObjectStore.S3:
            return
        location = f"{warehouse}/dalsegno-check"
        with self._talking(f"read {warehouse}"):
            try:
                self.files_at(location).read(location)
            except OSError as error:
                # Without the right to list a bucket, a file that is not there is a file that must not be read.
                if storage_problem(str(error)) not in (None, DENIED):
                    raise

    def files_at(self, location: str) -> Files:
        """File access with the catalog's own properties, for locations that belong to no table."""
        return Files.at(location, self.pyiceberg.properties, self.options)

    def files_of(self, name: TableName, folder: str) -> Files:
        """File access for the folder of a table that may not be there: not yet, or not any more."""
        return self.files_at(folder)

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
            why = (
                "it isn't an Iceberg table" if isinstance(error, NoSuchIcebergTableError) else "there is no such table"
            )
            raise UnknownName(
                f"Catalog {self.settings.name!r} could not {doing}: {why}.",
                actions=[action("See what is there", Verb.LIST_TABLES, catalog=self.settings.name)],
            ) from error
        except (NotInstalledError, ModuleNotFoundError) as error:
            raise UserError(
                f"Catalog {self.settings.name!r} needs a package that is not installed: {error}.",
                hint=f"pip install 'dalsegno[{self.extra}]'",
            ) from error
        except Exception as error:  # drivers raise anything; the cause stays chained
            if (refusal := refused(error, self.settings.name, doing)) is not None:
                raise refusal from error
            raise PlatformError(
                f"Catalog {self.settings.name!r} ({self.settings.type}) could not {doing}: {_summary(error)}",
                actions=[action("Check with", Verb.CHECK_CATALOGS)],
            ) from error


def _summary(error: Exception) -> str:
    """One line of an error; SQLAlchemy's further lines repeat the statement and its values."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip() if lines else 'no details'}"
