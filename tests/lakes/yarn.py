"""A real YARN and HDFS for tests: a ResourceManager, a NodeManager, a NameNode and a DataNode, on loopback.

They are Hadoop's own daemons in one JVM, whose mount namespace hides a folder: what a client keeps there, no container
can read, as on a cluster of other machines.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from py4j.java_gateway import JavaGateway, JavaObject

from dalsegno.spark.jars import Jar, fetch
from dalsegno.spark.java import find_java
from tests.services.jvm import from_pyspark, running_jvm
from tests.services.ports import LOOPBACK

HADOOP_VERSION = "3.4.2"
_MINICLUSTER = f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP_VERSION}"
JARS = [
    Jar.parse(f"{name}@sha256:{checksum}")
    for name, checksum in {
        _MINICLUSTER: "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
        "org.bouncycastle:bcprov-jdk18on:1.78.1": "add5915e6acfc6ab5836e1fd8a5e21c6488536a8c1f21f386eeb3bf280b702d7",
        "org.bouncycastle:bcpkix-jdk18on:1.78.1": "4b48ea084e5232b9d79ebca1887b9de037b124931807cd60710748c2aee08cc9",
        "javax.xml.bind:jaxb-api:2.3.1": "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06",
    }.items()
]
#: Beside the queue ``default``: one that no application may be submitted to.
STOPPED_QUEUE = "stopped"
_FROM_PYSPARK = ("slf4j-api-*", "log4j-*", "py4j-*")
_CONF = {
    "yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,LANG",
    "yarn.nodemanager.delete.debug-delay-sec": "0",
    "yarn.resourcemanager.hostname": LOOPBACK,
    "yarn.nodemanager.hostname": LOOPBACK,
    "yarn.minicluster.fixed.ports": "false",
    "yarn.scheduler.capacity.root.queues": f"default,{STOPPED_QUEUE}",
    "yarn.scheduler.capacity.root.default.capacity": "99",
    f"yarn.scheduler.capacity.root.{STOPPED_QUEUE}.capacity": "1",
    f"yarn.scheduler.capacity.root.{STOPPED_QUEUE}.state": "STOPPED",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "dfs.replication": "1",
    "dfs.permissions.enabled": "false",
}
#: What a client is told of the cluster.
_TOLD = (
    "fs.defaultFS",
    *(f"yarn.resourcemanager.{name}address" for name in ("", "scheduler.", "webapp.")),
)


@dataclass(frozen=True)
class Yarn:
    #: For ``HADOOP_CONF_DIR``.
    conf_folder: Path
    #: The folder that no container can read.
    hidden: Path


@contextmanager
def running_yarn(folder: Path) -> Iterator[Yarn]:
    """Start a cluster with its files in ``folder``; for as long as the block runs and this process lives."""
    hidden, conf_folder = folder / "client", folder / "conf"
    hidden.mkdir()
    conf_folder.mkdir()
    options = [
        "-Xmx512m",
        f"-Dhadoop.log.dir={folder}",
        f"-Dtest.build.data={folder / 'data'}",
        *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "net", "util")),
    ]
    java = _java_that_hides(folder, hidden, find_java().executable)
    with running_jvm(folder / "yarn.log", _class_path(), options, java) as gateway:
        yarn, hdfs = _started(gateway, folder, conf_folder)
        yield Yarn(conf_folder, hidden)
        yarn.stop()
        hdfs.shutdown(True)


def _started(gateway: JavaGateway, folder: Path, conf_folder: Path) -> tuple[JavaObject, JavaObject]:
    hadoop = gateway.jvm.org.apache.hadoop
    conf = hadoop.yarn.conf.YarnConfiguration()
    for name, value in _CONF.items():
        conf.set(name, value)
    conf.set("hdfs.minidfs.basedir", str(folder / "hdfs"))
    hdfs = getattr(hadoop.hdfs, "MiniDFSCluster$Builder")(conf).numDataNodes(1).build()
    hdfs.waitActive()
    conf.set("fs.defaultFS", str(hdfs.getURI().toString()))
    yarn = hadoop.yarn.server.MiniYARNCluster("dalsegno", 1, 1, 1)
    yarn.init(conf)
    yarn.start()
    site = {name: str(yarn.getConfig().get(name)) for name in _TOLD}
    (conf_folder / "core-site.xml").write_text(_as_xml({"fs.defaultFS": site["fs.defaultFS"]}))
    (conf_folder / "yarn-site.xml").write_text(_as_xml(site))
    return yarn, hdfs


def _as_xml(site: Mapping[str, str]) -> str:
    properties = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in site.items()
    )
    return f"<configuration>{''.join(properties)}</configuration>"


def _class_path() -> list[Path]:
    jars = fetch(JARS, find_java(), what=f"Hadoop {HADOOP_VERSION} for tests (about 100 MB)")
    return [*jars, *from_pyspark(*_FROM_PYSPARK)]


def _java_that_hides(folder: Path, hidden: Path, java: Path) -> Path:
    """A ``java`` that sees an empty folder where the client's files are, and so do all containers that it starts."""
    script = folder / "java"
    inside = f'mount -t tmpfs none {shlex.quote(str(hidden))} && exec {shlex.quote(str(java))} "$@"'
    namespace = "unshare --mount" if os.geteuid() == 0 else "unshare --map-root-user --mount"
    script.write_text(f'#!/bin/sh\nexec {namespace} sh -c {shlex.quote(inside)} java "$@"\n')
    script.chmod(0o700)
    return script
