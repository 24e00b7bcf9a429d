"""Python steps, and `dalsegno.job` as their code sees it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dalsegno.model.outcomes import FailureKind
from dalsegno.steps.python import PythonRunner
from tests.steps.support import attempt, failure, log_text, outputs

PYTHON = PythonRunner()

SCRIPT = """
import sys
from dalsegno import job
print(sys.executable, job.key(), job.attempt(), sys.argv[1:])
job.output(doubled=2 * job.param("number"), known=sorted(job.params()), day=job.param("day"))
"""


def test_a_script(tmp_path: Path) -> None:
    params = {"python": {"script": SCRIPT, "args": ["a b"]}, "number": 21}
    work = attempt(tmp_path, params, references={"day": "monday"})
    assert outputs(PYTHON, work) == {"doubled": 42, "known": ["day", "number"], "day": "monday"}
    assert log_text(work) == f"{sys.executable} {work.key} 1 ['a b']\n"
    assert not (work.folder / "params.json").exists()
    assert not (work.folder / "script.py").exists()


def test_a_file_and_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "load.py").write_text("import sys\nprint(__name__, sys.argv[1])")
    for what in ({"file": "package/load.py"}, {"module": "package.load"}):
        work = attempt(tmp_path, {"python": {**what, "args": [7]}})
        outputs(PYTHON, work)
        assert log_text(work) == "__main__ 7\n"


def test_a_script_can_import_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text("euro = 2")
    outputs(PYTHON, attempt(tmp_path, {"python": {"script": "import rates; assert rates.euro == 2"}}))


def test_only_the_standard_library_is_imported(tmp_path: Path) -> None:
    """The code of a step may run where nothing else is installed."""
    script = """
import sys
before = set(sys.modules)
from dalsegno import job
new = set(sys.modules) - before
print({name.partition(".")[0] for name in new} - sys.stdlib_module_names, end=" ")
print({".".join(name.split(".")[:2]) for name in new if name.startswith("dalsegno.")})
"""
    work = attempt(tmp_path, {"python": {"script": script}})
    outputs(PYTHON, work)
    assert log_text(work) == "{'dalsegno'} {'dalsegno.job'}\n"


def test_an_exception_is_told(tmp_path: Path) -> None:
    failed = failure(PYTHON, attempt(tmp_path, {"python": {"script": "raise SystemError('no such rate')"}}))
    assert failed.kind is FailureKind.USER
    assert failed.message.endswith("SystemError: no such rate")


def test_values_are_not_pasted_into_code(tmp_path: Path) -> None:
    params = {"python": {"script": "print('${day}', '${other}')"}}
    failed = failure(PYTHON, attempt(tmp_path, params, references={"day": "');import os#"}))
    assert failed.kind is FailureKind.FATAL
    assert failed.hint == "Write: from dalsegno import job; job.param('day')"
    outputs(PYTHON, attempt(tmp_path, params))


@pytest.mark.parametrize("module", ["-c", "os;print(1)", "../x", "a b"])
def test_modules_have_names(tmp_path: Path, module: str) -> None:
    assert "expected a module's name" in failure(PYTHON, attempt(tmp_path, {"python": {"module": module}})).message
