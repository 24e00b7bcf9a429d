"""What is told of a service is what the store holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dalsegno.model.captures import actor_of_run
from dalsegno.operations.metrics import Metric, Metrics
from dalsegno.store import Store, lags
from tests.engine.support import Place, noop, shell
from tests.operations.conftest import Clock
from tests.store.examples import PLAYBACK, capture

ONE: tuple[str, ...] = ()


def read(metrics: Metrics, now: datetime) -> dict[str, dict[tuple[str, ...], float]]:
    found = metrics.read(now)
    assert len({metric.name for metric in found}) == len(found)
    for metric in found:
        assert all(len(labels) == len(metric.labels) for labels in metric.values)
        assert "run" not in metric.labels
    return {metric.name: dict(metric.values) for metric in found}


def test_runs_are_counted_once_from_the_start_on(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"))
    either_place.push("v", shell("bad", "exit 1", retry_policy={"error_retry_limit": 0}))
    either_place.run("w")
    metrics = Metrics(either_place.operations.store, clock.now)
    assert read(metrics, clock.now)["dalsegno_runs_ended"] == {}

    for _ in range(2):
        either_place.run("w")
    failed = either_place.run("v")
    for _ in range(3):
        found = read(metrics, clock.now)["dalsegno_runs_ended"]
        assert found == {("w", "SUCCEEDED"): 2, ("v", "FAILED"): 1}
        clock.pass_by(minutes=2)
    either_place.operations.runs.restart(failed.id)
    either_place.finish(failed)
    assert read(metrics, clock.now)["dalsegno_runs_ended"]["v", "FAILED"] == 2


def test_what_is_saved_late_is_counted(either_place: Place, clock: Clock) -> None:
    """Numbers are given when a transaction writes, and can be seen when it ends: a smaller one may come later."""
    from sqlalchemy import insert

    from dalsegno.store.run_tables import events

    either_place.push("w", noop("a"))
    run = either_place.run("w")
    metrics = Metrics(either_place.operations.store, clock.now)
    last = metrics._upto
    for number in (last + 5, last + 3):
        values = {"run_id": run.id, "kind": "run", "data": {"status": "STOPPED"}, "happened_at": clock.now}
        with either_place.operations.store.database.writing() as connection:
            connection.execute(insert(events).values(id=number, **values))
        read(metrics, clock.now)
    assert read(metrics, clock.now)["dalsegno_runs_ended"] == {("w", "STOPPED"): 2}


def test_what_waits(either_place: Place, clock: Clock) -> None:
    either_place.push("w", noop("a"))
    either_place.start("w")
    either_place.start("w")
    clock.pass_by(seconds=90)

    found = read(Metrics(either_place.operations.store, clock.now), clock.now)

    assert found["dalsegno_runs_open"] == {("w", "IN_PROGRESS"): 1, ("w", "CREATED"): 1}
    assert found["dalsegno_steps_ready"] == {ONE: 1}
    assert found["dalsegno_steps_claimed"] == {ONE: 0}
    assert found["dalsegno_queue_age_seconds"] == {ONE: 90}
    assert found["dalsegno_nodes"] == {ONE: 0}
    assert found["dalsegno_store_errors"] == {ONE: 0}


def test_captures_lags_and_freshness(either_place: Place, clock: Clock) -> None:
    store = either_place.operations.store
    metrics = Metrics(store, clock.now)
    process(store, "c1", 10, clock.now)
    clock.pass_by(minutes=5)
    with store.database.writing() as connection:
        key = ("daily", str(PLAYBACK))
        oldest_at = clock.now - timedelta(minutes=3)
        lags.save(connection, key, snapshots=2, oldest_at=oldest_at, problem=None, now=clock.now)

    for _ in range(2):
        found = read(metrics, clock.now)
    by_table = ("daily", "lake.db.playback")
    assert found["dalsegno_captured_rows"] == {(*by_table, "captured"): 7, (*by_table, "committed"): 7}
    assert found["dalsegno_captured_bytes"] == {(*by_table, "captured"): 900, (*by_table, "committed"): 900}
    assert found["dalsegno_lag_seconds"] == {by_table: 180}
    assert found["dalsegno_lag_snapshots"] == {by_table: 2}
    assert found["dalsegno_lag_unknown"] == {by_table: 0}
    assert found["dalsegno_commit_age_seconds"] == {by_table: 300}
    assert found["dalsegno_freshness_seconds"] == {("w",): 300}


def process(store: Store, name: str, upto: int, now: datetime) -> None:
    made = capture(name, upto=upto, created_by=actor_of_run("w", 1), created_at=now)
    store.record_capture(made)
    store.mark_ready(name, {PLAYBACK: {"files": 1, "rows": 7, "bytes": 900}})
    store.commit(name, by=actor_of_run("w", 1), now=now)


def test_prometheus_understands_them() -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    from dalsegno.server.metrics import PrometheusMetrics

    class Some:
        def read(self, now: datetime) -> list[Metric]:
            return [
                Metric("dalsegno_runs_ended", "h", ("workflow", "status"), {('a"b', "FAILED"): 3}, is_total=True),
                Metric("dalsegno_nodes", "h", (), {(): 2}),
            ]

    now = datetime(2026, 1, 1, tzinfo=UTC)
    text = PrometheusMetrics(Some, lambda: now).text().decode()  # type: ignore[arg-type]
    found = {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}
    assert found["dalsegno_runs_ended_total"].labels == {"workflow": 'a"b', "status": "FAILED"}
    assert found["dalsegno_nodes"].value == 2
    assert found["dalsegno_store_up"].value == 1
    assert "process_resident_memory_bytes" in found
