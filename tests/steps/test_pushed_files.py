"""What was pushed of a notebook or of a file for Spark is used instead of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dalsegno.errors import UserError
from dalsegno.spec.step_types import STEP_TYPES
from dalsegno.steps.contract import Work
from dalsegno.steps.file_fields import file_fields
from dalsegno.steps.notebook import NotebookRunner
from dalsegno.steps.spark.params import Script, Sql, spark_step
from tests.steps.support import attempt


def work_with(folder: Path, block: dict[str, Any], **pushed: str) -> Work:
    """An attempt whose version has these contents; their fields have an underscore for the dot."""
    contents = {name.replace("_", ".", 1): content for name, content in pushed.items()}
    return attempt(folder, block, pushed_file=lambda field, name: contents.get(field) if "live" not in name else None)


@pytest.mark.parametrize("kind", ["file", "script"])
def test_sql_for_spark(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.sql").write_text("SELECT 2")
    work = work_with(tmp_path, {"spark": {kind: " a.sql "}}, **{f"spark_{kind}": "SELECT 1; SELECT 3"})
    # By its text, work behind a capture notices that it was edited.
    assert spark_step(work).job == Sql(("SELECT 1", "SELECT 3"), "SELECT 1; SELECT 3")
    (tmp_path / "live.sql").write_text("SELECT 2")
    assert spark_step(work_with(tmp_path, {"spark": {kind: " live.sql "}})).job == Sql(("SELECT 2",), "SELECT 2")


def test_sql_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "live.sql").write_bytes(b"SELECT '\xe9'")
    with pytest.raises(UserError, match="is not UTF-8"):
        spark_step(work_with(tmp_path, {"spark": {"file": "live.sql"}}))


def test_a_script_for_spark(tmp_path: Path) -> None:
    work = work_with(tmp_path, {"spark": {"file": "jobs/a.py"}}, spark_file="print(1)")
    script = spark_step(work).job
    assert isinstance(script, Script)
    assert script.source.path == tmp_path / "jobs/a.py"
    assert script.source.copies == {"pushed-a.py": "print(1)"}
    assert script.source.runnable(work.folder) == work.folder / "pushed-a.py"


def test_a_notebook(tmp_path: Path) -> None:
    notebook = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    work = work_with(tmp_path, {"notebook": {"input_path": "report.ipynb"}}, notebook_input_path=notebook)
    job = NotebookRunner().job(work)
    assert job.files["pushed-report.ipynb"] == notebook
    assert str(work.folder / "pushed-report.ipynb") in job.command


def test_a_long_name_and_one_like_ours(tmp_path: Path) -> None:
    for name in ("x" * 255, "log", "claim"):
        work = work_with(tmp_path, {"notebook": {"input_path": name}}, notebook_input_path="{}")
        [copy] = [each for each in NotebookRunner().job(work).files if each.startswith("pushed-")]
        assert len(os.fsencode(copy)) <= 255


def test_fields_of_files_are_those_of_their_types() -> None:
    """A field that is renamed must not be forgotten among those that name files."""
    for each in STEP_TYPES.values():
        assert each.files | each.file_references <= (each.fields or {}).keys()
    assert file_fields("Spark").stored == {"spark.file", "spark.script"}
    assert file_fields("Spark").references == {"spark.jar"}
