"""A place to run workflows in, on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.engine.support import Place
from tests.services.postgres import Postgres


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place.at(tmp_path)
    yield made
    made.operations.close()


@pytest.fixture(scope="session")
def engine_database(postgres: Postgres) -> str:
    return postgres.url(postgres.create_database())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def either_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """The same on SQLite and on PostgreSQL."""
    is_sqlite = request.param == "sqlite"
    made = Place.at(tmp_path, None if is_sqlite else new_schema(request.getfixturevalue("engine_database")))
    yield made
    made.operations.close()


@pytest.fixture
def postgres_place(engine_database: str, tmp_path: Path) -> Iterator[Place]:
    """Where several machines may be; for tests that are marked with ``postgres``."""
    made = Place.at(tmp_path, new_schema(engine_database))
    yield made
    made.operations.close()


def new_schema(database: str) -> str:
    """The url of an empty one."""
    schema = f"s{uuid4().hex}"
    with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{database}?options=-csearch_path%3D{schema}"
