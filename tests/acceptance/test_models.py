"""Folders of models on real Spark: after every run, each table holds what its SELECT gives."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from uuid import uuid4

import pytest

from dalsegno.model.full_refresh import FullRefresh
from dalsegno.operations.dbt.importing import import_manifest
from dalsegno.operations.models.model_files import read_models
from dalsegno.operations.models.results import ModelResult, ModelsRun
from dalsegno.operations.service import Service
from dalsegno.settings import Settings
from tests.acceptance.test_incremental import Place
from tests.operations.test_dbt_import import MANIFESTS
from tests.steps.support import until

pytestmark = pytest.mark.spark


class Project(Place):
    """A folder of models over tables of a namespace of its own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.ns = f"m{uuid4().hex[:8]}"
        self.models = settings.root / f"models_{self.ns}"

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            file = self.models / self.ns / f"{name}.sql"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(ns=self.ns))

    def change(self, *statements: str) -> None:
        self.sql(*(each.format(ns=self.ns) for each in statements))

    def run_models(self, *select: str, full_refresh: FullRefresh | None = None) -> dict[str, ModelResult]:
        self.last: ModelsRun = self.operations.models.run(self.models, select=select, full_refresh=full_refresh)
        return {each.target.name: each for each in self.last.models}

    def statuses(self, *select: str) -> dict[str, str]:
        return {name: each.status.value for name, each in self.run_models(*select).items()}

    def check(self) -> None:
        """Each target equals its SELECT, bag for bag."""
        for model in read_models(self.models, self.settings):
            columns = ", ".join(str(row["col_name"]) for row in self.sql(f"DESCRIBE {model.target.quoted}"))
            columns = columns.partition(", # ")[0]
            net = self.sql(
                f"SELECT {columns}, sum(n) AS net FROM (SELECT {columns}, 1 AS n FROM ({model.sql}\n) UNION ALL "
                f"SELECT {columns}, -1 FROM {model.target.quoted}) GROUP BY {columns} HAVING sum(n) <> 0"
            )
            assert net == [], model.path


@pytest.fixture
def project(settings: Settings) -> Iterator[Project]:
    made = Project(settings)
    made.change(
        "CREATE NAMESPACE lake.{ns}",
        "CREATE TABLE lake.{ns}.orders (id BIGINT, customer STRING, amount BIGINT, day DATE) "
        "USING iceberg PARTITIONED BY (day)",
        "INSERT INTO lake.{ns}.orders VALUES (1, 'ada', 10, DATE'2026-01-01'), (2, 'bob', 20, DATE'2026-01-02')",
    )
    yield made
    made.operations.close()


PAID = "-- partitioned by: day\nSELECT * FROM lake.{ns}.orders WHERE amount > 0"
DAILY = "SELECT day, sum(amount) AS amount, count(*) AS orders FROM lake.{ns}.paid GROUP BY day"
TOTAL = "SELECT sum(orders) AS orders FROM lake.{ns}.daily"
CUSTOMERS = "SELECT customer, count(*) AS orders FROM lake.{ns}.orders GROUP BY customer"


def test_what_changed_runs_in_order(project: Project) -> None:
    project.write(daily=DAILY, paid=PAID, total=TOTAL, customers=CUSTOMERS)
    everything = {"paid", "daily", "total", "customers"}
    first = project.run_models()
    assert {name: each.status.value for name, each in first.items()} == dict.fromkeys(everything, "refreshed")
    assert (first["paid"].strategy, first["paid"].added_rows) == ("full", 2)
    project.check()
    # SELECT * of a table that was not there when it was pushed is frozen once it is.
    assert project.statuses() == dict.fromkeys(everything, "unchanged")

    project.change("ALTER TABLE lake.{ns}.orders ADD COLUMN note STRING")
    project.change("INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01', 'late')")
    second = project.run_models()
    assert {name: each.status.value for name, each in second.items()} == dict.fromkeys(everything, "refreshed")
    assert second["paid"].strategy != "full" and second["paid"].added_rows == 1
    assert project.sql(f"SELECT sum(orders) AS n FROM lake.{project.ns}.daily") == [{"n": 3}]

    # A row that one model filters out changes nothing behind it.
    project.change("INSERT INTO lake.{ns}.orders VALUES (4, 'eve', 0, DATE'2025-06-01', NULL)")
    third = project.statuses()
    assert third["customers"] == "refreshed" and third["total"] == "unchanged"

    # Only what is selected.
    project.change("INSERT INTO lake.{ns}.orders VALUES (5, 'eve', 7, DATE'2025-06-01', NULL)")
    assert project.statuses("+daily") == {"paid": "refreshed", "daily": "refreshed"}
    assert project.statuses() == {
        "paid": "unchanged",
        "daily": "unchanged",
        "total": "refreshed",
        "customers": "refreshed",
    }


