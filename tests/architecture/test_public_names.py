"""What users may import, and what starting the command must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import dalsegno


def test_public_names() -> None:
    assert sorted(dalsegno.__all__) == [
        "Changes",
        "DalsegnoError",
        "DataError",
        "Lake",
        "PlatformError",
        "Settings",
        "UserError",
        "__version__",
        "incremental",
    ]
    for name in dalsegno.__all__:
        assert getattr(dalsegno, name) is not None


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("--help", []),
        ("completion bash", []),
        ("runs", []),
        ("show greet", []),
        ("logs greet hello", []),
        ("versions greet", []),
        ("captures --all", []),
        ("checkpoints list", []),
        ("checkpoints history --consumer c", []),
        ("history", []),
        ("work", []),
        ("limits list", ["sqlalchemy"]),
    ],
)
def test_commands_wait_for_nothing_slow(command: str, needed: list[str], project: Path) -> None:
    """Time differs between machines; what makes it long does not."""
    assert _slow(command, project) == f"SLOW {needed}"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow that has run. The first use of a store makes its tables, which alone needs SQLAlchemy."""
    folder = tmp_path_factory.mktemp("project")
    job = "{id: hello, type: Shell, shell: {script: echo hello}}"
    (folder / "greet.yaml").write_text(f"Workflow:\n  id: greet\n  jobs:\n    - job: {job}\n")
    started = [sys.executable, "-c", "from dalsegno.cli import main; main()", "run", "greet.yaml"]
    subprocess.run(started, cwd=folder, check=True)
    return folder


def test_local_files_are_captured_without_anything_slow(tmp_path: Path) -> None:
    """It would take longer to load than the capture takes, and more memory than a server has."""
    (tmp_path / "dalsegno.toml").touch()
    with dalsegno.Lake.open(tmp_path / "dalsegno.toml") as lake:
        catalog = lake.catalog("lake").pyiceberg
        catalog.create_namespace("db")
        rows = pa.table({"id": [1, 2]})
        catalog.create_table("db.t", rows.schema).append(rows)
        # The first capture makes the namespace of change tables, by PyIceberg's catalog.
        lake.capture("db.t", consumer="first")
    needed = ["fastavro", "pyiceberg", "sqlalchemy"]
    for command in ("plan", "capture --changes before_after --partitions --range id"):
        assert _slow(f"{command} db.t --consumer c", tmp_path) == f"SLOW {needed}"


#: Modules of what is needed that nothing of this uses; each takes as long as all of ours.
NEVER = {"pyiceberg.catalog", "pyiceberg.expressions", "sqlalchemy.dialects.postgresql"}


def _slow(command: str, folder: Path) -> str:
    """What a command has loaded of what takes long to load."""
    code = (
        f"import sys; sys.argv = ['dalsegno', *{command.split()}]\n"
        "from dalsegno.cli import main\n"
        "try: main()\n"
        "except SystemExit as error: assert not error.code\n"
        "print('SLOW', sorted({m.split('.')[0] for m in sys.modules} "
        "& {'pyiceberg', 'pyarrow', 'sqlalchemy', 'alembic', 'pyspark', 'fastavro', 'rich', 'fsspec', 'yaml'}))\n"
        f"assert not {NEVER} & set(sys.modules), {NEVER} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.strip().splitlines()[-1]
