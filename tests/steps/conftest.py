"""What tests of Spark steps share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalsegno.settings import Settings
from tests.conftest import warm_spark


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    """Settings with a warm Spark server, which is stopped with the module."""
    with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
        yield loaded
