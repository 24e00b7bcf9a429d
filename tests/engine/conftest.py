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
    made.orchestrator.close()


@pytest.fixture(scope="session")
def engine_database(postgres: Postgres) -> str:
    return postgres.url(postgres.create_database())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def either_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """The same on SQLite and on PostgreSQL."""
    url = None
    if request.param == "postgres":
        database: str = request.getfixturevalue("engine_database")
        schema = f"s{uuid4().hex}"
        with psycopg.connect(database.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        url = f"{database}?options=-csearch_path%3D{schema}"
    made = Place.at(tmp_path, url)
    yield made
    made.orchestrator.close()
