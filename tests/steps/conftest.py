"""What tests of Spark steps share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dalsegno.settings import Settings
from dalsegno.steps.contract import Work
from tests.conftest import warm_spark
from tests.steps.spark_support import Worker


@pytest.fixture(scope="package")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    """Settings with a warm Spark server, which tests share; each has tables of its own names."""
    with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
        yield loaded


@pytest.fixture
def worker(settings: Settings, tmp_path: Path) -> Worker:
    """Makes attempts; each has a key and a folder of its own."""
    numbers = iter(range(1, 100))

    def work(script: str | None = None, **given: Any) -> Work:
        attempt = next(numbers)
        folder = tmp_path / f"attempt-{attempt}"
        folder.mkdir()
        work_fields = {name: given.pop(name) for name in ("deadline", "filled", "secrets") if name in given}
        params = {"spark": {"script": script, **given} if script else given}
        return Work("w", 1, "s", attempt, f"{tmp_path.name}.{attempt}", params, folder, settings, **work_fields)

    return work
