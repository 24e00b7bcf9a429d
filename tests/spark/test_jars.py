"""The table of supported pairs, and jars by coordinates."""

from __future__ import annotations

import hashlib
import io
import stat
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.cache import cache_folder
from dalsegno.spark.jars import (
    CHECKSUMS,
    POSTGRES_JDBC,
    SQLITE_JDBC,
    Jar,
    coordinates_of,
    fetch,
    iceberg_runtime,
    ivy_module,
)
from dalsegno.spark.java import find_java

MAVEN = "{http://ant.apache.org/ivy/maven}"


def test_the_installed_spark_has_a_runtime() -> None:
    assert iceberg_runtime(pyspark.__version__).startswith("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:")


@pytest.mark.parametrize("version", ["3.5.7", "4.0.1", "4.2.0", "4.10.0", "5.0.0.dev0"])
def test_other_sparks_are_refused(version: str) -> None:
    with pytest.raises(UserError) as caught:
        iceberg_runtime(version)
    assert caught.value.message.startswith(f"Expected Spark 4.1.x, found PySpark {version}")
    assert caught.value.hint == "Type: pip install 'pyspark>=4.1.3,<4.2'"


@pytest.mark.parametrize("coordinates", ["", "sqlite-jdbc", "org.xerial:sqlite-jdbc", "a:b:c:d"])
def test_coordinates_have_three_parts(coordinates: str) -> None:
    with pytest.raises(UserError, match="group:artifact:version"):
        Jar.parse(coordinates)


def test_classifiers_are_asked_for_beside_the_jar_itself() -> None:
    tree = ElementTree.fromstring(ivy_module([Jar("g", "a", "1", classifiers=("tests",))]))
    wanted = [artifact.get(f"{MAVEN}classifier") for artifact in tree.iter("artifact")]
    assert wanted == [None, "tests"]


def test_fetching_shows_itself_once_and_needs_no_network_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    progress = io.StringIO()
    java = find_java()
    first = fetch([Jar.parse(SQLITE_JDBC)], java, what="the SQLite driver", progress=progress)
    assert [path.name for path in first] == ["sqlite-jdbc-3.53.4.0.jar"]
    assert progress.getvalue().startswith("Fetching the SQLite driver, once.\n")

    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "nowhere").as_uri())
    silence = io.StringIO()
    assert fetch([Jar.parse(SQLITE_JDBC)], java, what="the SQLite driver", progress=silence) == first
    assert silence.getvalue() == ""


def test_what_cannot_be_fetched_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "nowhere").as_uri())
    with pytest.raises(PlatformError) as caught:
        fetch([Jar.parse("g:missing:1")], find_java(), what="A jar", progress=io.StringIO())
    assert "A jar could not be fetched" in caught.value.message
    assert "g#missing;1" in caught.value.message
    assert "DEFAULT_ARTIFACT_REPOSITORY" in (caught.value.hint or "")


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(PlatformError, match="cannot be made"):
        cache_folder()


# Checksums.


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one's own, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "repository").as_uri())
    return tmp_path / "repository"


def publish(repository: Path, coordinates: str, content: bytes) -> str:
    """Put a jar there: its checksum."""
    group, artifact, version = coordinates.split(":")
    folder = repository.joinpath(*group.split("."), artifact, version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{artifact}-{version}.jar").write_bytes(content)
    (folder / f"{artifact}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></project>"
    )
    return hashlib.sha256(content).hexdigest()


def fetched(*coordinates: str) -> list[Path]:
    return fetch([Jar.parse(each) for each in coordinates], find_java(), what="Jars", progress=io.StringIO())


@pytest.mark.parametrize("coordinates", sorted(CHECKSUMS))
def test_another_file_of_a_pinned_jar_is_refused(repository: Path, coordinates: str) -> None:
    publish(repository, coordinates, b"something else")
    with pytest.raises(PlatformError, match=f"{coordinates} has the SHA-256 .*, expected {CHECKSUMS[coordinates]}"):
        fetched(coordinates)
    assert list(cache_folder().rglob("*.jar")) == []


def test_a_checksum_of_the_users(repository: Path) -> None:
    right = publish(repository, "org.example:library:1.0", b"right")
    [path] = fetched(f"org.example:library:1.0@sha256:{right.upper()}")
    assert fetched("org.example:library:1.0") == [path], "it may have none"
    # Changed where it lies.
    path.write_bytes(b"wrong")
    with pytest.raises(PlatformError, match="expected " + right):
        fetched(f"org.example:library:1.0@sha256:{right}")
    assert not path.exists()
    assert fetched(f"org.example:library:1.0@sha256:{right}") == [path]
    assert path.read_bytes() == b"right"


def test_a_pinned_jar_cannot_be_unpinned(repository: Path) -> None:
    other = publish(repository, SQLITE_JDBC, b"something else")
    with pytest.raises(PlatformError, match="has the SHA-256"):
        fetched(f"{SQLITE_JDBC}@sha256:{other}")


@pytest.mark.parametrize("checksum", ["", "12ab", "x" * 64])
def test_a_checksum_is_64_digits(checksum: str) -> None:
    with pytest.raises(UserError, match="64 hexadecimal digits"):
        Jar.parse(f"{SQLITE_JDBC}@sha256:{checksum}")


def test_everything_that_we_ask_for_is_pinned() -> None:
    """What it needs as well; after a new version, this names what is missing."""
    jars = fetched(iceberg_runtime(pyspark.__version__), SQLITE_JDBC, POSTGRES_JDBC)
    assert {coordinates_of(path) for path in jars} <= CHECKSUMS.keys()


def test_an_address_with_a_password_is_private(repository: Path) -> None:
    publish(repository, "g:a:1", b"x")
    fetched("g:a:1")
    for name in ("ivy-settings.xml", "ivy.log"):
        assert stat.S_IMODE((cache_folder() / name).stat().st_mode) == 0o600
