"""A real notebook, by real papermill."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import FailureKind
from dalsegno.steps import notebook as module
from dalsegno.steps.notebook import NotebookRunner
from tests.steps.support import attempt, commands_with, failure, log_text, outputs, until

pytest.importorskip("papermill", reason="needs the extra `notebook`")
pytest.importorskip("ipykernel", reason="needs the extra `notebook`")

NOTEBOOK = NotebookRunner()


def save(root: Path, *cells: str) -> None:
    """A notebook whose first cell holds the defaults of its parameters."""
    code: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
        for n, text in enumerate(cells)
    ]
    code[0]["metadata"] = {"tags": ["parameters"]}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (root / "report.ipynb").write_text(
        json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )


def test_a_notebook(tmp_path: Path) -> None:
    save(
        tmp_path, "day = 'none'", "from dalsegno import job\nprint('it is', day)\njob.output(day=day, n=job.param('n'))"
    )
    block = {
        "input_path": "report.ipynb",
        "output_path": "out/done.ipynb",
        "parameters": {"day": "mon'day\n", "x": [1]},
    }
    work = attempt(tmp_path, {"notebook": block, "n": 3})
    assert outputs(NOTEBOOK, work) == {"day": "mon'day\n", "n": 3}
    assert "it is mon'day" in log_text(work)
    assert "plain text" not in log_text(work)
    assert "it is mon'day" in (tmp_path / "out" / "done.ipynb").read_text()


def test_a_failing_cell(tmp_path: Path) -> None:
    save(tmp_path, "x = 1", "print('partial')", "raise ValueError('no rate')")
    work = attempt(tmp_path, {"notebook": {"input_path": "report.ipynb"}})
    failed = failure(NOTEBOOK, work)
    assert failed.kind is FailureKind.USER
    assert "ValueError: no rate" in failed.message
    assert "partial" in (work.folder / "notebook.ipynb").read_text()


def test_the_kernel_ends_with_the_step(tmp_path: Path) -> None:
    save(tmp_path, "x = 1", "import time; print('waiting'); time.sleep(600)")
    work = attempt(tmp_path, {"notebook": {"input_path": "report.ipynb"}}, deadline=utc_now() + timedelta(seconds=60))
    NOTEBOOK.start(work)
    until(lambda: "waiting" in log_text(work))
    mine = f"DALSEGNO_KEY={work.key}".encode()
    kernels = [pid for pid in commands_with("ipykernel_launcher") if mine in Path(f"/proc/{pid}/environ").read_bytes()]
    assert kernels
    folders = {Path(word).parent for pid in kernels for word in command_words(pid) if word.endswith(".json")}
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700]
    NOTEBOOK.cancel(work)
    assert not any(folder.exists() for folder in folders)
    assert not set(kernels) & set(commands_with("ipykernel_launcher"))


def command_words(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_a_kernel_that_is_killed(tmp_path: Path) -> None:
    """As for its memory: papermill alone has been seen to wait for ever."""
    save(tmp_path, "x = 1", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    failed = failure(NOTEBOOK, attempt(tmp_path, {"notebook": {"input_path": "report.ipynb"}}))
    assert "DeadKernelError" in failed.message


def test_secrets_are_not_saved_in_notebooks(tmp_path: Path) -> None:
    save(tmp_path, "x = 1")
    block = {"input_path": "report.ipynb", "parameters": {"password": "hunter2"}}
    assert "would be saved" in failure(NOTEBOOK, attempt(tmp_path, {"notebook": block}, secrets=("hunter2",))).message


@pytest.mark.parametrize("field", ["input_path", "output_path"])
def test_notebooks_stay_inside(tmp_path: Path, field: str) -> None:
    save(tmp_path, "x = 1")
    block = {"input_path": "report.ipynb"} | {field: "../../report.ipynb"}
    assert "is outside of" in failure(NOTEBOOK, attempt(tmp_path, {"notebook": block})).message


def test_without_papermill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, "x = 1")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    failed = failure(NOTEBOOK, attempt(tmp_path, {"notebook": {"input_path": "report.ipynb"}}))
    assert (failed.kind, failed.hint) == (FailureKind.FATAL, "pip install 'dalsegno[notebook]'")
    assert os.linesep not in failed.message
