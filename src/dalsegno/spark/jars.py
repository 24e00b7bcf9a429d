"""Which jars fit which Spark, and how they come onto this machine.

Jars are named by coordinates and resolved by Ivy, the resolver that Spark uses, from the jar that PySpark
ships. We call it ourselves instead of setting `spark.jars.packages` because Ivy's cache is not safe for
concurrent processes, because a download of this size should show its progress, and because jars that are here
need no resolver at all.

Set DEFAULT_ARTIFACT_REPOSITORY, as for Spark, to fetch from a repository of your own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import quoteattr

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.cache import cache_folder, locked
from dalsegno.spark.java import Java

#: The one table of supported pairs. Iceberg builds a runtime per Spark line and fails on any other at the
#: first statement; Spark 4.1 is the newest line it has one for.
ICEBERG_RUNTIMES = {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}

SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.53.4.0"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.14"

#: What every Spark has: a second version on the class path breaks it.
PROVIDED_BY_SPARK = ("org.apache.spark", "org.scala-lang", "org.slf4j")


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str
    #: Files that the artifact has besides its jar, such as "tests", and that are wanted too.
    classifiers: tuple[str, ...] = ()

    @classmethod
    def parse(cls, coordinates: str) -> Jar:
        match coordinates.split(":"):
            case [group, artifact, version]:
                return cls(group, artifact, version)
            case _:
                raise UserError(
                    f"Jars are named group:artifact:version, found '{coordinates}'.",
                    hint=f"For instance: {SQLITE_JDBC}",
                )


def iceberg_runtime(spark_version: str) -> str:
    """The coordinates of the Iceberg runtime for a version of Spark."""
    line = ".".join(spark_version.split(".")[:2])
    if line not in ICEBERG_RUNTIMES:
        supported = ", ".join(f"{line}.x" for line in ICEBERG_RUNTIMES)
        raise UserError(
            f"Expected Spark {supported}, found PySpark {spark_version}: Iceberg has no runtime for it.",
            hint="Type: pip install 'pyspark>=4.1.3,<4.2'",
        )
    return ICEBERG_RUNTIMES[line]


def fetch(jars: Iterable[Jar], java: Java, *, what: str, progress: TextIO | None = None) -> list[Path]:
    """The paths of these jars and of all they need. Only the first call for a set uses the network."""
    wanted = ivy_module(list(jars))
    progress = progress or sys.stderr
    cache = cache_folder()
    listing = cache / "jars" / f"{hashlib.sha256(wanted.encode()).hexdigest()[:16]}.txt"
    listing.parent.mkdir(exist_ok=True)
    if paths := listed(listing):
        return paths
    waiting = f"Another process is fetching jars into {cache}; waiting for it."
    with locked(cache / "ivy.lock", on_wait=partial(say, waiting, progress)):
        if paths := listed(listing):
            return paths
        resolve(wanted, listing, java, what=what, progress=progress)
    return listed(listing)


def listed(listing: Path) -> list[Path]:
    """The jars that a listing names; none if one of them has been removed since."""
    if not listing.exists():
        return []
    paths = [Path(line) for line in listing.read_text().split(os.pathsep)]
    return paths if all(path.exists() for path in paths) else []


def resolve(wanted: str, listing: Path, java: Java, *, what: str, progress: TextIO) -> None:
    cache = cache_folder()
    module = listing.with_suffix(".xml")
    module.write_text(wanted)
    draft = listing.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    command = [
        *(str(java.executable), "-cp", str(ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(ivy_settings(cache))),
        *("-ivy", str(module), "-cache", str(cache / "ivy")),
        *("-confs", "default", "-cachepath", str(draft), "-warn"),
    ]
    log = cache / "ivy.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as ivy:
        follow(ivy, cache / "ivy", what, progress)
    if ivy.returncode != 0:
        raise PlatformError(
            f"{what} could not be fetched: {complaint(log)}",
            hint=f"Is the network there? For a repository of your own set DEFAULT_ARTIFACT_REPOSITORY. Details: {log}",
        )
    draft.write_text(draft.read_text().strip())
    draft.replace(listing)


def follow(ivy: subprocess.Popen[bytes], folder: Path, what: str, progress: TextIO) -> None:
    """Say what is fetched and how far it is: in place on a terminal, every ten seconds elsewhere."""
    terminal = progress.isatty()
    started, before = time.monotonic(), megabytes_in(folder)
    say(f"Fetching {what}, once.", progress)
    while True:
        try:
            ivy.wait(timeout=0.5 if terminal else 10)
            break
        except subprocess.TimeoutExpired:
            state = f"  {megabytes_in(folder) - before:.0f} MB after {time.monotonic() - started:.0f} s"
            say(state, progress, end="\r" if terminal else "\n")
    elapsed = time.monotonic() - started
    say(f"  {megabytes_in(folder) - before:.0f} MB in {elapsed:.0f} s.", progress)


def say(text: str, progress: TextIO, end: str = "\n") -> None:
    progress.write(text + end)
    progress.flush()


def megabytes_in(folder: Path) -> float:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            # Ivy renames a file when it is complete.
            continue
    return total / 1e6


def complaint(log: Path) -> str:
    """The part of Ivy's many words that says what went wrong."""
    lines = [line.strip(" :\t") for line in log.read_text().splitlines()]
    telling = [line for line in lines if "not found" in line.lower() or "Exception" in line]
    return "; ".join(dict.fromkeys(telling[:3])) or "no reason was given"


def ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UserError("PySpark is not installed.", hint="Type: pip install 'dalsegno[spark]'")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise PlatformError("This PySpark has no jars: it is the client only.", hint="Type: pip install pyspark")
    return found[-1]


def ivy_module(jars: Sequence[Jar]) -> str:
    """An Ivy file that asks for these jars, and never for what Spark has anyway."""
    dependencies = "".join(ivy_dependency(jar) for jar in jars)
    excludes = "".join(f'    <exclude org="{group}"/>\n' for group in PROVIDED_BY_SPARK)
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="dalsegno" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}{excludes}  </dependencies>
</ivy-module>
"""


def ivy_dependency(jar: Jar) -> str:
    name = f"org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
    files = [f'<artifact name={quoteattr(jar.artifact)} type="jar" ext="jar"/>'] if jar.classifiers else []
    for classifier in jar.classifiers:
        files.append(files[0].replace("/>", f" m:classifier={quoteattr(classifier)}/>"))
    return f'    <dependency {name} conf="default->default">{"".join(files)}</dependency>\n'


def ivy_settings(cache: Path) -> Path:
    """Ask the repository that the user named, or the one that Ivy and Spark ask by default."""
    own = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f" root={quoteattr(own)}" if own else ""
    path = cache / "ivy-settings.xml"
    path.write_text(f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <resolvers><ibiblio name="maven" m2compatible="true"{root}/></resolvers>
</ivysettings>
""")
    return path
