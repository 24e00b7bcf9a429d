"""Iceberg's own REST catalog for tests: the adapter of Iceberg's tests in front of a JDBC catalog on SQLite.

Iceberg's test server has a `main`, but it listens on every address of the machine. So the same parts are put
together from here, through Py4J, which also ends the JVM when this process dies, however it dies.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway

from dalsegno.spark.jars import SQLITE_JDBC, Jar, fetch, ivy_jar
from dalsegno.spark.java import Java, find_java
from tests.services.ports import LOOPBACK, free_port

#: The newest release that has the jar with the adapter.
ICEBERG_VERSION = "1.11.0"
JARS = [
    Jar("org.apache.iceberg", "iceberg-core", ICEBERG_VERSION, classifiers=("tests",)),
    Jar("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.13"),
    Jar.parse(SQLITE_JDBC),
]
#: What Iceberg's core needs from Hadoop is in PySpark already.
FROM_PYSPARK = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*")


@dataclass(frozen=True)
class RestCatalog:
    uri: str
    #: A `file:` address: clients read and write the files themselves.
    warehouse: str


@contextmanager
def running_rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    """Serve a new, empty catalog on loopback, with its database and its files in `folder`."""
    warehouse = (folder / "warehouse").as_uri()
    with jvm(folder / "server.log") as gateway:
        port = free_port()
        catalog = jdbc_catalog(gateway, folder / "catalog.db", warehouse)
        server = serve(gateway, catalog, port)
        try:
            yield RestCatalog(f"http://{LOOPBACK}:{port}", warehouse)
        finally:
            server.stop()
            catalog.close()


def jdbc_catalog(gateway: JavaGateway, database: Path, warehouse: str) -> JavaObject:
    properties = {
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


@contextmanager
def jvm(log: Path) -> Iterator[JavaGateway]:
    """A JVM with the server's classes, for as long as the block runs and this process lives."""
    java = find_java()
    with log.open("w") as output:
        port, token, process = launch_gateway(
            jarpath=str(next(ivy_jar().parent.glob("py4j-*.jar"))),
            classpath=class_path(java),
            java_path=str(java.executable),
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
            # Whoever can talk to the gateway can run anything as this user.
            enable_auth=True,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield gateway
        finally:
            gateway.shutdown()
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
    for pipe in [process.stdin, process.stdout]:
        if pipe is not None:
            pipe.close()


def class_path(java: Java) -> str:
    jars = fetch(JARS, java, what=f"Iceberg's REST catalog {ICEBERG_VERSION} for tests (about 30 MB)")
    pyspark = ivy_jar().parent
    for pattern in FROM_PYSPARK:
        jars += pyspark.glob(f"{pattern}.jar")
    return os.pathsep.join(str(path) for path in jars)
