"""Where a statement was executed, and from where that can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.errors import PlatformError
from dalsegno.settings import Settings, load
from dalsegno.steps.spark import executors
from tests.steps import support


def settings_with(folder: Path, store: str) -> Settings:
    return load(working_folder=folder, environment={"DALSEGNO_STORE": store})


def test_another_machine_cannot_be_asked_what_its_spark_does(tmp_path: Path) -> None:
    """Each machine has a Spark in a folder of the same name: that none runs here says nothing of the other."""
    shared = settings_with(tmp_path, "postgresql://nobody@nowhere/none")
    work = support.attempt(tmp_path, settings=shared, machine="one pid:[1]")
    executor = executors.executor_of(work)
    executors.ensure_gone(shared, executor, "one pid:[1]")
    with pytest.raises(PlatformError, match="machine 'one'") as refused:
        executors.ensure_gone(shared, executor, "two pid:[1]")
    assert "dalsegno resolve" in (refused.value.hint or "")
    # A file is used on one machine only, which may be called otherwise tomorrow.
    alone = settings_with(tmp_path, f"sqlite:///{tmp_path}/store.db")
    executors.ensure_gone(alone, executor, "two pid:[1]")
