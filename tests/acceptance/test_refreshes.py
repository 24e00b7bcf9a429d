"""Every committed run of a declared table is recorded once, with what it read and wrote, whatever dies on the way."""

from __future__ import annotations

from itertools import pairwise
from uuid import uuid4

import pytest

from dalsegno.model.captures import CaptureState
from dalsegno.model.refreshes import ReadAs, Refresh
from dalsegno.model.runs import NOTHING_NEW, RunStatus
from dalsegno.model.tables import TableName
from dalsegno.store import Store
from tests.acceptance.conftest import Commands
from tests.acceptance.test_declared import BY_CUSTOMER, PAID, Shop, shop
from tests.exact import faults
from tests.exact.worker import start_and_finish
from tests.processes import PROCESSES
from tests.store.crashes import killed_at

__all__ = ["shop"]
pytestmark = pytest.mark.spark
MAIN_LINE = "SELECT snapshot_id, summary FROM lake.{table}.snapshots ORDER BY committed_at"


@pytest.fixture
def command(shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    monkeypatch.chdir(shop.settings.root)
    return Commands(shop.settings.root, capsys)


def refreshes(shop: Shop, step: str) -> list[Refresh]:
    """Oldest first."""
    with Store.open(shop.settings.store) as store:
        return store.refreshes(TableName.of(f"lake.{shop.ns}.{step}"), limit=100)[::-1]


def check_complete(shop: Shop, step: str) -> list[Refresh]:
    """Each commit of the table's consumer has one refresh, and together they made every snapshot of the target."""
    found = refreshes(shop, step)
    with Store.open(shop.settings.store) as store:
        captures = [each for each in store.captures() if each.id in {refresh.capture_id for refresh in found}]
        consumer = captures[0].consumer
        committed = [each for each in store.captures(consumer) if each.state is CaptureState.COMMITTED]
    assert sorted(each.id for each in committed) == sorted(each.capture_id for each in found)
    made = [row["snapshot_id"] for row in shop.sql(MAIN_LINE.format(table=f"{shop.ns}.{step}"))]
    assert [each for refresh in found for write in refresh.writes for each in write.snapshots] == made
    for before, after in pairwise(found):
        assert after.writes[0].before_snapshot == before.writes[0].snapshots[-1]
        ends = {each.table: each.upto_snapshot for each in before.reads}
        assert {each.table: each.after_snapshot for each in after.reads} == ends
    by_id = {each.id: each for each in committed}
    for refresh in found:
        ranges = {
            each.table: (None if each.is_full else each.after.snapshot_id, each.upto.snapshot_id)
            for each in by_id[refresh.capture_id].tables
        }
        assert {each.table: (each.after_snapshot, each.upto_snapshot) for each in refresh.reads} == ranges
        assert refresh.statements
        assert refresh.cost.seconds is not None and refresh.cost.seconds > 0
    return found


def test_a_refresh_has_what_it_read_and_wrote(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("by_customer", BY_CUSTOMER))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01'), (4, NULL, 7, NULL)")
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    run = shop.operations.runs.get(shop.ns)
    # A run that finds nothing new has refreshed nothing.
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert shop.operations.runs.get(shop.ns).reason == NOTHING_NEW

    first, second = check_complete(shop, "by_customer")
    assert first.strategy == "full"
    assert {each.read_as for each in first.reads} == {ReadAs.STATE}
    assert first.saved_bytes == 0
    assert (first.rows_written, first.writes[0].before_snapshot, first.writes[0].removed_rows) == (2, None, 0)

    assert (second.workflow_id, second.run_number, second.workflow_version) == (shop.ns, run.number, run.version)
    orders, customers = sorted(second.reads, key=lambda each: each.table.name, reverse=True)
    assert (orders.read_as, orders.rows) == (ReadAs.CHANGES, 2)
    assert orders.bytes > 0
    assert (customers.rows, customers.after_snapshot) == (0, customers.upto_snapshot)
    [write] = second.writes
    assert write.before_snapshot == first.writes[0].snapshots[-1]
    # Two customers have other rows now: one is new, one had a row before.
    assert write.added_rows - write.removed_rows == 1
    assert second.full_cost is not None
    assert second.full_cost.bytes_read > first.cost.bytes_read
    [step] = [each for each in shop.operations.runs.steps(run.name)]
    outputs = step.outputs or {}
    assert outputs["rows_written"] == second.rows_written
    assert outputs["saved_bytes"] == second.saved_bytes
    assert outputs["capture_id"] == second.capture_id


KILLED = ["worker killed after", "worker killed at a commit step", "worker killed after a commit step"]


@pytest.mark.parametrize("fault", [*KILLED, 90, 115, 140, 165])
def test_a_committed_refresh_is_recorded_once_whoever_dies(shop: Shop, fault: str | int) -> None:
    """``fault`` kills the process, or the number of the moment in which it has something to do with the store does."""
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    key = uuid4().hex
    name = fault if isinstance(fault, str) else "worker killed in the store"
    given = (str(shop.settings.root), shop.ns, key, name, 1, 0, 0.0)
    if isinstance(fault, str):
        child = PROCESSES.Process(target=start_and_finish, args=given)
        child.start()
        child.join()
        assert child.exitcode != 0
    else:
        assert killed_at(fault, start_and_finish, *given)
    run = shop.operations.runs.start(shop.ns, {}, idempotency_key=key)
    assert shop.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    _, second = check_complete(shop, "paid")
    assert (second.strategy, second.run_number, second.rows_written) == ("append", run.number, 1)
    shop.check("paid", PAID)


def test_whoever_resumes_records_what_was_decided(shop: Shop) -> None:
    """The next run resumes what a broken one has written, though the author has asked for something else since."""
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    after = next(fault for fault in faults.FAULTS if fault.name == "connection lost after")
    with faults.injected(faults.Injection(after, shop.settings)):
        assert shop.run(workflow) is RunStatus.FAILED
    assert len(refreshes(shop, "paid")) == 1
    # By now the strategy would be another one: an update in the source is not in the range, but its files are newer.
    shop.sql(f"UPDATE lake.{shop.ns}.orders SET amount = 6 WHERE id = 3")
    [plan] = shop.operations.workflows.plan(shop.ns)
    assert plan.strategy == "append"
    assert plan.pending_capture is not None
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    _, second = check_complete(shop, "paid")
    assert (second.strategy, second.rows_written) == ("append", 1)
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert len(check_complete(shop, "paid")) == 3
    shop.check("paid", PAID)


def test_commands_say_what_was_done_and_what_would_be(shop: Shop, command: Commands) -> None:
    target, orders = f"lake.{shop.ns}.paid", f"lake.{shop.ns}.orders"
    workflow = shop.workflow(shop.declare("paid", PAID))
    shop.operations.workflows.push(workflow)

    assert "strategy  full\n  why       The target is new." in command("plan", shop.ns).out
    assert command("refreshes", target).out == "No run of a declared table has written to it.\n"
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    assert "strategy  none\n  why       Nothing has changed." in command("plan", shop.ns).out

    shop.sql(f"INSERT INTO {orders} VALUES (3, 'ada', 5, DATE'2025-06-01')")
    [plan] = command("plan", shop.ns, "--json").json()
    assert (plan["target"], plan["strategy"], plan["needs_probe"]) == (target, "append", False)
    [source] = plan["sources"]
    assert (source["table"], source["changed"], source["rows"]) == (orders, "appended", 1)
    assert shop.run(workflow) is RunStatus.SUCCEEDED

    second, first = command("refreshes", target, "--json").json()
    assert (first["strategy"], second["strategy"]) == ("full", "append")
    assert second["writes"][0]["before_snapshot"] == first["writes"][0]["snapshots"][-1]
    assert second["saved_bytes"] > 0
    assert plan["sources"][0]["upto_snapshot"] == second["reads"][0]["upto_snapshot"]
    page = command("refreshes", target, "--limit", "1")
    assert f"{shop.ns}/2" in page.out and f"{shop.ns}/1" not in page.out
    cursor = page.err.split("--after ")[1].split(",")[0]
    assert f"{shop.ns}/1" in command("refreshes", target, "--after", cursor).out

    shown = command("show", shop.ns).out
    assert f"append: {second['why']}" in shown
    assert "1 row, " in shown and ", full: " in shown
    [step] = command("show", shop.ns, "--json").json()["steps"]
    assert step["refresh"] == second
    assert "strategies  append in 1 run, full in 1 run" in command("audit", shop.ns).out


def test_a_plan_names_what_is_not_planned(shop: Shop, command: Commands) -> None:
    found = command("plan", f"lake.{shop.ns}.orders")
    assert (found.code, "--consumer NAME" in found.err) == (2, True)
    assert command("plan", shop.ns, "--from", "full").code == 2
    bad = "SELECT o.id FROM lake.{ns}.orders o LIMIT 3"
    strict = shop.workflow(shop.declare("few", bad, policy="strict"), shop.declare("paid", PAID, policy="full"))
    shop.operations.workflows.push(strict)
    few, paid = command("plan", shop.ns, "--json").json()
    assert few["strategy"] in (None, "full")
    assert paid["strategy"] == "full"


def test_a_refresh_that_writes_nothing_is_recorded_as_such(shop: Shop) -> None:
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    orders = f"lake.{shop.ns}.orders"
    # What comes and goes in between, nobody sees.
    shop.sql(
        f"INSERT INTO {orders} VALUES (3, 'ada', 5, DATE'1999-01-01')",
        f"DELETE FROM {orders} WHERE day = DATE'1999-01-01'",
    )
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    first, second = refreshes(shop, "paid")
    assert second.writes[0].before_snapshot == first.writes[0].snapshots[-1]
    assert (second.writes[0].snapshots, second.rows_written, second.cost.seconds) == ((), 0, None)
    assert second.reads[0].after_snapshot == first.reads[0].upto_snapshot != second.reads[0].upto_snapshot


def test_a_statement_that_a_person_vouches_for_is_recorded(shop: Shop) -> None:
    """Nobody knows when it ended; whatever else is known is recorded."""
    workflow = shop.workflow(shop.declare("paid", PAID))
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    shop.sql(f"INSERT INTO lake.{shop.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01')")
    after = next(fault for fault in faults.FAULTS if fault.name == "connection lost after")
    with faults.injected(faults.Injection(after, shop.settings)):
        assert shop.run(workflow) is RunStatus.FAILED
    pending = shop.operations.captures.list(pending_only=True)
    [capture] = [each for each in pending if f"lake.{shop.ns}." in each.consumer]
    shop.operations.captures.resolve(capture.id, is_written=True)
    assert shop.run(workflow) is RunStatus.SUCCEEDED
    _, second = check_complete(shop, "paid")
    assert (second.strategy, second.rows_written, second.capture_id) == ("append", 1, capture.id)
