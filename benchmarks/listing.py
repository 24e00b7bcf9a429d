"""Iceberg's Java library, as the talk's listing uses it: compiled here, run in one warm JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.tables import BenchTable
from dalsegno.iceberg.catalogs import spark_configuration
from dalsegno.settings import CatalogSettings
from dalsegno.spark.jars import SQLITE_JDBC, Jar, fetch, iceberg_runtime
from dalsegno.spark.java import find_java
from dalsegno.spark.session import installed_spark

SOURCE = Path(__file__).with_name("java") / "Listing.java"


class NoCompiler(Exception):
    """There is a Java to run programs, but none to compile them."""


def seconds_to_append(catalog: CatalogSettings, runs: Sequence[BenchTable], folder: Path) -> Iterator[float]:
    """The seconds of each run, all in one JVM; the first ones are slow, since it compiles what it runs often."""
    java = find_java()
    compiler = shutil.which("javac", path=str(java.home / "bin")) or shutil.which("javac")
    if compiler is None:
        raise NoCompiler(f"no javac beside {java.executable} nor on PATH: install a JDK, 17 or 21")
    names = (iceberg_runtime(installed_spark()), SQLITE_JDBC)
    jars = fetch([Jar.parse(name) for name in names], java, what="Iceberg's runtime")
    # The runtime brings no logging of its own.
    class_path = os.pathsep.join(map(str, (*jars, _spark_jars() / "*")))
    subprocess.run([compiler, "-nowarn", "-cp", class_path, "-d", str(folder), str(SOURCE)], check=True)
    prefix = f"spark.sql.catalog.{catalog.name}."
    configuration = spark_configuration(catalog)
    command = [
        *(str(java.executable), "-Xmx6g", "-cp", f"{folder}{os.pathsep}{class_path}", "Listing"),
        *(catalog.name, configuration[f"{prefix}uri"], configuration[f"{prefix}warehouse"]),
        *(str(word) for run in runs for word in (run.name, run.after, run.upto, run.files)),
    ]
    log = folder / "listing.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        yield from map(float, process.stdout)
    if process.returncode != 0:
        raise RuntimeError(f"Listing.java failed:\n{log.read_text()[-2000:]}")


def _spark_jars() -> Path:
    import pyspark  # noqa: PLC0415 - an extra

    return Path(pyspark.__file__).parent / "jars"
