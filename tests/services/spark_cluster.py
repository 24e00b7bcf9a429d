"""A real Spark standalone cluster for tests: a master and two workers on this machine, from PySpark's own jars."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from dalsegno.spark.jars import ivy_jar
from dalsegno.spark.java import find_java
from dalsegno.spark.session import spark_environment
from tests.services.ports import LOOPBACK, free_port

WORKERS = 2
_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class SparkCluster:
    #: For ``spark.master``.
    address: str
    _pages: int

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications."""
        with urlopen(f"http://{LOOPBACK}:{self._pages}/json/") as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def running_spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    port, pages = free_port(), free_port()
    cluster = SparkCluster(f"spark://{LOOPBACK}:{port}", pages)
    with ExitStack() as stack:
        place = ["--host", LOOPBACK]
        stack.enter_context(
            _java(folder, "master.Master", *place, "--port", str(port), "--webui-port", str(pages), memory="256m")
        )
        for number in range(WORKERS):
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            stack.enter_context(
                _java(folder, "worker.Worker", *place, "--webui-port", "0", *resources, cluster.address, memory="256m")
            )
        _wait_for_workers(cluster)
        yield cluster


def _wait_for_workers(cluster: SparkCluster) -> None:
    patience = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            if cluster.state()["aliveworkers"] == WORKERS:
                return
        except OSError:
            pass
        if time.monotonic() > patience:
            raise TimeoutError("the workers did not find their master; see the logs")
        time.sleep(0.1)


@contextmanager
def _java(folder: Path, program: str, *arguments: str, memory: str) -> Iterator[None]:
    java, jars = find_java(), ivy_jar().parent
    command = [
        str(java.executable),
        f"-Xmx{memory}",
        "-cp",
        f"{jars}/*",
        f"org.apache.spark.deploy.{program}",
        *arguments,
    ]
    # Workers start executors with what is installed there, and would else look for a build of Spark.
    place = {"SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}
    environment = {**os.environ, **spark_environment(java), **place}
    with (folder / f"{program}.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        # A worker's executors belong to its group.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
