"""Which jars fit which Spark, and how they come onto this machine.

Jars are named by coordinates and resolved by Ivy, the resolver that Spark uses, from the jar that PySpark
ships. We call it ourselves instead of setting `spark.jars.packages` because Ivy's cache is not safe for
concurrent processes, because a download of this size should show its progress, and because jars that are here
need no resolver at all.

The jars that dalsegno itself asks for are pinned by their SHA-256, and so is one whose coordinates end in
`@sha256:HEX`. They are checked each time before Spark gets them, which takes some 50 ms.

Set DEFAULT_ARTIFACT_REPOSITORY, as for Spark, to fetch from a repository of your own.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import quoteattr

from dalsegno.errors import PlatformError, UserError
from dalsegno.private_files import make_private_file, write_private_text
from dalsegno.spark.cache import cache_folder, locked
from dalsegno.spark.java import Java, java_environment

#: The one table of supported pairs. Iceberg builds a runtime per Spark line and fails on any other at the
#: first statement; Spark 4.1 is the newest line it has one for.
ICEBERG_RUNTIMES = {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}

SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.53.4.0"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.14"

#: What Iceberg's classes for object stores need, by the class that a catalog names as ``io-impl``. They hold the
#: cloud's own libraries, so an older one serves; Google's and Azure's newest are older.
BUNDLES = {
    "org.apache.iceberg.aws.s3.S3FileIO": "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    "org.apache.iceberg.gcp.gcs.GCSFileIO": "org.apache.iceberg:iceberg-gcp-bundle:1.11.0",
    "org.apache.iceberg.azure.adlsv2.ADLSFileIO": "org.apache.iceberg:iceberg-azure-bundle:1.10.0",
}
_AWS, _GCP, _AZURE = BUNDLES.values()
#: How properties of a catalog, and addresses in them, begin that speak of a store.
_BUNDLES_BY_BEGINNING = {
    **dict.fromkeys(("s3.", "client.", "glue.", "rest.sig", "s3://", "s3a://", "s3n://"), _AWS),
    **dict.fromkeys(("gcs.", "gs://"), _GCP),
    **dict.fromkeys(("adls.", "abfs://", "abfss://", "wasb://", "wasbs://"), _AZURE),
}

#: Of the jars above and of all that they need, as Maven Central publishes them. A test asks for those that are missing.
CHECKSUMS = {
    ICEBERG_RUNTIMES["4.1"]: "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    SQLITE_JDBC: "bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb",
    POSTGRES_JDBC: "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
    _AWS: "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
    _GCP: "d9248fc76d94d232e153bf760631229cd3b7c6bc3b20f47d4b2caffe011a8a2f",
    _AZURE: "f143be94b94bb380e76d1c45ee9a63e143f4a7f813c6aa1ed72f5bfd44f52d05",
    "org.checkerframework:checker-qual:3.55.1": "857658c8bdcbff794949a8d9922f88d63ee3751c203c7cd7d21ea97f9e745288",
}
#: A catalog with files in several stores, or a REST catalog, chooses by the address of each file.
_RESOLVING = "org.apache.iceberg.io.ResolvingFileIO"
_CATALOG_PROPERTY = re.compile(r"spark\.sql\.catalog\.(\w+)\.(.+)")
_CHECKSUM = re.compile(r"[0-9a-f]{64}")

#: What every Spark has: a second version on the class path breaks it.
PROVIDED_BY_SPARK = ("org.apache.spark", "org.scala-lang", "org.slf4j")


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str
    #: Files that the artifact has besides its jar, such as "tests", and that are wanted too.
    classifiers: tuple[str, ...] = ()
    #: The SHA-256 that its file must have, if somebody says so.
    checksum: str | None = None

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @classmethod
    def parse(cls, text: str) -> Jar:
        coordinates, has_checksum, checksum = text.partition("@sha256:")
        if has_checksum and not _CHECKSUM.fullmatch(checksum.lower()):
            raise UserError(f"A SHA-256 has 64 hexadecimal digits, found '{checksum}' behind {coordinates}.")
        match coordinates.split(":"):
            case [group, artifact, version]:
                return cls(group, artifact, version, checksum=checksum.lower() or None)
            case _:
                raise UserError(
                    f"Jars are named group:artifact:version, found '{text}'.",
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


def bundles(conf: Mapping[str, str]) -> list[str]:
    """The coordinates of the bundles for the object stores that catalogs in Spark's configuration use."""
    catalogs: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        if match := _CATALOG_PROPERTY.fullmatch(key):
            catalogs.setdefault(match[1], {})[match[2]] = value
    found: dict[str, None] = {}
    for properties in catalogs.values():
        named = properties.get("io-impl")
        if named is not None and named != _RESOLVING:
            found |= dict.fromkeys(filter(None, [BUNDLES.get(named)]))
            continue
        for name, value in properties.items():
            found |= {each: None for word, each in _BUNDLES_BY_BEGINNING.items() if name.startswith(word)}
            found |= {
                each: None for word, each in _BUNDLES_BY_BEGINNING.items() if "://" in word and value.startswith(word)
            }
    return sorted(found)


