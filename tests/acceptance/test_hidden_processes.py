"""Steps cannot read the passwords that dalsegno itself was given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dalsegno.settings import ConnectionSettings, Settings
from dalsegno.spark.server import _without_spark
from dalsegno.steps.environment import inherited
from dalsegno.steps.secret_values import without_secrets
from tests.acceptance.processes import command
from tests.engine.support import SUCCEEDED, Place, shell
from tests.steps.support import attempt, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this protection")

#: Root may look into everything, unless it gives up the rights that let it: here all that there are (PR_CAPBSET_DROP).
_AS_AN_ORDINARY_USER = (
    "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, each, 0, 0, 0) for each in range(64)];"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)

#: Looks into every process that it may look into.
PRYING = """
for process in /proc/[0-9]*; do
  tr '\\0' '\\n' < $process/environ | grep -a hunter || true
done 2>/dev/null | sort -u
echo done
"""


@contextmanager
def started(folder: Path, *words: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **variables}
    wrapped = [sys.executable, "-c", _AS_AN_ORDINARY_USER, *words]
    with subprocess.Popen(wrapped, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_step_does_not_find_the_secrets_of_a_server(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    place.push("prying", shell("pry", PRYING))
    run = place.start("prying")
    secrets = {"DALSEGNO_SECRET_A": "hunter1", "PGPASSWORD": "hunter2", "OTHER": "hunter3"}
    with (
        # Whatever else runs can be looked into: the protection is not the machine's own.
        started(tmp_path, "sleep", "60", UNPROTECTED="hunter9"),
        started(tmp_path, command(), "server", "--roles", "workers", **secrets),
    ):
        until(lambda: place.operations.runs.get(run.id).status is SUCCEEDED)
    place.operations.close()
    [log] = (tmp_path / ".dalsegno" / "jobs").rglob("log")
    assert log.read_text() == "UNPROTECTED=hunter9\ndone\n"


@pytest.mark.parametrize(
    "name",
    ["DALSEGNO_STORE", "DALSEGNO_SECRET_TOKEN", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS", "MY_TOKEN", "MY_URL"],
)
def test_a_pattern_does_not_pass_secrets_on(tmp_path: Path, name: str) -> None:
    settings = Settings(
        root=tmp_path,
        store="postgresql://ada:hunter22@db/dalsegno",
        secrets={"token": "hunter33"},
        connections={"w": ConnectionSettings("w", "postgresql://ada:hunter44@db/w")},
        pass_environment=("*",),
    )
    values = {
        "DALSEGNO_STORE": settings.store,
        "DALSEGNO_SECRET_TOKEN": "a",
        "PGPASSWORD": "a",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a",
        "MY_TOKEN": "hunter33",
        "MY_URL": "postgresql://ada:hunter44@db/w",
        "HARMLESS": "yes",
    }
    work = attempt(tmp_path, settings=settings)
    assert name not in inherited(work, values)
    assert inherited(work, values)["HARMLESS"] == "yes"
    # Nor is the local Spark told, whose SQL can read its environment.
    assert name not in _without_spark(without_secrets(values, settings))


def test_a_name_passes_on_what_it_says_unless_it_is_ours(tmp_path: Path) -> None:
    settings = Settings(
        root=tmp_path, secrets={"token": "hunter33"}, pass_environment=("MY_TOKEN", "DALSEGNO_STORE", "PGPASSWORD")
    )
    values = {"MY_TOKEN": "hunter33", "DALSEGNO_STORE": "x", "PGPASSWORD": "x"}
    assert inherited(attempt(tmp_path, settings=settings), values) == {"MY_TOKEN": "hunter33"}
