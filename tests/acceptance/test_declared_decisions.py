"""Which strategy a declared table takes: learned from its own runs, announced, and fixed for its work."""

from __future__ import annotations

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.model.tables import TableName
from dalsegno.steps.declared import deciding
from tests.acceptance.test_declared import BY_CUSTOMER, DAILY, FAULTS, Shop, shop
from tests.exact import faults

pytestmark = pytest.mark.spark

__all__ = ["shop"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_retry_does_what_the_first_attempt_began(
    shop: Shop, fault: faults.Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile files were compacted, and the same question would have another answer."""
    workflow = shop.workflow(shop.declare("by_customer", BY_CUSTOMER))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"UPDATE lake.{shop.ns}.orders SET amount = 7 WHERE id = 2")
    with faults.injected(faults.Injection(fault, shop.settings)):
        assert shop.run(workflow) is RunStatus.FAILED

    monkeypatch.setattr(deciding.Costs, "ordered", lambda _, known: sorted(known, key=lambda each: each.name != "full"))
    shop.sql(
        f"CALL lake.system.rewrite_data_files(table => '{shop.ns}.orders', options => map('rewrite-all', 'true'))",
        f"UPDATE lake.{shop.ns}.orders SET amount = 8 WHERE id = 1",
    )
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert shop.strategy("by_customer") == "touched keys"
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert shop.strategy("by_customer") == "full"
    [step] = shop.operations.runs.steps(shop.ns)
    assert "A full refresh is expected to be cheaper: it reads" in str((step.outputs or {})["why"])
    shop.check("by_customer", BY_CUSTOMER)


def test_costs_are_learned_and_shown(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("daily", DAILY))
    for number in range(3, 6):
        assert shop.run(workflow) is RunStatus.SUCCEEDED
        shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES ({number}, 'ada', 5, DATE'2026-01-01')")
    target = TableName.of(f"lake.{shop.ns}.daily")
    newest, *_, first = shop.operations.tables._context.lake.store.refreshes(target, limit=10)
    assert first.strategy == "full" and first.expected_cost is not None
    # Nobody knew what bytes cost.
    assert first.expected_cost.seconds is None
    assert newest.expected_cost is not None and newest.expected_cost.seconds is not None
    considered = {each.strategy: each for each in newest.considered}
    assert considered["full"].expected is not None
    assert considered[newest.strategy].expected == newest.expected_cost
    assert not considered["append"].is_possible
    assert f"full would read {deciding.said_bytes(considered['full'].expected.bytes_read)}" in newest.why

    costs = shop.operations.tables.rewrite(DAILY.format(ns=shop.ns), str(target)).costs
    assert costs.is_since_checkpoint
    assert [each.rows for each in costs.changes] == [1]
    assert costs.strategies[0].seconds is not None
