"""The store on each database; every test gets an empty one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno.store import Store
from tests.services.postgres import Postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes an empty database whenever it is called."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.db"
    server: Postgres = request.getfixturevalue("postgres")
    return lambda: server.url(server.create_database())


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    return new_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store