def fetch(jars: Iterable[Jar], java: Java, *, what: str, progress: TextIO | None = None) -> list[Path]:
    """The paths of these jars and of all they need, checked. Only the first call for a set uses the network."""
    jars = list(jars)
    wanted = ivy_module(jars)
    progress = progress or sys.stderr
    cache = cache_folder()
    listing = cache / "jars" / f"{hashlib.sha256(wanted.encode()).hexdigest()[:16]}.txt"
    listing.parent.mkdir(exist_ok=True)
    if paths := listed(listing):
        return checked(paths, jars)
    waiting = f"Another process is fetching jars into {cache}; waiting for it."
    with locked(cache / "ivy.lock", on_wait=partial(say, waiting, progress)):
        if not listed(listing):
            resolve(wanted, listing, java, what=what, progress=progress)
        return checked(listed(listing), jars)


def checked(paths: list[Path], jars: Sequence[Jar]) -> list[Path]:
    """The same paths, if each file is the one that its checksum names; a wrong one is removed from the cache."""
    expected = {jar.coordinates: jar.checksum for jar in jars if jar.checksum} | CHECKSUMS
    found = {coordinates_of(path): path for path in paths}
    for jar in jars:
        # A check that finds no file to look at must not pass.
        if jar.coordinates in expected and jar.coordinates not in found:
            raise PlatformError(f"The resolver gave no file for {jar.coordinates}, which has to be checked.")
    for coordinates, path in found.items():
        if coordinates not in expected:
            continue
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        if checksum != expected[coordinates]:
            path.unlink()
            raise PlatformError(
                f"The file of {coordinates} has the SHA-256 {checksum}, expected {expected[coordinates]}. "
                f"It was not used, and was removed: {path}",
                hint="Try again, which fetches it anew. If it fails again, the repository serves another file: check "
                "DEFAULT_ARTIFACT_REPOSITORY and the network.",
            )
    return paths


def coordinates_of(path: Path) -> str:
    """By the place of a file in Ivy's cache: GROUP/ARTIFACT/jars/ARTIFACT-VERSION.jar."""
    artifact, group = path.parents[1].name, path.parents[2].name
    return f"{group}:{artifact}:{path.stem.removeprefix(f'{artifact}-')}"


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
    # It may name a repository with a password.
    log.unlink(missing_ok=True)
    make_private_file(log)
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=java_environment(), stdout=output, stderr=output) as ivy,
    ):
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
    # The address may hold a password.
    write_private_text(
        path,
        f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <resolvers><ibiblio name="maven" m2compatible="true"{root}/></resolvers>
</ivysettings>
""",
    )
    return path
