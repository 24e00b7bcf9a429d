"""No step may name a file that is dalsegno's own, by whatever way."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from dalsegno.errors import UserError
from dalsegno.model.outcomes import FailureKind
from dalsegno.operations.backup import back_up
from dalsegno.settings import Settings, load
from dalsegno.steps.fields import allowed_path
from dalsegno.steps.shell import ShellRunner
from dalsegno.store import Store
from tests.steps.support import attempt, failure, outputs


@pytest.fixture
def project(tmp_path: Path) -> Settings:
    """Settings, a store, its copy, a job's log and a token, with links to them."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "other.toml").write_text('store = "sqlite:///data/store.db"\njobs_folder = "work"\n')
    settings = load(root / "other.toml", environment={})
    with Store.open(settings.store) as store:
        back_up(store, root / "monday.db")
    for own in ("dalsegno.toml", "work/w/1/s/1/log", ".dalsegno/spark/x/server.json", "sub/.dalsegno/dalsegno.db"):
        (root / own).parent.mkdir(parents=True, exist_ok=True)
        (root / own).write_text("secret")
    (root / "link.sh").symlink_to(root / ".dalsegno/spark/x/server.json")
    (root / "folder").symlink_to(root / "data")
    (root / "hard.toml").hardlink_to(root / "other.toml")
    (root / "hard.db").hardlink_to(root / "data/store.db")
    (root / "run.sh").write_text("echo hello")
    return settings


OWN = [
    *(".dalsegno", ".dalsegno/spark/x/server.json", "run/../.dalsegno/x", "sub/.dalsegno/dalsegno.db"),
    *("dalsegno.toml", "other.toml", "hard.toml"),
    *("data/store.db", "data/store.db-wal", "data/store.db-shm", "monday.db", "hard.db", "folder/store.db"),
    *("work", "work/w/1/s/1/log", "link.sh"),
]


@pytest.mark.parametrize("name", OWN)
def test_own_files_are_refused(project: Settings, name: str) -> None:
    for text in (name, str(project.root / name)):
        with pytest.raises(UserError, match="dalsegno's own"):
            allowed_path(text, project, "shell.file")


@pytest.mark.parametrize("name", [".dalsegno", "dalsegno.toml", "project/.dalsegno/spark"])
def test_in_other_folders_as_well(project: Settings, name: str, tmp_path: Path) -> None:
    (tmp_path / "dalsegno.toml").touch()
    with pytest.raises(UserError, match="dalsegno's own"):
        allowed_path(str(tmp_path / name), replace(project, job_folders=(str(tmp_path),)), "shell.file")


def test_a_step_runs_neither_them_nor_among_them(project: Settings) -> None:
    def shell(**block: str) -> dict[str, dict[str, str]]:
        return {"shell": block}

    assert outputs(ShellRunner(), attempt(project.root, shell(file="run.sh"), settings=project)) == {}
    for block in (
        {"file": "other.toml"},
        {"script": "ls", "folder": ".dalsegno/spark"},
        {"script": "ls", "folder": "work"},
    ):
        failed = failure(ShellRunner(), attempt(project.root, shell(**block), settings=project))
        assert (failed.kind, "dalsegno's own" in failed.message) == (FailureKind.FATAL, True)


def test_other_databases_are_the_users(project: Settings) -> None:
    with sqlite3.connect(project.root / "mine.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    assert allowed_path("mine.db", project, "spark.files") == (project.root / "mine.db").resolve()
