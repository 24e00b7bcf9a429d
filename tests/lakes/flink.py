"""Flink for tests: a cluster in one JVM, which executes SQL on Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway, JavaObject

from dalsegno.spark.jars import SQLITE_JDBC, Jar, fetch
from dalsegno.spark.java import find_java
from tests.services.jvm import from_pyspark, running_jvm
from tests.services.ports import LOOPBACK

#: The newest line of Flink that Iceberg has a runtime for.
FLINK_VERSION, ICEBERG_VERSION = "2.1.1", "1.11.0"
JARS = [
    *(
        Jar("org.apache.flink", artifact, FLINK_VERSION)
        for artifact in (
            "flink-table-planner-loader",
            "flink-table-runtime",
            "flink-table-api-java-bridge",
            "flink-clients",
            "flink-connector-files",
        )
    ),
    Jar("org.apache.iceberg", "iceberg-flink-runtime-2.1", ICEBERG_VERSION),
    Jar.parse(SQLITE_JDBC),
]
#: Iceberg's catalogs need Hadoop's configuration, whatever they are.
FROM_PYSPARK = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "log4j-*", "commons-logging-*")
#: What Flink's own scripts give to Java 17 and newer.
OPENED = ("java.lang", "java.net", "java.io", "java.nio", "java.text", "java.time", "java.util", "sun.nio.ch")

DEFAULTS = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "rest.bind-address": LOOPBACK,
    "rest.address": LOOPBACK,
    "rest.bind-port": "0",
    # Everything is on the class path of the one JVM.
    "classloader.resolve-order": "parent-first",
}
#: What happens to a row (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE), and its values.
Event = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Flink:
    """Executes SQL in bounded jobs."""

    gateway: JavaGateway
    configuration: JavaObject
    #: A table environment in batch mode.
    tables: JavaObject
    catalogs: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def process_id(self) -> int:
        return int(self.gateway.jvm.java.lang.ProcessHandle.current().pid())

    def add_catalog(self, name: str, options: Mapping[str, str]) -> None:
        _create_catalog(self.tables, name, options)
        self.catalogs[name] = options

    def sql(self, statement: str) -> None:
        """Execute a statement to its end."""
        _await(self.tables.executeSql(statement))

    def upsert(self, table: str, columns: Mapping[str, str], key: Sequence[str], events: Sequence[Event]) -> None:
        """Write a stream of changes in one commit, as a job that follows a database does.

        ``columns`` are names and types (``INT NOT NULL``); those of the ``key`` are the table's identifier fields.
        """
        flink = self.gateway.jvm.org.apache.flink
        environment = flink.streaming.api.environment.StreamExecutionEnvironment.getExecutionEnvironment(
            self.configuration
        )
        environment.setParallelism(1)
        tables = flink.table.api.bridge.java.StreamTableEnvironment.create(environment)
        # Each event is written as it comes: Flink would hold back deletes of rows that this job did not insert.
        tables.getConfig().set("table.exec.sink.upsert-materialize", "NONE")
        for name, options in self.catalogs.items():
            _create_catalog(tables, name, options)
        schema = flink.table.api.Schema.newBuilder()
        for column, kind in columns.items():
            schema.column(column, kind)
        schema.primaryKey(list(key))
        stream = environment.fromData([self._row(kind, values) for kind, values in events], self._row_type(columns))
        changelog = flink.table.connector.ChangelogMode.all()
        _await(tables.fromChangelogStream(stream, schema.build(), changelog).executeInsert(table))

    def _row(self, kind: str, values: Sequence[Any]) -> JavaObject:
        types = self.gateway.jvm.org.apache.flink.types
        row = types.Row(types.RowKind.valueOf(kind), len(values))
        for number, value in enumerate(values):
            row.setField(number, value)
        return row

    def _row_type(self, columns: Mapping[str, str]) -> JavaObject:
        jvm = self.gateway.jvm
        info = jvm.org.apache.flink.api.common.typeinfo
        known = {"INT": info.Types.INT, "STRING": info.Types.STRING}
        kinds = self.gateway.new_array(info.TypeInformation, len(columns))
        names = self.gateway.new_array(jvm.java.lang.String, len(columns))
        for number, (name, kind) in enumerate(columns.items()):
            names[number], kinds[number] = name, known[kind.split()[0]]
        return info.Types.ROW_NAMED(names, kinds)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        found = []
        iterator = self.tables.executeSql(query).collect()
        while iterator.hasNext():
            row = iterator.next()
            found.append(tuple(_value(row.getField(number)) for number in range(row.getArity())))
        return found


def _create_catalog(tables: JavaObject, name: str, options: Mapping[str, str]) -> None:
    listed = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in {"type": "iceberg", **options}.items())
    tables.executeSql(f"CREATE CATALOG `{name}` WITH ({listed})")


def _await(result: JavaObject) -> None:
    # Its name is a keyword of Python.
    getattr(result, "await")()


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _value(value: Any) -> Any:
    """What Python has for a value: Py4J knows numbers, strings and bytes."""
    if not isinstance(value, JavaObject):
        return value
    match value.getClass().getSimpleName():
        case "LocalDate":
            return date.fromisoformat(value.toString())
        case "LocalDateTime" | "Instant":
            return datetime.fromisoformat(value.toString())
        case other:
            raise TypeError(f"no Python value for Java's {other}: {value.toString()}")


@contextmanager
def running_flink(log: Path, memory: str = "1g", conf: Mapping[str, str] | None = None) -> Iterator[Flink]:
    """A Flink in a JVM of its own, with what it prints in ``log``."""
    class_path = fetch(JARS, find_java(), what=f"Flink {FLINK_VERSION} with Iceberg {ICEBERG_VERSION} (about 170 MB)")
    class_path += from_pyspark(*FROM_PYSPARK)
    options = [f"-Xmx{memory}", *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)]
    with running_jvm(log, class_path, options) as gateway:
        configuration = _configuration(gateway, {**DEFAULTS, **(conf or {})})
        cluster = _cluster(gateway, configuration)
        address = cluster.getRestAddress().get()
        # Otherwise each statement would start a cluster of its own.
        remote = {"execution.target": "remote", "rest.address": address.getHost(), "rest.port": str(address.getPort())}
        for key, value in remote.items():
            configuration.setString(key, value)
        try:
            yield Flink(gateway, configuration, _batch_tables(gateway, configuration))
        finally:
            cluster.close()


def _configuration(gateway: JavaGateway, conf: Mapping[str, str]) -> JavaObject:
    configuration = gateway.jvm.org.apache.flink.configuration.Configuration()
    for key, value in conf.items():
        configuration.setString(key, value)
    return configuration


def _cluster(gateway: JavaGateway, configuration: JavaObject) -> JavaObject:
    minicluster = gateway.jvm.org.apache.flink.runtime.minicluster
    slots = int(configuration.toMap()["parallelism.default"])
    # A nested class is not an attribute in Py4J.
    builder = getattr(minicluster, "MiniClusterConfiguration$Builder")()
    built = builder.setConfiguration(configuration).setNumTaskManagers(1).setNumSlotsPerTaskManager(slots).build()
    cluster = minicluster.MiniCluster(built)
    cluster.start()
    return cluster


def _batch_tables(gateway: JavaGateway, configuration: JavaObject) -> JavaObject:
    api = gateway.jvm.org.apache.flink.table.api
    settings = api.EnvironmentSettings.newInstance().inBatchMode().withConfiguration(configuration).build()
    return api.TableEnvironment.create(settings)
