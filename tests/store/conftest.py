"""The store on each database; every test gets an empty one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dalsegno.store import Store
from tests.services.postgres import Postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(server.create_database())


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store
