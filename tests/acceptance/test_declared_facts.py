"""What the author of a declared table states: facts that are checked, dimensions that are pinned; and views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalsegno.audit.results import AuditRequest
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.refreshes import ReadAs
from dalsegno.model.runs import RunStatus
from dalsegno.model.tables import TableName
from dalsegno.operations.workflow_versions import Versions
from dalsegno.spec.captures import watched_captures
from dalsegno.store import Store
from tests.acceptance.test_declared import Shop, shop

__all__ = ["shop"]

pytestmark = pytest.mark.spark

FIRST = """SELECT event, day, v FROM (
  SELECT *, row_number() OVER (PARTITION BY event ORDER BY at) AS n FROM lake.{ns}.events) WHERE n = 1"""


@pytest.fixture
def events(shop: Shop) -> Iterator[Shop]:
    shop.sql(
        f"CREATE TABLE lake.{shop.ns}.events (event STRING, day DATE, at BIGINT, v BIGINT) USING iceberg "
        "PARTITIONED BY (day)",
        f"INSERT INTO lake.{shop.ns}.events VALUES ('a', DATE'2026-01-01', 1, 1), ('a', DATE'2026-01-01', 2, 2), "
        "('b', DATE'2026-01-02', 1, 3), (NULL, NULL, 1, 4)",
    )
    yield shop


def said(shop: Shop) -> str:
    return " ".join(str(step.failure) for step in shop.operations.runs.steps(shop.ns))


def outputs(shop: Shop, step: str) -> dict[str, object]:
    [found] = [each for each in shop.operations.runs.steps(shop.ns) if each.id == step]
    return dict(found.outputs or {})


def depends_on_a_fact(shop: Shop) -> bool:
    with Store.open(shop.settings.store) as store:
        [last] = store.refreshes(TableName("lake", (shop.ns,), "firsts"), limit=1)
    return any("->" in fact for fact in last.facts)


def succeeds(shop: Shop, workflow: str) -> None:
    assert shop.run(workflow) is RunStatus.SUCCEEDED, said(shop)


def test_a_fact_that_fails_stops_the_run_before_it_writes(events: Shop) -> None:
    shop = events
    table = f"lake.{shop.ns}.events"
    workflow = shop.workflow(
        shop.declare("firsts", FIRST, facts="[event -> day, no ties]", strategy="touched_partitions")
    )
    succeeds(shop, workflow)
    shop.check("firsts", FIRST)
    changes = [
        f"INSERT INTO {table} VALUES ('c', DATE'2026-01-02', 1, 5), ('d', DATE'2026-01-03', 1, 6)",
        # A row that comes late, and is the first.
        f"INSERT INTO {table} VALUES ('a', DATE'2026-01-01', 0, 7), (NULL, NULL, 0, 8)",
        f"CALL lake.system.rewrite_data_files(table => '{shop.ns}.events', options => map('rewrite-all', 'true'))",
        f"UPDATE {table} SET day = DATE'2026-01-05' WHERE event = 'a'",
        f"DELETE FROM {table} WHERE event = 'b'",
    ]
    for change in changes:
        shop.sql(change)
        succeeds(shop, workflow)
        shop.check("firsts", FIRST)

    before = shop.sql(f"SELECT * FROM lake.{shop.ns}.firsts ORDER BY event")
    for wrong, right, words in [
        (
            f"INSERT INTO {table} VALUES ('c', DATE'2026-01-07', 9, 9)",
            f"DELETE FROM {table} WHERE at = 9",
            "'event -> day' does not hold for: event = 'c'",
        ),
        (
            # Both new, and equal in what is ordered by.
            f"INSERT INTO {table} VALUES ('e', DATE'2026-01-07', 9, 9), ('e', DATE'2026-01-07', 9, 10)",
            f"DELETE FROM {table} WHERE v = 10",
            "'no ties' does not hold for: event = 'e'",
        ),
        (
            f"INSERT INTO {table} VALUES (NULL, DATE'2026-01-07', 9, 9)",
            f"DELETE FROM {table} WHERE event IS NULL AND at = 9",
            "does not hold for: event = None",
        ),
    ]:
        shop.sql(wrong)
        assert shop.run(workflow) is RunStatus.FAILED
        assert words in said(shop).replace(f" in lake.{shop.ns}.events", ""), said(shop)
        assert shop.sql(f"SELECT * FROM lake.{shop.ns}.firsts ORDER BY event") == before
        shop.sql(right)
        succeeds(shop, workflow)
        shop.check("firsts", FIRST)
        before = shop.sql(f"SELECT * FROM lake.{shop.ns}.firsts ORDER BY event")


def test_a_new_fact_is_checked_in_all_rows_before_it_is_used(events: Shop) -> None:
    shop, table = events, f"lake.{events.ns}.events"
    plain = shop.workflow(shop.declare("firsts", FIRST, policy="strict"))
    stated = shop.workflow(shop.declare("firsts", FIRST, policy="strict", facts="event -> day"))
    succeeds(shop, plain)
    assert "leave the result open" in str(outputs(shop, "firsts")["why"])
    shop.sql(f"INSERT INTO {table} VALUES ('a', DATE'2026-01-09', 0, 1)")
    succeeds(shop, plain)
    # What is wrong is old, and what is new is right.
    shop.sql(f"INSERT INTO {table} VALUES ('x', DATE'2026-01-02', 1, 1)")
    assert shop.run(stated) is RunStatus.FAILED
    assert "event = 'a'" in said(shop)
    # Only one row of 'a' is left, but the target holds another than that.
    shop.sql(f"DELETE FROM {table} WHERE event = 'a' AND day = DATE'2026-01-09'")
    succeeds(shop, stated)
    shop.check("firsts", FIRST)
    assert not depends_on_a_fact(shop)
    shop.sql(f"UPDATE {table} SET v = 100 WHERE event = 'b'")
    succeeds(shop, stated)
    shop.check("firsts", FIRST)
    assert depends_on_a_fact(shop)
    # A run that does not check leaves nothing known.
    shop.sql(f"INSERT INTO {table} VALUES ('b', DATE'2026-01-09', 0, 1)")
    succeeds(shop, plain)
    shop.sql(f"INSERT INTO {table} VALUES ('y', DATE'2026-01-02', 1, 1)")
    assert shop.run(stated) is RunStatus.FAILED
    # The author may believe it, and is wrong.
    trusting = shop.workflow(shop.declare("firsts", FIRST, facts="trusted event -> day"))
    succeeds(shop, trusting)


def test_pinned_dimensions(shop: Shop) -> None:
    ns = shop.ns
    query = (
        "SELECT o.id, o.amount, c.country FROM lake.{ns}.orders o "
        "LEFT JOIN lake.{ns}.customers c ON o.customer = c.customer"
    )
    pinned = shop.declare("pinned", query, dimensions="pinned")
    workflow = shop.workflow(pinned, shop.declare("followed", query))
    succeeds(shop, workflow)
    [first] = shop.sql(f"SELECT snapshot_id FROM lake.{ns}.customers.snapshots")

    def check_pinned() -> None:
        at = f"(SELECT * FROM lake.{ns}.customers VERSION AS OF {first['snapshot_id']})"
        shop.check("pinned", query.replace("lake.{ns}.customers", at))
        shop.check("followed", query)

    shop.sql(f"INSERT INTO lake.{ns}.customers VALUES ('bob', 'FR')")
    succeeds(shop, workflow)
    check_pinned()
    assert outputs(shop, "pinned")["changed_dimensions"] == [f"lake.{ns}.customers"]
    shop.sql(
        f"INSERT INTO lake.{ns}.orders VALUES (3, 'bob', 5, DATE'2026-01-02'), (4, 'ada', 5, DATE'2026-01-02')",
        f"UPDATE lake.{ns}.customers SET country = 'AT' WHERE customer = 'ada'",
        f"CALL lake.system.expire_snapshots(table => '{ns}.customers', older_than => TIMESTAMP'2099-01-01 00:00:00', "
        "retain_last => 1)",
    )
    succeeds(shop, workflow)
    check_pinned()
    assert outputs(shop, "pinned")["changed_dimensions"] == [f"lake.{ns}.customers"]
    assert outputs(shop, "followed")["changed_dimensions"] == []
    with Store.open(shop.settings.store) as store:
        [last, *_] = store.refreshes(TableName("lake", (ns,), "pinned"), limit=1)
    [dimension] = [each for each in last.reads if each.read_as is ReadAs.PINNED]
    assert (dimension.table.name, dimension.upto_snapshot) == ("customers", first["snapshot_id"])
    audit = shop.operations.audits.run(AuditRequest(ns))
    assert audit.is_equal, audit

    run = shop.operations.runs.start(ns, full_refresh=FullRefresh())
    assert shop.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED, said(shop)
    shop.check("pinned", query)
    assert outputs(shop, "pinned")["changed_dimensions"] == []


def test_views_are_followed(shop: Shop) -> None:
    ns = shop.ns
    shop.sql(
        f"CREATE VIEW lake.{ns}.paid AS SELECT * FROM lake.{ns}.orders WHERE amount > 0 -- paid",
        f"USE lake.{ns}",
        "CREATE VIEW named (who, what, at) AS SELECT customer, count(*), max(day) FROM paid GROUP BY customer",
    )
    query = (
        "SELECT named.who, what, at, country FROM lake.{ns}.named LEFT JOIN lake.{ns}.customers c "
        "ON c.customer = lake.{ns}.named.who"
    )
    star = "SELECT * FROM lake.{ns}.paid"
    workflow = shop.workflow(*(shop.declare(*each, policy="strict") for each in (("counts", query), ("copies", star))))
    for change in [
        "SELECT 1",
        "INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01'), (4, NULL, 7, NULL), (5, 'bob', -1, NULL)",
        "ALTER TABLE lake.{ns}.orders ADD COLUMN note STRING",
        "UPDATE lake.{ns}.orders SET amount = -1, note = 'none' WHERE id = 2",
        "DELETE FROM lake.{ns}.orders WHERE customer = 'ada'",
    ]:
        shop.sql(change.format(ns=ns))
        succeeds(shop, workflow)
        shop.check("counts", query)
        shop.check("copies", star)
    assert shop.strategy("counts") not in ("", "full")
    assert shop.operations.audits.run(AuditRequest(ns)).is_equal

    shop.sql(f"CREATE OR REPLACE VIEW lake.{ns}.paid AS SELECT * FROM lake.{ns}.orders WHERE amount > 5")
    shop.sql(f"INSERT INTO lake.{ns}.orders VALUES (9, 'eve', 5, NULL, NULL)")
    before = shop.sql(f"SELECT * FROM lake.{ns}.counts")
    assert shop.run(workflow) is RunStatus.FAILED
    assert "has changed since its rows were written" in said(shop)
    assert shop.sql(f"SELECT * FROM lake.{ns}.counts") == before


def test_a_table_trigger_ignores_pinned_dimensions(shop: Shop) -> None:
    query = "SELECT o.id, c.country FROM lake.{ns}.orders o JOIN lake.{ns}.customers c ON o.customer = c.customer"
    pushed = shop.operations.workflows.push(shop.workflow(shop.declare("pinned", query, dimensions="pinned")))
    with Store.open(shop.settings.store) as store:
        blueprint = Versions(store).active(pushed.workflow_id)
    assert blueprint is not None
    [watched] = watched_captures(blueprint.workflow)
    assert watched.tables == (f"lake.{shop.ns}.orders",)
