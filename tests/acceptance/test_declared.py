"""Tables that are declared by their SELECT: after every run, they hold what the SELECT gives."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from dalsegno.audit.results import AuditRequest, Basis
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.runs import NOTHING_NEW, RunStatus
from dalsegno.settings import Settings
from tests.acceptance.test_incremental import Place
from tests.exact import faults

pytestmark = pytest.mark.spark

DAILY = "SELECT day, sum(amount) AS amount, count(*) AS orders FROM lake.{ns}.orders GROUP BY day"
BY_CUSTOMER = """-- by customer
SELECT o.customer, c.country, sum(o.amount) AS amount, count(*) AS orders
FROM lake.{ns}.orders o LEFT JOIN lake.{ns}.customers c ON o.customer = c.customer
GROUP BY o.customer, c.country"""
PAID = "SELECT id, customer, amount, day FROM lake.{ns}.orders WHERE amount > 0"


class Shop(Place):
    ns = ""

    def declare(self, step: str, query: str, **more: object) -> str:
        options = "".join(f"\n          {name}: {value}" for name, value in more.items())
        text = "\n            ".join(query.format(ns=self.ns).splitlines())
        return f"""
    - job:
        id: {step}
        type: Incremental
        retry_policy: {{error_retry_limit: 0, platform_retry_limit: 0}}
        incremental:
          target: lake.{self.ns}.{step}{options}
          query: |
            {text}"""

    def workflow(self, *jobs: str) -> str:
        return f"Workflow:\n  id: {self.ns}\n  jobs:{''.join(jobs)}\n  dag: sequential\n"

    def check(self, step: str, query: str) -> None:
        query = query.format(ns=self.ns)
        columns = ", ".join(str(row["col_name"]) for row in self.sql(f"DESCRIBE QUERY {query}"))
        net = self.sql(
            f"SELECT {columns}, sum(n) AS net FROM (SELECT {columns}, 1 AS n FROM ({query}) UNION ALL "
            f"SELECT {columns}, -1 FROM lake.{self.ns}.{step}) GROUP BY {columns} HAVING sum(n) <> 0"
        )
        assert net == []

    def strategy(self, step: str) -> str:
        [found] = [each for each in self.operations.runs.steps(self.ns) if each.id == step]
        return str((found.outputs or {}).get("strategy"))


@pytest.fixture
def shop(settings: Settings) -> Iterator[Shop]:
    made = Shop(settings)
    made.ns = f"shop_{uuid4().hex[:8]}"
    made.sql(
        f"CREATE NAMESPACE lake.{made.ns}",
        f"CREATE TABLE lake.{made.ns}.orders (id BIGINT, customer STRING, amount BIGINT, day DATE) "
        "USING iceberg PARTITIONED BY (day)",
        f"CREATE TABLE lake.{made.ns}.customers (customer STRING, country STRING) USING iceberg",
        f"INSERT INTO lake.{made.ns}.orders VALUES (1, 'ada', 10, DATE'2026-01-01'), (2, 'bob', 20, DATE'2026-01-02')",
        f"INSERT INTO lake.{made.ns}.customers VALUES ('ada', 'DE')",
    )
    yield made
    made.operations.close()


def test_tables_follow_their_sources(shop: Shop) -> None:
    tables = {"daily": DAILY, "by_customer": BY_CUSTOMER, "paid": PAID}
    # Of tables as small as these, a full refresh may be the cheapest.
    workflow = shop.workflow(*(shop.declare(step, query, policy="strict") for step, query in tables.items()))
    changes = [
        "SELECT 1",
        "INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01'), (4, NULL, 7, NULL)",
        "INSERT INTO lake.{ns}.customers VALUES ('bob', 'FR')",
        "UPDATE lake.{ns}.orders SET amount = -1 WHERE id = 2",
        "ALTER TABLE lake.{ns}.orders ADD COLUMN note STRING; "
        "ALTER TABLE lake.{ns}.customers RENAME COLUMN country TO land; "
        "ALTER TABLE lake.{ns}.customers RENAME COLUMN land TO country",
        "DELETE FROM lake.{ns}.orders WHERE day = DATE'2026-01-01'",
        "DELETE FROM lake.{ns}.orders WHERE true",
        "INSERT INTO lake.{ns}.orders VALUES (9, 'ada', 5, DATE'2025-06-01', 'late')",
    ]
    seen = []
    for change in changes:
        shop.sql(*change.format(ns=shop.ns).split("; "))
        assert shop.run(workflow) is RunStatus.SUCCEEDED, shop.operations.runs.get(shop.ns).reason
        for step, query in tables.items():
            shop.check(step, query)
        seen.append(tuple(shop.strategy(step) for step in tables))
    assert seen[0] == ("full", "full", "full")
    assert "full" not in {strategy for strategies in seen[1:] for strategy in strategies}, seen


def test_a_changed_select_stops_before_anything_is_written(shop: Shop) -> None:
    assert shop.run(shop.workflow(shop.declare("daily", DAILY))) is RunStatus.SUCCEEDED
    # Comments and white space are no change.
    same = "-- totals\n" + DAILY.replace(" FROM", "\n  FROM")
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    assert shop.run(shop.workflow(shop.declare("daily", same))) is RunStatus.SUCCEEDED
    shop.check("daily", DAILY)

    other = DAILY.replace("sum(amount)", "max(amount)")
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (4, 'ada', 6, DATE'2025-06-01')")
    before = shop.sql(f"SELECT * FROM lake.{shop.ns}.daily ORDER BY day")
    assert shop.run(shop.workflow(shop.declare("daily", other))) is RunStatus.FAILED
    assert shop.sql(f"SELECT * FROM lake.{shop.ns}.daily ORDER BY day") == before
    [step] = shop.operations.runs.steps(shop.ns)
    assert "has changed since its rows were written" in str(step.failure)

    run = shop.operations.runs.start(shop.ns, full_refresh=FullRefresh())
    ended = shop.operations.runs.finish(run.id)
    assert ended.status is RunStatus.SUCCEEDED, (ended.reason, shop.operations.runs.steps(shop.ns)[0].failure)
    shop.check("daily", other)


FAULTS = [
    fault for fault in faults.FAULTS if fault.name in ("connection lost before", "connection lost after", "error after")
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_run_that_breaks_is_finished_by_the_next(shop: Shop, fault: faults.Fault) -> None:
    """The appended rows of ``paid`` would be doubled, or missing, if the next run did not know what was written."""
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    with faults.injected(faults.Injection(fault, shop.settings)):
        assert shop.run(workflow) is RunStatus.FAILED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (4, 'ada', 6, DATE'2025-06-01')")
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.check("paid", PAID)


def test_a_named_strategy_with_a_probe_is_resumed(shop: Shop) -> None:
    """The target has the new keys by then; what the probe asks must not depend on it."""
    latest = """SELECT id, customer, amount, day FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY amount) AS n FROM lake.{ns}.orders) WHERE n = 1"""
    workflow = shop.workflow(shop.declare("latest", latest, strategy="append_new_keys"))
    first = shop.workflow(shop.declare("latest", latest))
    assert shop.run(first) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    after = next(fault for fault in FAULTS if fault.name == "connection lost after")
    with faults.injected(faults.Injection(after, shop.settings)):
        assert shop.run(workflow) is RunStatus.FAILED
    assert shop.run(workflow) is RunStatus.SUCCEEDED, shop.operations.runs.get(shop.ns).reason
    shop.check("latest", latest)


def test_stages_need_no_wiring(shop: Shop) -> None:
    total = "SELECT country, sum(amount) AS amount FROM lake.{ns}.by_customer GROUP BY country"
    workflow = shop.workflow(shop.declare("by_customer", BY_CUSTOMER), shop.declare("by_country", total))
    for change in [
        "SELECT 1",
        "INSERT INTO lake.{ns}.orders VALUES (3, 'bob', 5, DATE'2025-06-01')",
        "UPDATE lake.{ns}.customers SET country = 'FR' WHERE customer = 'ada'",
        "DELETE FROM lake.{ns}.orders WHERE customer = 'bob'",
    ]:
        shop.sql(change.format(ns=shop.ns))
        assert shop.run(workflow) is RunStatus.SUCCEEDED
        shop.check("by_customer", BY_CUSTOMER)
        shop.check("by_country", total)
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert [shop.strategy(step) for step in ("by_customer", "by_country")] == ["", ""]
    assert shop.operations.runs.get(shop.ns).reason == NOTHING_NEW


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("INSERT INTO lake.{ns}.paid VALUES (99, 'eve', 1, DATE'2026-01-01')", "Something else has written"),
        ("DELETE FROM lake.{ns}.paid WHERE id = 1", "Something else has written"),
        ("CALL lake.system.rollback_to_snapshot('{ns}.paid', {first})", "was rolled back"),
    ],
)
def test_a_target_that_is_not_as_it_was_left_is_not_built_upon(shop: Shop, what: str, said: str) -> None:
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    [first] = shop.sql(f"SELECT snapshot_id FROM lake.{shop.ns}.paid.snapshots ORDER BY committed_at LIMIT 1")
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(what.format(ns=shop.ns, first=first["snapshot_id"]))
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (4, 'ada', 6, DATE'2025-06-01')")
    assert shop.run(workflow) is RunStatus.FAILED
    [step] = shop.operations.runs.steps(shop.ns)
    assert said in str(step.failure)

    run = shop.operations.runs.start(shop.ns, full_refresh=FullRefresh(frozenset({f"lake.{shop.ns}.paid"})))
    assert shop.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    shop.check("paid", PAID)
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (5, 'ada', 6, DATE'2025-06-01')")
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.check("paid", PAID)


def test_a_target_that_was_dropped_is_made_anew(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"DROP TABLE lake.{shop.ns}.paid")
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert shop.strategy("paid") == "full"
    shop.check("paid", PAID)


def test_an_audit_compares_with_the_select(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("daily", DAILY))
    for number in (3, 4):
        assert shop.run(workflow) is RunStatus.SUCCEEDED
        shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES ({number}, 'ada', 5, DATE'2025-06-01')")
    # What no run has processed yet does not count.
    assert shop.operations.audits.run(AuditRequest(shop.ns)).is_equal
    shop.sql(f"UPDATE lake.{shop.ns}.daily SET amount = 0 WHERE day = DATE'2026-01-01'")
    audit = shop.operations.audits.run(AuditRequest(shop.ns))
    assert not audit.is_equal
    [target] = audit.targets
    assert (target.basis, target.comparison.missing_rows, target.comparison.superfluous_rows) == (Basis.ORACLE, 1, 1)


def test_compaction_of_the_target_is_no_change(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("paid", PAID))
    for number in range(3, 6):
        shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES ({number}, 'ada', 5, DATE'2025-06-01')")
        assert shop.run(workflow) is RunStatus.SUCCEEDED
        shop.sql(
            f"CALL lake.system.rewrite_data_files(table => '{shop.ns}.paid', options => map('rewrite-all', 'true'))"
        )
    shop.check("paid", PAID)


def test_sources_that_are_empty_at_first(shop: Shop) -> None:
    shop.sql(
        f"CREATE OR REPLACE TABLE lake.{shop.ns}.orders (id BIGINT, customer STRING, amount BIGINT, day DATE) "
        "USING iceberg",
        f"CREATE OR REPLACE TABLE lake.{shop.ns}.customers (customer STRING, country STRING) USING iceberg",
    )
    workflow = shop.workflow(shop.declare("by_customer", BY_CUSTOMER))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    for change in [
        "INSERT INTO lake.{ns}.orders VALUES (1, 'ada', 10, DATE'2026-01-01'), (2, 'bob', 1, NULL)",
        "INSERT INTO lake.{ns}.customers VALUES ('ada', 'DE')",
        "DELETE FROM lake.{ns}.orders WHERE true",
        "INSERT INTO lake.{ns}.orders VALUES (3, 'ada', 10, DATE'2026-01-01')",
    ]:
        shop.sql(change.format(ns=shop.ns))
        assert shop.run(workflow) is RunStatus.SUCCEEDED, shop.operations.runs.get(shop.ns).reason
        shop.check("by_customer", BY_CUSTOMER)
