"""Iceberg's own REST catalog for tests: the adapter of Iceberg's tests in front of a JDBC catalog on SQLite.

Iceberg's test server has a `main`, but it listens on every address of the machine. So the same parts are put
together from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaGateway, JavaObject

from dalsegno.spark.jars import SQLITE_JDBC, Jar, fetch
from dalsegno.spark.java import Java, find_java
from tests.services.jvm import from_pyspark, running_jvm
from tests.services.ports import LOOPBACK, free_port

#: The newest release that has the jar with the adapter.
ICEBERG_VERSION = "1.11.0"
JARS = [
    Jar("org.apache.iceberg", "iceberg-core", ICEBERG_VERSION, classifiers=("tests",)),
    Jar("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.13"),
    Jar.parse(SQLITE_JDBC),
]
S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
#: For files on S3.
S3_JARS = [Jar("org.apache.iceberg", name, ICEBERG_VERSION) for name in ("iceberg-aws", "iceberg-aws-bundle")]
#: What Iceberg's core needs from Hadoop is in PySpark already.
FROM_PYSPARK = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*")


@dataclass(frozen=True)
class RestCatalog:
    uri: str
    #: A `file:` address: clients read and write the files themselves.
    warehouse: str


@contextmanager
def running_rest_catalog(
    folder: Path, warehouse: str | None = None, s3: Mapping[str, str] | None = None
) -> Iterator[RestCatalog]:
    """Serve a new, empty catalog on loopback, with its database and, without a warehouse, its files in `folder`."""
    warehouse = warehouse or (folder / "warehouse").as_uri()
    with running_jvm(folder / "server.log", class_path(find_java(), on_s3=s3 is not None)) as gateway:
        port = free_port()
        files = {} if s3 is None else {"io-impl": S3_FILE_IO, "client.region": s3["s3.region"], **s3}
        catalog = jdbc_catalog(gateway, folder / "catalog.db", warehouse, files)
        server = serve(gateway, catalog, port)
        try:
            yield RestCatalog(f"http://{LOOPBACK}:{port}", warehouse)
        finally:
            server.stop()
            catalog.close()


def jdbc_catalog(gateway: JavaGateway, database: Path, warehouse: str, files: Mapping[str, str]) -> JavaObject:
    properties = {
        **files,
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{database}",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        # SQLite has one writer; a second connection would only meet a locked database.
        "clients": "1",
    }
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    return gateway.jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog("rest", properties, configuration)


def serve(gateway: JavaGateway, catalog: JavaObject, port: int) -> JavaObject:
    rest = gateway.jvm.org.apache.iceberg.rest
    jetty = gateway.jvm.org.eclipse.jetty
    context = jetty.ee10.servlet.ServletContextHandler()
    servlet = rest.RESTCatalogServlet(rest.RESTCatalogAdapter(catalog))
    context.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
    server = jetty.server.Server(gateway.jvm.java.net.InetSocketAddress(LOOPBACK, port))
    server.setHandler(context)
    server.start()
    return server


def class_path(java: Java, *, on_s3: bool = False) -> list[Path]:
    wanted = [*JARS, *(S3_JARS if on_s3 else ())]
    jars = fetch(wanted, java, what=f"Iceberg's REST catalog {ICEBERG_VERSION} for tests (about 30 MB)")
    return [*jars, *from_pyspark(*FROM_PYSPARK)]
