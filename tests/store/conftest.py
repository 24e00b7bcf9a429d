"""The store on each database; every test gets an empty one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from dalsegno.store import Store
from tests.services.postgres import Postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes an empty database whenever it is called."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid4().hex}.db"
    database: str = request.getfixturevalue("database_url")

    def new_schema() -> str:
        name = f"s{uuid4().hex}"
        with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{database}?options=-csearch_path%3D{name}"

    return new_schema


@pytest.fixture(scope="session")
def database_url(postgres: Postgres) -> str:
    """One for all tests: a schema is much quicker to make than a database, and does as well."""
    return postgres.url(postgres.create_database())


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    return new_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store
