"""What the tests of change capture share: a lake that Spark sees too, tables in it, and rows read in both engines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyiceberg.table import Table

from dalsegno import Changes, Lake, Settings
from dalsegno.clock import Clock, utc_now
from dalsegno.iceberg.catalogs import spark_configuration
from dalsegno.iceberg.history import parse_metadata
from dalsegno.model.captures import CapturedTable
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Counter[tuple[Any, ...]]

#: A consumer for tests that need only one.
CONSUMER = "c"
NAMESPACE = "db"
#: A table whose every commit merges the manifests it finds.
MERGE_MANIFESTS = {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "true"}
COPY_ON_WRITE = {f"write.{kind}.mode": "copy-on-write" for kind in ("delete", "update", "merge")}
MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}


def rows(*values: tuple[Any, ...]) -> Rows:
    """The rows one expects, each as often as it is named."""
    return Counter(values)


def numbered(*ids: int) -> Rows:
    """The rows of a table with a number alone."""
    return Counter((number,) for number in ids)


def sqlite_settings(folder: Path, catalog: str, **changed: Any) -> Settings:
    """A store and a catalog on SQLite, with the warehouse beside them."""
    settings = CatalogSettings(
        catalog,
        uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=str(folder / "warehouse"),
        spark={"cache-enabled": "false"},
        **changed,
    )
    return settings_with(folder, settings)


def settings_with(folder: Path, catalog: CatalogSettings) -> Settings:
    return Settings(
        root=folder,
        store=f"sqlite:///{folder / 'store.db'}",
        default_catalog=catalog.name,
        catalogs={catalog.name: catalog},
    )


def fresh_name() -> str:
    """A word no other test uses: Spark keeps a catalog from its first use on."""
    return f"c{uuid4().hex[:12]}"


@dataclass(frozen=True)
class Place:
    """A lake, and a Spark session that sees its catalog under the same name."""

    lake: Lake
    spark: SparkSession
    folder: Path
    _numbers: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    def make(cls, spark: SparkSession, folder: Path, settings: Settings, clock: Clock = utc_now) -> Place:
        for catalog in settings.catalogs.values():
            for key, value in sorted(spark_configuration(catalog).items(), reverse=True):
                spark.conf.set(key, value)
        lake = Lake.open(settings, clock=clock)
        place = cls(lake, spark, folder)
        place.sql(f"create namespace if not exists {place.catalog}.{NAMESPACE}")
        return place

    @property
    def catalog(self) -> str:
        return self.lake.settings.default_catalog

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def table(
        self,
        columns: str = "id int",
        *,
        partitioned: str = "",
        version: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> Source:
        """An empty table that nobody else uses."""
        source = Source(self, f"{NAMESPACE}.t{next(self._numbers)}")
        clause = f"partitioned by ({partitioned})" if partitioned else ""
        named = {"format-version": str(version), **(properties or {})}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in named.items())
        source.sql(f"create table {{t}} ({columns}) using iceberg {clause} tblproperties ({listed})")
        return source

    def rows_of(self, changes: Changes) -> Rows:
        """The rows of a capture's only change table, the same in Spark and in PyIceberg."""
        return self.rows_in(changes.identifier)

    def rows_of_each(self, changes: Changes) -> dict[str, Rows]:
        """Source → the rows of its change table."""
        return {
            ".".join(source.identifier): self.rows_in(captured.change_table.identifier)
            for source, captured in changes.tables.items()
        }

    def rows_in(self, identifier: tuple[str, ...]) -> Rows:
        by_spark = self.spark_rows(f"select * from {self.catalog}.{'.'.join(identifier)}")
        table = self.pyiceberg(identifier)
        assert by_spark == arrow_rows(table.scan().to_arrow()), "Spark and PyIceberg read different rows"
        return by_spark

    def spark_rows(self, query: str) -> Rows:
        return Counter(plain(tuple(row)) for row in self.spark.sql(query).collect())

    def pyiceberg(self, identifier: str | tuple[str, ...]) -> Table:
        return self.lake.catalog(self.catalog).pyiceberg.load_table(identifier)

    def metadata(self, identifier: str | tuple[str, ...]) -> dict[str, Any]:
        """A table's metadata file as it is."""
        parts = tuple(identifier.split(".")) if isinstance(identifier, str) else identifier
        loaded = self.lake.load(TableName(self.catalog, parts[:-1], parts[-1]))
        return parse_metadata(loaded.files.read(loaded.metadata_location))

    def change_tables(self) -> list[TableName]:
        """What the catalog lists in the namespace of change tables."""
        return self.lake.catalog(self.catalog).tables((self.lake.settings.change_namespace,))

    def call(self, procedure: str) -> list[tuple[Any, ...]]:
        return self.sql(f"call {self.catalog}.system.{procedure}")


