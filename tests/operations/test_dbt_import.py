"""Compiled projects of dbt become models; the manifests are real ones, see tests/operations/dbt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dalsegno import Settings
from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.operations.dbt.importing import import_manifest
from dalsegno.operations.dbt.manifest import Relation
from dalsegno.operations.dbt.sql import spark_sql
from dalsegno.operations.models.graph import ModelGraph
from dalsegno.operations.models.model_files import read_models
from dalsegno.settings import CatalogSettings

MANIFESTS = Path(__file__).parent / "dbt"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    catalogs = {name: CatalogSettings(name, uri=f"sqlite:///{tmp_path}/{name}.db") for name in ("lake", "other")}
    return Settings(root=tmp_path, catalogs=catalogs)


@pytest.mark.parametrize("name", ["manifest.json", "manifest_spark.json"])
def test_a_project_becomes_models(tmp_path: Path, settings: Settings, name: str) -> None:
    found = import_manifest(MANIFESTS / name, tmp_path / "models", settings)
    assert {each.name.rpartition(".")[2]: str(each.target) for each in found.models} == {
        "customers": "lake.shop.customers",
        "daily_revenue": "lake.shop.daily_revenue",
        "stg_customers": "lake.shop.stg_customers",
        "stg_orders": "lake.shop.stg_orders",
    }
    left_out = {each.name.rpartition(".")[2]: each.kind for each in found.left_out}
    assert left_out.pop("scores", "python model") == "python model"
    assert left_out == {
        "3 tests": "test",
        "paid_orders": "ephemeral model",
        "orders_snapshot": "snapshot",
        "raw_payments": "seed",
    }
    models = ModelGraph.of(read_models(tmp_path / "models", settings))
    sources = {model.path: sorted(map(str, model.sources)) for model in models.models}
    assert sources == {
        "staging/stg_orders": ["lake.raw.orders"],
        "staging/stg_customers": ["lake.raw.customers"],
        "marts/daily_revenue": ["lake.shop.stg_orders"],
        "marts/customers": ["lake.shop.stg_customers", "lake.shop.stg_orders"],
    }
    headers = {model.path: model.header.values for model in models.models}
    assert headers["marts/daily_revenue"]["keys"] == headers["marts/daily_revenue"]["partitioned_by"] == ["order_date"]
    assert headers["marts/customers"]["tags"] == ["daily"]


def test_what_is_compiled_for_an_increment_is_refused(tmp_path: Path, settings: Settings) -> None:
    found = import_manifest(MANIFESTS / "manifest_incremental.json", tmp_path, settings)
    assert [each.name for each in found.models] == ["model.jaffle.stg_orders"]
    [refused] = found.left_out
    assert refused.name == "model.jaffle.daily_revenue"
    assert refused.reason.endswith("dbt compile --full-refresh")


def test_files_are_never_overwritten(tmp_path: Path, settings: Settings) -> None:
    manifest = MANIFESTS / "manifest.json"
    import_manifest(manifest, tmp_path, settings)
    assert not any(each.is_written for each in import_manifest(manifest, tmp_path, settings).models)
    mine = tmp_path / "marts" / "customers.sql"
    (tmp_path / "staging" / "stg_orders.sql").unlink()
    mine.write_text("SELECT 1")
    with pytest.raises(UserError, match=r"1 files are there already, and differ: .*customers.sql. Nothing was written"):
        import_manifest(manifest, tmp_path, settings)
    assert mine.read_text() == "SELECT 1" and not (tmp_path / "staging" / "stg_orders.sql").exists()
    found = import_manifest(manifest, tmp_path, settings, is_forced=True)
    assert sum(each.is_written for each in found.models) == 2
    assert mine.read_text() != "SELECT 1"


def test_databases_are_catalogs_where_there_are_such(tmp_path: Path, settings: Settings) -> None:
    """Otherwise all is in one catalog."""

    def moved(data: dict[str, Any]) -> None:
        for node in (*data["nodes"].values(), *data["sources"].values()):
            if node.get("relation_name"):
                node |= {"database": "other", "relation_name": node["relation_name"].replace("jaffle", "other", 1)}
            for name in ("compiled_code",) if node.get("compiled_code") else ():
                node[name] = node[name].replace('"jaffle".', '"other".')

    file = changed(tmp_path, moved)
    assert str(import_manifest(file, tmp_path / "a", settings).models[0].target) == "other.shop.customers"
    found = import_manifest(file, tmp_path / "b", settings, catalog="lake").models[0]
    assert str(found.target) == "lake.shop.customers"
    assert "lake.shop.stg_orders" in Path(found.file).read_text()
    with pytest.raises(UserError, match="There is no catalog 'lak'"):
        import_manifest(file, tmp_path / "c", settings, catalog="lak")


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    data = json.loads((MANIFESTS / "manifest.json").read_text())
    change(data)
    file = folder / "changed.json"
    file.write_text(json.dumps(data))
    return file


def customers(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["nodes"]["model.jaffle.customers"]
    return found


def uncompiled(data: dict[str, Any]) -> None:
    for node in data["nodes"].values():
        node.pop("compiled_code", None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (uncompiled, "has no compiled SQL"),
        (lambda data: data.pop("nodes"), "is not a manifest of dbt"),
        (lambda data: data.pop("metadata"), "is not a manifest of dbt"),
        (
            lambda data: data["nodes"]["model.jaffle.stg_orders"].update(alias="customers"),
            "would both be lake.shop.customers",
        ),
        (lambda data: customers(data).update(path="../../customers.sql"), "leads out of the folder"),
    ],
)
def test_a_manifest_that_cannot_be_imported(
    tmp_path: Path, settings: Settings, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        import_manifest(changed(tmp_path, change), tmp_path / "models", settings)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"compiled_code": None}, "it is not compiled"),
        ({"compiled_code": "select 1 from {{ x }}"}, "its SQL"),
        ({"compiled_code": "select from where"}, "its SQL cannot be parsed as duckdb's"),
        ({"config": {"materialized": "materialized_view"}}, "it is materialized as 'materialized_view'"),
    ],
)
def test_one_model_that_cannot_be_imported(
    tmp_path: Path, settings: Settings, change: dict[str, Any], reason: str
) -> None:
    file = changed(tmp_path, lambda data: customers(data).update(change))
    found = import_manifest(file, tmp_path / "models", settings)
    assert len(found.models) == 3
    [left_out] = [each for each in found.left_out if each.name == "model.jaffle.customers"]
    assert reason in left_out.reason


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("day", ["day"]),
        (["day", "country"], ["day", "country"]),
        ({"field": "day", "data_type": "date"}, ["day"]),
        ({"field": "at", "data_type": "timestamp", "granularity": "month"}, ["months(at)"]),
        ({"field": "id", "data_type": "int64", "range": {"start": 0, "end": 9, "interval": 1}}, None),
    ],
)
def test_partitions(tmp_path: Path, settings: Settings, given: object, written: list[str] | None) -> None:
    file = changed(tmp_path, lambda data: customers(data)["config"].update(partition_by=given))
    found = import_manifest(file, tmp_path / "models", settings)
    [model] = [each for each in read_models(tmp_path / "models", settings) if each.name == "customers"]
    assert model.header.values.get("partitioned_by") == written
    assert len(found.notes) == (written is None)


def test_notes_say_what_is_lost(tmp_path: Path, settings: Settings) -> None:
    lost = {"unique_key": "a || b", "post-hook": [{"sql": "grant select"}]}
    found = import_manifest(changed(tmp_path, lambda data: customers(data)["config"].update(lost)), tmp_path, settings)
    assert len(found.notes) == 2 and "keys" not in (tmp_path / "marts" / "customers.sql").read_text()


ORDERS = Relation(None, "shop", "orders", "shop.orders")
DATED = Relation(None, "shop", "2026 orders", "`shop`.`2026 orders`")


def test_spark_sql_stays_as_it_is() -> None:
    names = {ORDERS: TableName("lake", ("shop",), "orders"), DATED: TableName("lake", ("shop",), "2026 orders")}
    sql = """select /* of shop.orders */ shop.orders.id, 'shop.orders' as t, x.shop.orders.y -- shop.orders
from shop . orders join `shop`.`2026 orders` as `shop.orders` using (id)"""
    assert spark_sql(sql, "spark", names).splitlines() == [
        sql.splitlines()[0],
        "from lake.shop.orders join lake.shop.`2026 orders` as `shop.orders` using (id)",
    ]


def test_other_dialects_are_translated() -> None:
    names = {Relation("db", "shop", "orders", '"db"."shop"."orders"'): TableName("lake", ("shop",), "orders")}
    sql = 'select "db"."shop"."orders"."order id"::varchar as "o", shop.orders.id, o.p.q from "db"."shop"."orders" o'
    found = spark_sql(sql, "duckdb", names)
    expected = "SELECT CAST(`orders`.`order id` AS STRING) AS `o`, orders.id, o.p.q FROM lake.shop.orders AS o"
    assert " ".join(found.split()) == expected
    with pytest.raises(UserError, match="its SQL is that of vertica"):
        spark_sql(sql, "vertica", names)
