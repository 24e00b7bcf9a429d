"""A small lake on the embedded defaults, and the command line to use on it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from dalsegno.settings import Settings
from tests.conftest import warm_spark

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))


@dataclass
class Done:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """Runs commands in this process, in the lake's folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str) -> Done:
        from dalsegno.cli.app import app

        self._capsys.readouterr()
        code = 0
        with _logging_restored():
            try:
                app(list(arguments), prog_name="dalsegno")
            except SystemExit as end:
                code = int(end.code or 0)
        printed = self._capsys.readouterr()
        return Done(code, printed.out, printed.err)

    def json(self, *arguments: str) -> Any:
        return self(*arguments, "--json").json()


@contextmanager
def _logging_restored() -> Iterator[None]:
    """A server decides how its whole process logs; this process has other tests to run."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Settings]:
    """Of a project with a warm Spark, which tests share; each has tables of its own names."""
    with warm_spark(tmp_path_factory.mktemp("project"), pytestconfig) as loaded:
        yield loaded


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path, capsys)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    home = tmp_path / ".dalsegno"
    home.mkdir()
    found = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=str(home / "warehouse"))
    found.create_namespace("db")
    yield found
    found.engine.dispose()


def append(table: Table, day: int, rows: int, *, branch: str = "main") -> None:
    column = pa.array(range(rows), pa.int64())
    table.append(pa.table({"id": column, "day": [date(2026, 11, day)] * rows}), branch=branch)


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    """``db.t`` with one snapshot of ten rows."""
    made = catalog.create_table("db.t", SCHEMA, partition_spec=BY_DAY)
    append(made, 1, 10)
    return made