@dataclass(frozen=True)
class Source:
    """A table whose changes are captured."""

    place: Place
    #: With its namespace, as the lake and PyIceberg call it.
    name: str

    @property
    def full(self) -> str:
        """As Spark calls it."""
        return f"{self.place.catalog}.{self.name}"

    def sql(self, *statements: str) -> None:
        """Run statements in which `{t}` stands for the table."""
        for statement in statements:
            self.place.spark.sql(statement.replace("{t}", self.full)).collect()

    def insert(self, *values: str, into: str = "{t}") -> None:
        """Append rows, each written as the inside of SQL's parentheses, in one snapshot."""
        self.sql(f"insert into {into} values {', '.join(f'({value})' for value in values)}")

    def append(self, **columns: list[Any]) -> None:
        """Append rows with PyIceberg, in one snapshot."""
        table = self.pyiceberg
        schema = table.schema().as_arrow()
        table.append(pa.table(columns, schema=pa.schema([schema.field(name) for name in columns])))

    def capture(self, consumer: str = CONSUMER, **wishes: Any) -> Changes:
        return self.place.lake.capture(self.name, consumer=consumer, **wishes)

    def taken(self, consumer: str = CONSUMER, **wishes: Any) -> Rows:
        """Capture, read and commit; no rows if there is nothing new."""
        changes = self.capture(consumer, **wishes)
        if not changes:
            return Counter()
        found = self.place.rows_of(changes)
        # Of a whole table the rows in its files are counted, deleted or not.
        assert found.total() == changes.rows or (captured_from(changes, self).is_full and found.total() < changes.rows)
        assert changes.commit().left_over == ()
        return found

    def taken_by_spark(self, consumer: str = CONSUMER) -> Rows:
        """The same where PyIceberg cannot read the data files."""
        changes = self.capture(consumer)
        found = self.place.spark_rows(f"select * from {changes.table}")
        changes.commit()
        return found

    def rows(self, query: str = "select * from {t}") -> Rows:
        """What Spark reads from the table."""
        return self.place.spark_rows(query.replace("{t}", self.full))

    def added(self, after: int, upto: int) -> Rows:
        """What Spark's own incremental read gives for the half-open range, in the current schema."""
        reader = self.place.spark.read.format("iceberg")
        ranged = reader.option("start-snapshot-id", after).option("end-snapshot-id", upto)
        return Counter(plain(tuple(row)) for row in ranged.load(self.full).collect())

    @property
    def pyiceberg(self) -> Table:
        return self.place.pyiceberg(self.name)

    @property
    def metadata(self) -> dict[str, Any]:
        return self.place.metadata(self.name)

    @property
    def head(self) -> int:
        return int(self.metadata["current-snapshot-id"])

    @property
    def snapshots(self) -> list[int]:
        """Oldest first."""
        known = sorted(self.metadata["snapshots"], key=lambda raw: (raw.get("sequence-number", 0), raw["timestamp-ms"]))
        return [raw["snapshot-id"] for raw in known]

    @property
    def operations(self) -> list[str]:
        known = {raw["snapshot-id"]: raw["summary"]["operation"] for raw in self.metadata["snapshots"]}
        return [known[snapshot_id] for snapshot_id in self.snapshots]


def captured_from(changes: Changes, source: Source) -> CapturedTable:
    return changes.tables[source.place.lake.name(source.name)]


def arrow_rows(table: pa.Table) -> Rows:
    return Counter(plain(tuple(row.values())) for row in table.to_pylist())


def plain(value: Any) -> Any:
    """A value that equals what the other engines make of the same one, and that can be counted."""
    match value:
        case Mapping():
            return tuple(plain(item) for item in value.values())
        case tuple() | list():
            return tuple(plain(item) for item in value)
        case bytearray():
            return bytes(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case float() if math.isnan(value):
            return "NaN"
    return value


def files_below(folder: Path, wanted: Callable[[Path], bool] = lambda _: True) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and wanted(path)}


def times(found: Iterable[Mapping[str, Any]], key: str) -> Counter[Any]:
    return Counter(item[key] for item in found)


def duckdb_rows(query: str, parameters: Sequence[Any] = ()) -> Rows:
    """The rows of a query in DuckDB, with its Iceberg support as the package index has it."""
    import duckdb

    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("avro", "iceberg"):
            folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            connection.execute(f"load '{folder / f'{name}.duckdb_extension'}'")
        connection.execute("set timezone = 'UTC'")
        return arrow_rows(connection.execute(query, list(parameters)).to_arrow_table())
