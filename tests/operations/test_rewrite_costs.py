"""``dalsegno rewrite``: what each strategy would cost now, by metadata alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.cli.rewrite_text import rewritten
from dalsegno.errors import UserError
from dalsegno.operations.facade import Operations
from dalsegno.settings import CatalogSettings
from tests.callers import admin

SCHEMA = pa.schema([("id", pa.int64()), ("seconds", pa.int64()), ("day", pa.date32())])
QUERY = "SELECT day, count(seconds) AS seconds, count(*) AS n FROM lake.db.plays GROUP BY day"


class Media:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.operations = Operations(None, settings, admin())

    def tables(self) -> Any:
        return self.operations.tables._context.lake.catalog("lake").pyiceberg

    def play(self, *days: int) -> None:
        rows = [date(2026, 1, day) for day in days]
        columns = [list(range(len(rows))), list(range(len(rows))), rows]
        self.tables().load_table("db.plays").append(pa.table(columns, schema=SCHEMA))


@pytest.fixture
def media(tmp_path: Path) -> Iterator[Media]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    made = Media(settings)
    made.tables().create_namespace("db")
    with made.tables().create_table("db.plays", SCHEMA).update_spec() as spec:
        spec.add_identity("day")
    yield made
    made.operations.close()


def target(media: Media) -> None:
    schema = pa.schema([("day", pa.date32()), ("seconds", pa.int64()), ("n", pa.int64())])
    with media.tables().create_table("db.target", schema).update_spec() as spec:
        spec.add_identity("day")
    rows = [[date(2026, 1, day) for day in range(1, 6)], [1] * 5, [1] * 5]
    media.tables().load_table("db.target").append(pa.table(rows, schema=schema))


def test_the_last_snapshot_is_an_example_of_a_change(media: Media) -> None:
    media.play(1, 2, 3, 4, 5)
    media.play(2, 9)
    found = media.operations.tables.rewrite(QUERY, "lake.db.target")
    costs = found.costs
    assert not costs.is_since_checkpoint
    [change] = costs.changes
    assert (change.changed, change.rows) == ("appended", 2)
    read = {each.name: each.bytes_read for each in costs.strategies}
    assert read["delta"] < read["touched partitions"] < read["full"]
    assert {each.bytes_written for each in costs.strategies} == {None}
    text = rewritten(found)
    assert "for the last snapshot of each source" in text
    assert "2 rows added" in text


def test_what_changed_since_the_last_run_counts(media: Media) -> None:
    media.play(1, 2, 3, 4, 5)
    target(media)
    with Lake.open(media.settings) as lake:
        lake.set_checkpoint("lake.db.plays", consumer="lake.db.target", to="latest")
    costs = media.operations.tables.rewrite(QUERY, "lake.db.target").costs
    assert (costs.is_since_checkpoint, costs.unknown_because) == (True, "No row of a source has changed.")
    for day in (2, 3):
        media.play(day)
    media.tables().load_table("db.plays").delete("day == '2026-01-05'")
    costs = media.operations.tables.rewrite(QUERY, "lake.db.target").costs
    assert costs.is_since_checkpoint
    [change] = costs.changes
    assert (change.changed, change.rows) == ("any", 3)
    found = {each.name: each for each in costs.strategies}
    assert found["touched partitions"].bytes_read < found["full"].bytes_read
    assert 0 < (found["touched partitions"].bytes_written or 0) < (found["full"].bytes_written or 0)
    assert found["full"].seconds is None


def test_tables_without_rows(media: Media) -> None:
    costs = media.operations.tables.rewrite(QUERY, "lake.db.target").costs
    assert costs.unknown_because == "No row of a source has changed."
    media.play(1)
    costs = media.operations.tables.rewrite(QUERY, "lake.db.target").costs
    assert costs.changes[0].after_snapshot is None
    assert costs.strategies


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT day,\n  count(*) n FROM lake.db.plays GROUP BY day HAVING (", "line 2"),
        ("SELECT day\nFROM lake.db.plays WHERE", "line 2"),
        ("SELECT a FROM lake.db.plays JOIN ON", "line 1"),
        ("SELECT 'open FROM lake.db.plays", "line 1, column 8"),
        ("SELECT day FROM lake.db.plays\nWHERE day = 'it\\'", "line 2, column 13"),
        ("SELECT day FROM lake.db.plays WHERE `day", "line 1, column 37"),
        ("DELETE FROM lake.db.plays", "is not a SELECT"),
        ("", "is empty"),
    ],
)
def test_a_query_that_cannot_be_parsed_is_refused(media: Media, query: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        media.operations.tables.rewrite(query, "lake.db.target")


def test_checks_of_facts_cost_as_well(media: Media) -> None:
    media.play(1, 2, 3, 4, 5)
    media.play(2, 9)
    given = {"facts": ["unique id in lake.db.plays", "trusted id -> day"]}
    found = media.operations.tables.rewrite(QUERY, "lake.db.target", **given)
    [check] = found.costs.checks
    full = next(each.bytes_read for each in found.costs.strategies if each.name == "full")
    # One of three columns of the table, and what was added to it.
    assert full // 3 < check.bytes_read < full
    assert f"check of {check.fact}: reads" in rewritten(found)
