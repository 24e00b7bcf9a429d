"""Which runner runs what, and how a type of one's own is added."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.spec.step_types import STEP_TYPES
from dalsegno.steps.contract import WithoutJob
from dalsegno.steps.registry import runner

CODE = """
from dalsegno.steps.processes import ProcessRunner, command_job

class EchoRunner(ProcessRunner):
    name = "Echo"

    def job(self, work):
        return command_job(work, "echo", ["echo", work.params["echo"]["text"]])

class Half:
    name = "Half"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that somebody else wrote, as pip leaves it."""
    (tmp_path / "echoing.py").write_text(CODE)
    info = tmp_path / "echoing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echoing\nVersion: 1.0\n")
    points = ["Echo = echoing:EchoRunner", "Half = echoing:Half", "Gone = echoing:Gone", "Shell = echoing:EchoRunner"]
    (info / "entry_points.txt").write_text("\n".join(["[dalsegno.steps]", *points, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("name", sorted(each.name for each in STEP_TYPES.values() if each.runner))
def test_built_in(name: str) -> None:
    found = runner(name.upper())
    assert found.name.lower() == name.lower()
    assert isinstance(found.raw, frozenset)


@pytest.mark.usefixtures("installed")
def test_a_type_of_ones_own(tmp_path: Path) -> None:
    from tests.steps.support import attempt, log_text, outputs

    work = attempt(tmp_path, {"echo": {"text": "hello"}})
    echo = runner("echo")
    assert not isinstance(echo, WithoutJob)
    outputs(echo, work)
    assert log_text(work) == "hello\n"


@pytest.mark.usefixtures("installed")
def test_what_cannot_be_added() -> None:
    assert type(runner("shell")).__module__ == "dalsegno.steps.shell"
    with pytest.raises(UserError, match="has no start, poll, cancel, raw"):
        runner("Half")
    with pytest.raises(PlatformError, match="The step type Gone of echoing:Gone cannot be loaded"):
        runner("Gone")


def test_unknown_types() -> None:
    with pytest.raises(UnknownName, match=r"There is no step type 'Shel'\. Did you mean 'shell'\?"):
        runner("Shel")
    with pytest.raises(UnknownName, match="Known are: container, http"):
        runner("xyzzy")
    with pytest.raises(UserError, match=r"not run here\. Use type Container"):
        runner("Kubernetes")


def test_nothing_is_imported_too_early() -> None:
    import subprocess

    code = (
        "import sys; from dalsegno.steps.registry import runner; runner('shell'); "
        "print([m for m in sys.modules if m.startswith('dalsegno.steps.')"
        " and m.rpartition('.')[2] in {'sql', 'http', 'container', 'java', 'notebook'}], 'sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"
