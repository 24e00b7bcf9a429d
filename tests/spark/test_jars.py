"""The table of supported pairs, and jars by coordinates."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.cache import cache_folder
from dalsegno.spark.jars import SQLITE_JDBC, Jar, fetch, iceberg_runtime, ivy_module
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
