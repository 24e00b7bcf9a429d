"""Shells complete names, from the store alone, and say nothing whatever goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from pyiceberg.table import Table

from dalsegno.store.sqlite_driver import sqlite
from tests.acceptance.conftest import Commands
from tests.acceptance.processes import command, done

NIGHTLY = """
Workflow:
  id: nightly.report
  jobs:
    - job: {id: extract, type: NoOp}
    - foreach:
        id: each_day
        ranges: {i: {from: 0, to: 2}}
        jobs: [{job: {id: load, type: NoOp}}]
        dag: sequential
  dag: sequential
"""
_TYPED = """
{script}
COMP_WORDS=({words} "$1")
COMP_CWORD={place}
_dalsegno_completion {dalsegno}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@cache
def completion_script() -> str:
    return done(Path(), "completion", "bash").stdout


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    *before, last = words
    typed = {"words": " ".join(("dalsegno", *before)), "place": len(words)}
    script = _TYPED.format(script=completion_script(), dalsegno=command(), **typed)
    offered = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", last], cwd=folder, capture_output=True, text=True, check=True
    )
    assert offered.stderr == ""
    return offered.stdout.split()


@pytest.fixture
def project(run: Commands, table: Table) -> Path:
    """A workflow with two runs, a pending capture and a committed one, a job template and a limit."""
    (run.folder / "w.yaml").write_text(NIGHTLY)
    for _ in range(2):
        assert run("run", "w.yaml").code == 0
    run("commit", run.json("capture", "db.t", "--consumer", "daily")["capture"])
    run("capture", "db.t", "--consumer", "weekly")
    run("limits", "set", "warehouse", "2")
    run("signal", "announce", "rates/loaded")
    return run.folder


def test_names_in_bash(project: Path, run: Commands) -> None:
    [pending] = run.json("captures")
    assert completed(project, "sho") == ["show"]
    assert completed(project, "show", "ni") == ["nightly.report", "nightly.report/2", "nightly.report/1"]
    assert completed(project, "show", "nightly.report/1") == ["nightly.report/1"]
    assert completed(project, "run", "") == ["nightly.report"]
    assert completed(project, "logs", "nightly.report/1", "") == ["extract", "each_day", "load"]
    assert completed(project, "breakpoints", "set", "nightly.report", "e") == ["extract", "each_day"]
    assert completed(project, "commit", "") == [pending["id"]]
    assert completed(project, "plan", "d") == ["db.t"]
    assert completed(project, "plan", "lake.") == ["lake.db.t"]
    assert completed(project, "captures", "--consumer", "") == ["daily", "weekly"]
    assert completed(project, "limits", "clear", "") == ["warehouse"]
    assert completed(project, "signal", "list", "r") == ["rates/loaded"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_names_for_other_shells(project: Path, shell: str) -> None:
    asked = {
        "_DALSEGNO_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "dalsegno show nightly.report/",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    offered = subprocess.run(
        [command()], cwd=project, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert "nightly.report/2" in offered.stdout and "nightly.report/1" in offered.stdout
    assert offered.stderr == ""


def test_nothing_is_made_and_nothing_is_said(tmp_path: Path) -> None:
    assert completed(tmp_path, "show", "x") == []
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "dalsegno.toml").write_text("this is not TOML")
    assert completed(tmp_path, "show", "x") == []
    (tmp_path / "dalsegno.toml").write_text('store = "postgresql://nobody@127.0.0.1:1/none"\n')
    assert completed(tmp_path, "show", "x") == []
    (tmp_path / "dalsegno.toml").write_text('store = "sqlite:///broken.db"\n')
    (tmp_path / "broken.db").write_bytes(b"not a database" * 100)
    assert completed(tmp_path, "show", "x") == []


def test_names_that_a_shell_would_act_on_are_not_offered(project: Path) -> None:
    bad = ["$(touch made)", "`touch made`", "a b", "a'b", 'a\\"; touch made; "', "*", "a\nb", "a;b", "~", "-rf"]
    connection = sqlite.connect(project / ".dalsegno" / "dalsegno.db")
    for number, name in enumerate(bad):
        query = "INSERT INTO signals (name, params, payload, source, announced_at) VALUES (?, '{}', '{}', '{}', ?)"
        connection.execute(query, (name, number))
    connection.commit()
    connection.close()
    assert set(completed(project, "signal", "list", "")) == {"rates/loaded"}
    assert not (project / "made").exists()


def test_iceberg_is_not_loaded(project: Path) -> None:
    code = (
        "import sys; from dalsegno.operations.known_names import KnownNames; print(KnownNames().tables(''));"
        "print([name for name in ('pyiceberg', 'sqlalchemy', 'pyarrow') if name in sys.modules])"
    )
    asked = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert asked.stdout == "['db.t']\n[]\n"
