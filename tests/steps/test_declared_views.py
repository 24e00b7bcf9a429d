"""Views and pinned dimensions of declared tables, as a real catalog has them. No Spark: they are found by metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.errors import HistoryLost, UnknownName, UserError
from dalsegno.model.tables import TableName
from dalsegno.settings import CatalogSettings
from dalsegno.steps.declared.dimensions import pinned_at, pinned_names
from dalsegno.steps.declared.params import Dimension, dimensions_of
from dalsegno.steps.declared.sources import sources_of
from dalsegno.steps.declared.views import over_tables

ORDERS, CUSTOMERS = (TableName("lake", ("db",), name) for name in ("orders", "customers"))
JOINED = "SELECT o.id FROM lake.db.orders o JOIN lake.db.customers c ON o.id = c.id"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as made:
        tables = made.catalog("lake").pyiceberg
        tables.create_namespace("db")
        for name in (ORDERS, CUSTOMERS):
            tables.create_table(f"db.{name.name}", pa.schema([("id", pa.int64())]))
        yield made


def make_view(lake: Lake, name: str, sql: str, dialect: str = "spark") -> None:
    version = {
        **{"version-id": 1, "schema-id": 0, "timestamp-ms": 0, "summary": {}, "default-namespace": ["db"]},
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    folder = f"{lake.settings.catalog('lake').warehouse}/db/{name}"
    metadata = {
        **{"view-uuid": "0d4b0d5c-0000-4000-8000-000000000000", "format-version": 1, "location": folder},
        **{"schemas": [schema], "current-version-id": 1, "versions": [version], "version-log": [], "properties": {}},
    }
    assert lake.catalog("lake").create_view(TableName("lake", ("db",), name), metadata, f"{folder}/1.metadata.json")


def test_a_view_is_replaced_by_its_tables(lake: Lake) -> None:
    make_view(lake, "bought", "SELECT orders.id FROM orders JOIN customers")
    query = over_tables(lake, "SELECT id FROM lake.db.bought")
    assert query == (
        "SELECT id FROM (SELECT orders.id FROM `lake`.`db`.`orders` JOIN `lake`.`db`.`customers`) `bought`"
    )
    assert [table.name for table in sources_of(lake, query).values()] == [ORDERS, CUSTOMERS]


def test_a_view_of_another_dialect(lake: Lake) -> None:
    make_view(lake, "theirs", "SELECT id FROM orders", "trino")
    with pytest.raises(UserError, match=r"lake\.db\.theirs has no SQL for Spark, only for trino"):
        over_tables(lake, "SELECT id FROM lake.db.theirs")


def test_a_view_that_reads_what_is_gone(lake: Lake) -> None:
    make_view(lake, "stale", "SELECT id FROM gone")
    with pytest.raises(UnknownName, match="gone"):
        sources_of(lake, over_tables(lake, "SELECT id FROM lake.db.stale"))


def test_which_sources_are_pinned(lake: Lake) -> None:
    sources = [ORDERS, CUSTOMERS]
    assert pinned_names(lake.name, Dimension.FOLLOW, JOINED, sources) == set()
    assert pinned_names(lake.name, Dimension.PINNED, JOINED, sources) == {CUSTOMERS}
    assert pinned_names(lake.name, dimensions_of({"db.orders": "pinned"}), JOINED, sources) == {ORDERS}
    assert pinned_names(lake.name, dimensions_of({"db.orders": "follow"}), JOINED, sources) == set()
    union = "SELECT id FROM lake.db.orders UNION ALL SELECT id FROM lake.db.customers"
    for given, query, message in [
        (Dimension.PINNED, union, "does not say which table is followed"),
        (dimensions_of({"db.order": "pinned"}), JOINED, r"the query does not read lake\.db\.order"),
        (dimensions_of(dict.fromkeys(["db.orders", "db.customers"], "pinned")), JOINED, "All sources are pinned"),
    ]:
        with pytest.raises(UserError, match=message):
            pinned_names(lake.name, given, query, sources)
    with pytest.raises(UserError, match="dimensions is 'frozen', expected follow or pinned"):
        dimensions_of("frozen")


def test_what_a_dimension_is_pinned_to(lake: Lake) -> None:
    tables = lake.catalog("lake").pyiceberg
    rows = pa.table({"id": [1]})
    tables.load_table("db.customers").append(rows)
    with pytest.raises(UserError, match="no full refresh has read it yet"):
        pinned_at(lake, "c", CUSTOMERS, lake.load(CUSTOMERS), "w")
    lake.set_checkpoint(str(CUSTOMERS), consumer="c", to="latest")
    pinned = pinned_at(lake, "c", CUSTOMERS, lake.load(CUSTOMERS), "w")
    assert not pinned.is_changed
    tables.load_table("db.customers").append(rows)
    after = pinned_at(lake, "c", CUSTOMERS, lake.load(CUSTOMERS), "w")
    assert (after.snapshot_id, after.is_changed) == (pinned.snapshot_id, True)
    tables.drop_table("db.customers")
    tables.create_table("db.customers", rows.schema).append(rows)
    with pytest.raises(HistoryLost, match="which it no longer has"):
        pinned_at(lake, "c", CUSTOMERS, lake.load(CUSTOMERS), "w")
