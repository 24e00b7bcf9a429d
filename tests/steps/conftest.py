"""What tests of Spark steps share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalsegno.settings import Settings, load
from tests.conftest import uncaptured


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    """Settings with a warm Spark server, which is stopped with the module."""
    from dalsegno.spark.server import running_servers, stop
    from dalsegno.steps.spark_sessions import local_server

    root = tmp_path_factory.mktemp("project")
    loaded = load(working_folder=root, environment={})
    with uncaptured(pytestconfig):
        local_server(loaded).ensure()
    yield loaded
    for folder, _ in list(running_servers(root)):
        stop(folder)
