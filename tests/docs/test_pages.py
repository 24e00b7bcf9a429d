"""What the pages show is what happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dalsegno.iceberg.catalogs import spark_configuration
from dalsegno.settings import load
from tests.conftest import warm_spark
from tests.docs.markdown import ROOT, Remark, pages, parts
from tests.docs.running import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDS_SPARK = [page for page in pages() if "<!-- with: spark -->" in page.read_text(encoding="utf-8")]
NEEDS_SERVER = [page for page in pages() if "<!-- with: a spark server -->" in page.read_text(encoding="utf-8")]

#: What a reader does by a command that does not end, or by another tool.
UNSEEN = {"a server that has seen to it", "a compiled dbt project"}


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own, in UTC: commands print local times."""
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("name", names([page for page in pages() if page not in (*NEEDS_SPARK, *NEEDS_SERVER)]))
def test_page(name: str) -> None:
    check(name, Run())


@pytest.mark.spark
@pytest.mark.parametrize("name", names(NEEDS_SPARK))
def test_page_with_spark(name: str, spark: SparkSession) -> None:
    # A session keeps a catalog from its first use on, and every page calls its own "lake".
    session = spark.newSession()
    for catalog in load().catalogs.values():
        for key, value in spark_configuration(catalog).items():
            session.conf.set(key, value)
    check(name, Run(session))


@pytest.mark.spark
@pytest.mark.parametrize("name", names(NEEDS_SERVER))
def test_page_with_a_spark_server(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    with warm_spark(tmp_path, pytestconfig):
        check(name, Run())


@pytest.mark.parametrize("name", names([page for page in pages() if page.parent.name in {"how-to", "tutorial"}]))
def test_a_page_to_follow_shows_how_its_tables_are_made(name: str) -> None:
    remarks = [part for part in parts((ROOT / name).read_text(encoding="utf-8")) if isinstance(part, Remark)]
    assert {remark.text for remark in remarks if remark.kind == "given"} <= UNSEEN


def check(name: str, run: Run) -> None:
    for shown in run.page((ROOT / name).read_text(encoding="utf-8")):
        assert run.agrees(shown), (
            f"{name}:{shown.line}: {shown.what}\n\n"
            f"The page shows:\n{run.plain(shown.expected)}\n\nIt printed:\n{run.plain(shown.printed)}"
        )