def test_a_changed_select_stops_its_model_alone(project: Project) -> None:
    project.write(paid=PAID, daily=DAILY, total=TOTAL, customers=CUSTOMERS)
    project.run_models()
    # Nothing else has changed: even so, nobody may believe that the table is of the new SELECT.
    project.write(daily=DAILY.replace("sum(amount)", "max(amount)"))
    rows = project.sql(f"SELECT * FROM lake.{project.ns}.daily ORDER BY day")
    found = project.run_models()
    assert {name: each.status.value for name, each in found.items()} == {
        "paid": "unchanged",
        "daily": "failed",
        "total": "not_run",
        "customers": "unchanged",
    }
    assert found["total"].reason == f"It reads {project.ns}/daily, which failed."
    assert "has changed since its rows were written" in str(found["daily"].reason)
    assert f"dalsegno run {project.ns}.daily --full-refresh" in str(found["daily"].hint)
    assert project.sql(f"SELECT * FROM lake.{project.ns}.daily ORDER BY day") == rows
    # It does not go away by itself, and other models go on.
    project.change("INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5, DATE'2026-01-01')")
    assert project.statuses() == {
        "paid": "refreshed",
        "daily": "failed",
        "total": "not_run",
        "customers": "refreshed",
    }
    rebuilt = project.run_models("daily", full_refresh=FullRefresh())
    assert (rebuilt["daily"].status, rebuilt["daily"].strategy) == ("refreshed", "full")
    assert project.statuses() == {
        "paid": "unchanged",
        "daily": "unchanged",
        "total": "refreshed",
        "customers": "unchanged",
    }
    project.check()


def test_models_that_cannot_run(project: Project) -> None:
    project.write(broken="SELECT id, no_such FROM lake.{ns}.orders", lost="SELECT id FROM lake.{ns}.nowhere")
    project.write(behind="SELECT id FROM lake.{ns}.lost", last="SELECT id FROM lake.{ns}.behind", paid=PAID)
    found = project.run_models()
    assert {name: each.status.value for name, each in found.items()} == {
        "broken": "failed",
        "lost": "failed",
        "behind": "not_run",
        "last": "not_run",
        "paid": "refreshed",
    }
    assert found["last"].reason == f"It reads {project.ns}/behind, which was not run."
    assert "nowhere" in str(found["lost"].reason)
    assert not project.last.is_success
    # The target may be dropped by hand: then it is computed again.
    project.change("DROP TABLE lake.{ns}.paid")
    assert project.statuses("paid") == {"paid": "refreshed"}


@pytest.mark.parametrize("manifest", ["manifest.json", "manifest_spark.json"])
def test_an_imported_project_of_dbt_runs(project: Project, manifest: str) -> None:
    raw, shop = f"raw_{project.ns}", f"shop_{project.ns}"
    file = project.models.with_suffix(".json")
    text = (MANIFESTS / manifest).read_text()
    for schema, own in (("raw", raw), ("shop", shop)):
        # Several tests share a warehouse.
        for before in (f'\\"{schema}\\"', f'"{schema}"', f" {schema}.", f'"{schema}.'):
            text = text.replace(before, before.replace(schema, own))
    file.write_text(text)
    project.sql(
        f"CREATE NAMESPACE lake.{raw}",
        f"CREATE TABLE lake.{raw}.orders (id BIGINT, user_id BIGINT, order_date DATE, status STRING, amount BIGINT) "
        "USING iceberg",
        f"CREATE TABLE lake.{raw}.customers (id BIGINT, first_name STRING, last_name STRING) USING iceberg",
        f"INSERT INTO lake.{raw}.orders VALUES (1, 1, DATE'2026-01-01', 'new', 10), (2, 2, DATE'2026-01-02', 'x', 5)",
        f"INSERT INTO lake.{raw}.customers VALUES (1, 'Ada', 'L'), (2, 'Bob', NULL)",
    )
    import_manifest(file, project.models, project.settings)
    for change in (
        "SELECT 1",
        f"INSERT INTO lake.{raw}.orders VALUES (3, 1, DATE'2025-12-01', 'placed', 7), (4, NULL, NULL, NULL, NULL)",
        f"UPDATE lake.{raw}.orders SET status = 'returned' WHERE id = 1",
        f"UPDATE lake.{raw}.customers SET last_name = 'Lovelace' WHERE id = 1",
        f"DELETE FROM lake.{raw}.orders WHERE true",
    ):
        project.sql(change)
        project.run_models()
        assert project.last.is_success, project.last
        project.check()
    assert set(project.statuses().values()) == {"unchanged"}


def test_a_server_runs_models_when_tables_change(project: Project) -> None:
    header = "-- schedule: on change\n"
    project.write(paid=header + PAID, daily=header + DAILY)
    project.operations.models.push(project.models)
    service = Service(project.settings, project.operations.store)
    thread = Thread(target=service.run)
    thread.start()

    def orders() -> object:
        # The second model reads what the first has yet to create.
        ended = project.operations.runs.list(f"{project.ns}.daily", status=["SUCCEEDED"])
        return ended and project.sql(f"SELECT sum(orders) AS n FROM lake.{project.ns}.daily")[0]["n"]

    try:
        until(lambda: orders() == 2, seconds=300)
        project.change("INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5, DATE'2026-01-01')")
        until(lambda: orders() == 3, seconds=300)
    finally:
        service.stop()
        thread.join()
