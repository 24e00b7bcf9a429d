"""A Hive metastore for tests, on Derby: version 3.1.3, which most on-premises clusters run, or 4.0.1.

Its parts are put together from here, as Iceberg's REST catalog is in tests/services.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError

from dalsegno.spark.jars import Jar, fetch
from dalsegno.spark.java import Java, find_java
from tests.services.jvm import from_pyspark, running_jvm
from tests.services.ports import LOOPBACK, free_port

HADOOP = "3.4.2"
METASTORES = {
    "3.1.3": [
        Jar("org.apache.hive", "hive-standalone-metastore", "3.1.3"),
        Jar("org.apache.derby", "derby", "10.14.2.0"),
        Jar("commons-collections", "commons-collections", "3.2.2"),
    ],
    "4.0.1": [
        Jar("org.apache.hive", "hive-standalone-metastore-server", "4.0.1"),
        Jar("org.apache.derby", "derby", "10.14.2.0"),
        Jar("org.apache.hadoop", "hadoop-hdfs", HADOOP),
        # Ivy does not find the older one that ORC names.
        Jar("org.apache.hadoop", "hadoop-client-api", HADOOP),
    ],
}
#: Older classes of the same names as others', and the log4j of which Ivy leaves a part out.
UNWANTED = ("hadoop-client-api-", "hadoop-hdfs-2.", "log4j-", "reload4j-")
FROM_PYSPARK = ("slf4j-api-*", "log4j-api-*", "log4j-core-*", "log4j-1.2-api-*", "log4j-slf4j2-impl-*")
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.net", "java.lang", "java.util")]
_PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class HiveMetastore:
    port: int

    @property
    def uri(self) -> str:
        return f"thrift://{LOOPBACK}:{self.port}"


@contextmanager
def running_metastore(folder: Path, version: str = "3.1.3") -> Iterator[HiveMetastore]:
    """Serve a new, empty metastore on loopback, with its database in ``folder``."""
    log, port = folder / "metastore.log", free_port()
    options = [*OPENED, f"-Dderby.stream.error.file={folder / 'derby.log'}"]
    with running_jvm(log, class_path(find_java(), version), options) as gateway:
        conf = configuration(gateway, folder, version)
        threading.Thread(target=_serve, args=(gateway, port, conf), daemon=True).start()
        _wait(port, log)
        yield HiveMetastore(port)


def configuration(gateway: JavaGateway, folder: Path, version: str) -> object:
    metastore = gateway.jvm.org.apache.hadoop.hive.metastore
    conf = metastore.conf.MetastoreConf.newMetastoreConf()
    for key, value in {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'db'};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "metastore.warehouse.dir": (folder / "warehouse").as_uri(),
        "metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "metastore.thrift.bind.host": LOOPBACK,
        "metastore.event.listeners": "",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    }.items():
        conf.set(key, value)
    # Locks need the tables of transactions. Those of Hive 4 are made by a script that is in no jar, but it can compare
    # what it changes, so clients do without locks there.
    if version.startswith("3"):
        metastore.txn.TxnDbUtil.setConfValues(conf)
        metastore.txn.TxnDbUtil.prepDb(conf)
    return conf


def _serve(gateway: JavaGateway, port: int, conf: object) -> None:
    metastore = gateway.jvm.org.apache.hadoop.hive.metastore
    bridge = metastore.security.HadoopThriftAuthBridge.getBridge()
    # It returns when its JVM is ended.
    with suppress(Py4JError, OSError):
        metastore.HiveMetaStore.startMetaStore(port, bridge, conf)


def _wait(port: int, log: Path) -> None:
    patience = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < patience:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"the metastore did not listen on port {port}:\n{log.read_text(errors='replace')[-3000:]}")


def class_path(java: Java, version: str) -> list[Path]:
    hadoop = [
        Jar("org.apache.hadoop", name, HADOOP)
        for name in ("hadoop-common", "hadoop-hdfs-client", "hadoop-mapreduce-client-core")
    ]
    jars = fetch([*METASTORES[version], *hadoop], java, what=f"Hive metastore {version} for tests (about 100 MB)")
    return [*(path for path in jars if not path.name.startswith(UNWANTED)), *from_pyspark(*FROM_PYSPARK)]
