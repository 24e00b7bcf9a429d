"""The SQL of the pages that is run in a session of Spark, with NULLs wherever they may be, and groups that vanish.

Each round is captured and written by all recipes of a page, compared with a full computation, and committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dalsegno import Lake
from dalsegno.iceberg.catalogs import spark_configuration
from dalsegno.model.captures import CaptureState
from dalsegno.settings import load
from dalsegno.spark.statements import statements
from tests.examples.hostile import comparison, spelled_out
from tests.examples.recipes import AGAIN, BY_DAY, BY_TITLE, CHANGES, FIRST, GONE, LATE, TABLES, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COPY = {"lake.media.playback_daily": "SELECT * FROM lake.media.playback"}
FULL = {**COPY, **BY_TITLE, **BY_DAY}
TARGETS = [target.removeprefix("lake.media.") for target in FULL]


@pytest.mark.parametrize(
    ("page", "rounds"),
    [
        ("read-a-change-table.md", [FIRST, f"{LATE}; {AGAIN}", AGAIN]),
        # The copy needs keys that are unique, as the page says.
        ("capture-every-change.md", [FIRST, f"{CHANGES}; {LATE}", GONE]),
    ],
)
def test_recipes(
    page: str, rounds: list[str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    session = spark.newSession()
    for catalog in load().catalogs.values():
        for key, value in spark_configuration(catalog).items():
            session.conf.set(key, value)

    def execute(text: str) -> None:
        for statement in statements(spelled_out(text)):
            session.sql(statement)

    recipes = blocks(page, *(f"INTO lake.media.{name}" for name in TARGETS))
    with Lake.open() as lake:
        lake.catalog("lake").pyiceberg.create_namespace("media")
    execute(TABLES)
    for number, text in enumerate(rounds, 1):
        execute(text)
        for recipe in recipes:
            exec(compile(recipe, page, "exec"), {"spark": session})
        assert not [row.asDict() for row in session.sql(comparison(FULL)).collect()], f"after round {number}"
        with Lake.open() as lake:
            for capture in lake.store.captures():
                if capture.state is CaptureState.READY:
                    lake.commit(capture.id)
