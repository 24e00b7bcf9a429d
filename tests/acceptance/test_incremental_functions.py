"""Tables that Python functions declare: after every refresh, they hold what the function gives for all rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from uuid import uuid4

import pytest

from dalsegno import UserError, incremental
from dalsegno.operations.incremental_functions import IncrementalTable
from dalsegno.settings import Settings
from tests.acceptance.test_incremental import Place
from tests.exact import faults

pytestmark = pytest.mark.spark

DAILY = "SELECT day, sum(amount) AS amount, count(DISTINCT customer) AS customers FROM {source} GROUP BY day"
#: A function that needs Python to compute: a UDF of its own, and a dimension without the key.
CODE = """
from dalsegno import incremental
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

FACTOR = 1


def scaled(amount):
    return None if amount is None else amount * FACTOR


SOURCES = ["lake.{ns}.orders", "lake.{ns}.customers"]


@incremental("lake.{ns}.daily", sources=SOURCES, keys=["day"], workflow="{ns}"{more})
def daily(orders, customers):
    joined = orders.join(F.broadcast(customers), "customer", "left")
    amount = F.udf(scaled, LongType())("amount")
    return joined.groupBy("day").agg(
        F.sum(amount).alias("amount"), F.countDistinct("customer").alias("customers"), F.max("country").alias("country")
    )
