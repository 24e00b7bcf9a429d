"""Declared tables whose state is in a companion table: both are right after every run, whatever breaks in between."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.runs import RunStatus
from dalsegno.settings import Settings
from tests.acceptance.test_declared import Shop
from tests.exact import faults

pytestmark = pytest.mark.spark

#: Neither shows how many values there are, nor their sum.
AVERAGES = """SELECT customer, avg(amount) AS mean, sum(amount) / 2 AS half FROM lake.{ns}.orders
WHERE price > 0 GROUP BY customer"""
SHARE = "SELECT 100 * sum(CASE WHEN customer = 'ada' THEN amount END) / sum(amount) AS share FROM lake.{ns}.orders"
CHANGES = [
    "INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5.5, 1), (4, NULL, 7, 1), (5, 'bob', NULL, 1)",
    "UPDATE lake.{ns}.orders SET amount = NULL WHERE customer = 'bob'",
    "DELETE FROM lake.{ns}.orders WHERE customer = 'ada'",
    "INSERT INTO lake.{ns}.orders VALUES (6, 'ada', 2, 1), (7, 'eve', 9.25, -1)",
    "DELETE FROM lake.{ns}.orders WHERE true",
    "INSERT INTO lake.{ns}.orders VALUES (8, 'ada', 4, 1)",
]


@pytest.fixture
def shop(settings: Settings) -> Iterator[Shop]:
    made = Shop(settings)
    made.ns = f"shop_{uuid4().hex[:8]}"
    made.sql(
        f"CREATE NAMESPACE lake.{made.ns}",
        f"CREATE TABLE lake.{made.ns}.orders (id BIGINT, customer STRING, amount DECIMAL(10, 2), price INT) "
        "USING iceberg",
        f"INSERT INTO lake.{made.ns}.orders VALUES (1, 'ada', 10, 1), (2, 'bob', 20, 1)",
    )
    yield made
    made.operations.close()


def declared(shop: Shop, query: str = AVERAGES, **more: object) -> str:
    return shop.workflow(shop.declare("means", query, companion="true", **more))


def run(shop: Shop, workflow: str) -> str:
    """Run it, compare with the SELECT; the strategy."""
    assert shop.run(workflow) is RunStatus.SUCCEEDED, [each.failure for each in shop.operations.runs.steps(shop.ns)]
    return shop.strategy("means")


@pytest.mark.parametrize("query", [AVERAGES, SHARE], ids=["groups", "one row"])
def test_a_companion_keeps_what_a_delta_needs(shop: Shop, query: str) -> None:
    workflow = declared(shop, query, policy="strict")
    assert run(shop, workflow) == "full"
    for change in CHANGES:
        shop.sql(change.format(ns=shop.ns))
        # Which of the others depends on what earlier runs cost.
        assert run(shop, workflow) != "full", change
        shop.check("means", query)
    assert run(shop, workflow) == ""


@pytest.mark.parametrize("statement", [1, 2])
@pytest.mark.parametrize("name", ["connection lost before", "connection lost after", "error after"])
def test_a_break_between_both_tables_is_resumed(shop: Shop, name: str, statement: int) -> None:
    fault = next(fault for fault in faults.FAULTS if fault.name == name)
    workflow = declared(shop)
    run(shop, workflow)
    shop.sql(CHANGES[0].format(ns=shop.ns))
    with faults.injected(faults.Injection(fault, shop.settings, statement=statement)):
        assert shop.run(workflow) is RunStatus.FAILED
    shop.sql(CHANGES[1].format(ns=shop.ns))
    run(shop, workflow)
    run(shop, workflow)
    shop.check("means", AVERAGES)
    shop.sql(CHANGES[2].format(ns=shop.ns))
    run(shop, workflow)
    shop.check("means", AVERAGES)


@pytest.mark.parametrize(
    "what",
    [
        "DELETE FROM lake.{ns}.means__state WHERE customer = 'ada'",
        "DROP TABLE lake.{ns}.means__state",
        "CALL lake.system.rollback_to_snapshot('{ns}.means__state', {first})",
    ],
)
def test_a_companion_that_is_not_from_the_last_run_is_computed_again(shop: Shop, what: str) -> None:
    workflow = declared(shop)
    run(shop, workflow)
    [first] = shop.sql(f"SELECT snapshot_id FROM lake.{shop.ns}.means__state.snapshots ORDER BY committed_at LIMIT 1")
    shop.sql(CHANGES[0].format(ns=shop.ns))
    run(shop, workflow)
    shop.sql(what.format(ns=shop.ns, first=first["snapshot_id"]))
    shop.sql(CHANGES[1].format(ns=shop.ns))
    assert run(shop, workflow) == "full"
    shop.check("means", AVERAGES)
    shop.sql(CHANGES[2].format(ns=shop.ns))
    run(shop, workflow)
    shop.check("means", AVERAGES)


def test_a_companion_that_was_left_out_for_a_while(shop: Shop) -> None:
    without = shop.workflow(shop.declare("means", AVERAGES))
    with_one = declared(shop)
    for workflow, change in [
        (with_one, "SELECT 1"),
        (without, CHANGES[0]),
        (with_one, CHANGES[1]),
        (with_one, CHANGES[2]),
    ]:
        shop.sql(change.format(ns=shop.ns))
        strategy = run(shop, workflow)
        shop.check("means", AVERAGES)
        assert strategy == "full" or change != CHANGES[1]


def test_another_select_has_another_companion(shop: Shop) -> None:
    run(shop, declared(shop))
    # Of the same type, but with more columns of state.
    other = AVERAGES.replace("sum(amount) / 2", "-sum(-amount) / 2")
    shop.sql(CHANGES[0].format(ns=shop.ns))
    assert shop.run(declared(shop, other)) is RunStatus.FAILED
    started = shop.operations.runs.start(shop.ns, full_refresh=FullRefresh())
    ended = shop.operations.runs.finish(started.id)
    assert ended.status is RunStatus.SUCCEEDED, shop.operations.runs.steps(shop.ns)[0].failure
    shop.sql(CHANGES[1].format(ns=shop.ns))
    run(shop, declared(shop, other))
    shop.check("means", other)


def test_a_table_of_others_is_no_companion(shop: Shop) -> None:
    shop.sql(f"CREATE TABLE lake.{shop.ns}.means__state (x INT) USING iceberg")
    assert shop.run(declared(shop)) is RunStatus.FAILED
    assert "it is another table" in str(shop.operations.runs.steps(shop.ns)[0].failure)