"""
#: The same, written without a look at it.
FULL = """SELECT o.day, sum(o.amount) AS amount, count(DISTINCT o.customer) AS customers, max(c.country) AS country
FROM lake.{ns}.orders o LEFT JOIN lake.{ns}.customers c ON o.customer = c.customer GROUP BY o.day"""


class Shop(Place):
    ns = ""

    def load(self, more: str = "", code: str = CODE) -> IncrementalTable:
        """The function, in a file of the project."""
        path = self.settings.root / f"{self.ns}.py"
        path.write_text(code.replace("{ns}", self.ns).replace("{more}", more), encoding="utf-8")
        module = ModuleType(self.ns)
        sys.modules[self.ns] = module
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
        found = module.__dict__["daily"]
        assert isinstance(found, IncrementalTable)
        return found

    def differing(self, query: str = FULL) -> list[dict[str, object]]:
        query = query.format(ns=self.ns)
        columns = ", ".join(str(row["col_name"]) for row in self.sql(f"DESCRIBE QUERY {query}"))
        return self.sql(
            f"SELECT {columns}, sum(n) AS net FROM (SELECT {columns}, 1 AS n FROM ({query}) UNION ALL "
            f"SELECT {columns}, -1 FROM lake.{self.ns}.daily) GROUP BY {columns} HAVING sum(n) <> 0"
        )


@pytest.fixture
def shop(settings: Settings) -> Iterator[Shop]:
    made = Shop(settings)
    made.ns = f"shop_{uuid4().hex[:8]}"
    made.sql(
        f"CREATE NAMESPACE lake.{made.ns}",
        f"CREATE TABLE lake.{made.ns}.orders (id BIGINT, customer STRING, amount BIGINT, day DATE) "
        "USING iceberg PARTITIONED BY (day)",
        f"CREATE TABLE lake.{made.ns}.customers (customer STRING, country STRING) USING iceberg",
        f"INSERT INTO lake.{made.ns}.orders VALUES (1, 'ada', 10, DATE'2026-01-01'), (2, 'bob', 20, DATE'2026-01-02'), "
        "(3, NULL, NULL, NULL)",
        f"INSERT INTO lake.{made.ns}.customers VALUES ('ada', 'DE')",
    )
    yield made
    made.operations.close()


def test_a_function_that_returns_sql(shop: Shop) -> None:
    source = f"lake.{shop.ns}.orders"

    @incremental(f"lake.{shop.ns}.daily", sources=[source], partitioned_by=["day"], workflow=shop.ns)
    def daily() -> str:
        return DAILY.format(source=source)

    seen = []
    for change in ["SELECT 1", f"INSERT INTO {source} VALUES (4, 'ada', 1, DATE'2025-01-01')", "SELECT 1"]:
        shop.sql(change)
        seen.append(daily.refresh(settings=shop.settings))
        assert shop.differing(DAILY.format(source=source)) == []
    assert [each.has_changes for each in seen] == [True, True, False]
    assert [each.strategy for each in seen][::2] == ["full", ""]
    assert (seen[1].strategy != "full", seen[1].changed_rows, seen[1].run) == (True, 1, f"{shop.ns}/2")
    assert daily.check(shop.settings).is_equal
    shop.sql(f"DELETE FROM {source} WHERE day IS NULL")
    assert daily.refresh(full=True, settings=shop.settings).strategy == "full"
    assert shop.differing(DAILY.format(source=source)) == []


def test_sources_must_be_what_the_select_reads(shop: Shop) -> None:
    @incremental(f"lake.{shop.ns}.daily", sources=[f"lake.{shop.ns}.customers"], workflow=shop.ns)
    def daily() -> str:
        return DAILY.format(source=f"lake.{shop.ns}.orders")

    with pytest.raises(UserError, match=r"reads lake.*orders, but its sources are lake.*customers"):
        daily.refresh(settings=shop.settings)


def test_a_function_of_dataframes(shop: Shop) -> None:
    daily = shop.load()
    changes = {
        "SELECT 1": "full",
        # Late rows, a NULL key, a new key.
        "INSERT INTO lake.{ns}.orders VALUES (4, 'ada', 5, DATE'2025-06-01'), (5, NULL, 7, NULL)": "touched keys",
        "UPDATE lake.{ns}.orders SET day = DATE'2026-01-02' WHERE id = 1": "touched keys",
        # A table without the key.
        "INSERT INTO lake.{ns}.customers VALUES ('bob', 'FR')": "full",
        # Keys vanish.
        "DELETE FROM lake.{ns}.orders WHERE day = DATE'2025-06-01' OR day IS NULL": "touched keys",
        "DELETE FROM lake.{ns}.orders WHERE true": "touched keys",
        "INSERT INTO lake.{ns}.orders VALUES (9, 'bob', 5, DATE'2025-06-01')": "touched keys",
        "SELECT 2": "",
    }
    seen = []
    for change in changes:
        shop.sql(change.format(ns=shop.ns))
        seen.append(daily.refresh(settings=shop.settings).strategy)
        assert shop.differing() == [], change
    assert seen == list(changes.values())
    assert daily.check(shop.settings).is_equal


FAULTS = [fault for fault in faults.FAULTS if fault.name in ("connection lost before", "connection lost after")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_refresh_that_breaks_is_tried_again(shop: Shop, fault: faults.Fault) -> None:
    daily = shop.load()
    daily.refresh(settings=shop.settings)
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (4, 'ada', 5, DATE'2025-06-01')")
    injection = faults.Injection(fault, shop.settings)
    with faults.injected(injection):
        assert daily.refresh(settings=shop.settings).strategy == "touched keys"
    assert injection.has_happened
    assert shop.differing() == []
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (5, 'ada', 6, DATE'2025-06-01')")
    daily.refresh(settings=shop.settings)
    assert shop.differing() == []


def test_changed_code_stops_before_anything_is_written(shop: Shop) -> None:
    shop.load().refresh(settings=shop.settings)
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (4, 'ada', 5, DATE'2025-06-01')")
    same = CODE.replace("FACTOR = 1", "FACTOR  =  1  # a comment")
    assert shop.load(code=same).refresh(settings=shop.settings).strategy == "touched keys"
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (5, 'ada', 5, DATE'2025-06-01')")
    other = shop.load(code=CODE.replace("FACTOR = 1", "FACTOR = 2"))
    before = shop.sql(f"SELECT * FROM lake.{shop.ns}.daily ORDER BY day")
    with pytest.raises(UserError, match="has changed since its rows were written"):
        other.refresh(settings=shop.settings)
    assert shop.sql(f"SELECT * FROM lake.{shop.ns}.daily ORDER BY day") == before
    other.refresh(full=True, settings=shop.settings)
    assert shop.differing(FULL.replace("sum(o.amount)", "2 * sum(o.amount)")) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('.groupBy("day")', '.groupBy(F.col("day").alias("other"))', "The key 'day' is not a column of what"),
        ("return joined", "raise ValueError('no')\n    return joined", "daily failed: ValueError: no"),
        ("def daily(orders, customers)", "def daily(orders)", "one argument for each of its 2 sources"),
        ("return joined.groupBy", "return 7\n    joined.groupBy", "must return a DataFrame, and returned int"),
        ('.groupBy("day")', '.groupBy(F.col("day").cast("string").alias("day"))', "has the type string in what"),
    ],
)
def test_what_is_wrong_with_a_function(shop: Shop, before: str, after: str, said: str) -> None:
    assert before in CODE
    with pytest.raises(UserError, match=said):
        shop.load(code=CODE.replace(before, after)).refresh(settings=shop.settings)


def test_a_broken_promise_is_found_by_a_check(shop: Shop) -> None:
    """Days are no key of a table whose rows depend on other days."""
    code = (
        CODE.replace('.groupBy("day")', '.withColumn("customer", F.lit("x")).groupBy("day")')
        .replace(
            "return joined",
            'first = orders.agg(F.min("id").alias("first"))\n    joined = joined.crossJoin(first)\n    return joined',
        )
        .replace("F.sum(amount)", 'F.max("first")')
    )
    daily = shop.load(code=code)
    daily.refresh(settings=shop.settings)
    assert daily.check(shop.settings).is_equal
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (0, 'ada', 5, DATE'2025-06-01')")
    daily.refresh(settings=shop.settings)
    assert not daily.check(shop.settings).is_equal


def test_dataframes_need_declared_keys() -> None:
    with pytest.raises(UserError, match="its sources and keys must be declared"):

        @incremental("lake.db.t", sources=["lake.db.s"])
        def daily(orders: object) -> object:
            return orders
