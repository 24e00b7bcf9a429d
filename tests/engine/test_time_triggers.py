"""Runs that start by the clock: each due time once, whoever dies, and however many try."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest

from dalsegno.clock import from_millis
from dalsegno.errors import PlatformError
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.triggers.time_triggers.engine import TimeTriggers
from tests.callers import admin
from tests.engine.support import FAILED, Place, expression, noop

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURLY = {"cron": "0 * * * *"}


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(either_place: Place) -> Clock:
    clock = Clock()
    either_place.use_clock(clock)
    return clock


def triggers_of(operations: Operations) -> TimeTriggers:
    return TimeTriggers(operations.store, operations.machinery.versions.active, operations.machinery.start_by_trigger)


def push(place: Place, *triggers: dict[str, Any], **fields: Any) -> None:
    place.push("w", noop("a"), time_triggers=list(triggers), **fields)


def fire(place: Place, clock: Clock, at: datetime) -> datetime | None:
    clock.now = at
    return triggers_of(place.operations).fire(at)


def runs(place: Place) -> list[RunView]:
    return sorted(place.operations.runs.list("w", limit=100), key=lambda run: run.number)


def planned(place: Place) -> list[datetime]:
    return [from_millis(run.initiator["planned_ms"]) for run in runs(place)]


def test_a_due_time_starts_one_run(either_place: Place, clock: Clock) -> None:
    push(either_place, HOURLY)

    assert fire(either_place, clock, NOON + 59 * MINUTE) == NOON + 60 * MINUTE
    assert runs(either_place) == []
    assert fire(either_place, clock, NOON + 60 * MINUTE) == NOON + 120 * MINUTE
    fire(either_place, clock, NOON + 61 * MINUTE)

    assert planned(either_place) == [NOON + 60 * MINUTE]
    [run] = runs(either_place)
    assert (run.initiator["type"], run.initiator["by"], run.initiator["timezone"]) == ("TIME", "dalsegno", "UTC")


def test_a_run_knows_when_it_was_due(either_place: Place, clock: Clock) -> None:
    params = {"day": expression("RUN_DATE", "STRING")}
    push(either_place, {"cron": "30 23 * * *", "timezone": "America/New_York"}, params=params)

    fire(either_place, clock, datetime(2026, 3, 3, 4, 31, tzinfo=UTC))

    [run] = runs(either_place)
    assert from_millis(run.initiator["planned_ms"]) == datetime(2026, 3, 3, 4, 30, tzinfo=UTC)
    assert run.initiator["timezone"] == "America/New_York"


def test_downtime_is_caught_up_as_the_trigger_says(either_place: Place, clock: Clock) -> None:
    push(either_place, {**HOURLY, "catch_up": {"rule": "ALL", "most": 3}})

    fire(either_place, clock, NOON + 10 * 60 * MINUTE)

    assert planned(either_place) == [NOON + hours * 60 * MINUTE for hours in (8, 9, 10)]


def test_what_was_due_before_it_was_pushed_is_not_started(either_place: Place, clock: Clock) -> None:
    clock.now = NOON + 30 * MINUTE
    push(either_place, HOURLY)

    fire(either_place, clock, NOON + 40 * MINUTE)

    assert runs(either_place) == []


def test_a_new_version_goes_on_where_the_old_one_was(either_place: Place, clock: Clock) -> None:
    push(either_place, HOURLY)
    clock.now = NOON + 65 * MINUTE
    push(either_place, HOURLY, {"cron": "30 * * * *"})

    fire(either_place, clock, NOON + 66 * MINUTE)
    assert planned(either_place) == [NOON + 60 * MINUTE]
    assert [run.version for run in runs(either_place)] == [2]
    fire(either_place, clock, NOON + 91 * MINUTE)
    assert planned(either_place) == [NOON + 60 * MINUTE, NOON + 90 * MINUTE]


@pytest.mark.parametrize("how", ["deactivate", "delete", "disable", "without"])
def test_what_is_no_longer_in_force_starts_nothing(either_place: Place, clock: Clock, how: str) -> None:
    push(either_place, HOURLY)
    match how:
        case "deactivate":
            either_place.operations.workflows.deactivate("w")
        case "delete":
            either_place.operations.workflows.delete("w")
        case "disable":
            push(either_place, HOURLY, properties={"time_trigger_disabled": True})
        case "without":
            push(either_place)

    assert fire(either_place, clock, NOON + 60 * MINUTE) is None
    if how != "delete":
        assert runs(either_place) == []


def test_what_was_due_while_it_was_not_active_is_not_caught_up(either_place: Place, clock: Clock) -> None:
    push(either_place, HOURLY)
    either_place.operations.workflows.deactivate("w")
    clock.now = NOON + 61 * MINUTE
    either_place.operations.workflows.activate("w", "latest")

    fire(either_place, clock, NOON + 62 * MINUTE)
    assert runs(either_place) == []
    fire(either_place, clock, NOON + 120 * MINUTE)
    assert planned(either_place) == [NOON + 120 * MINUTE]


def test_whoever_dies_before_it_is_remembered_starts_no_second_run(either_place: Place, clock: Clock) -> None:
    push(either_place, HOURLY)
    clock.now = NOON + 60 * MINUTE
    operations = either_place.operations

    def start_and_die(*arguments: Any, **options: Any) -> RunView:
        operations.machinery.start_by_trigger(*arguments, **options)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TimeTriggers(operations.store, operations.machinery.versions.active, start_and_die).fire(clock.now)
    fire(either_place, clock, NOON + 60 * MINUTE)

    assert planned(either_place) == [NOON + 60 * MINUTE]


def test_nodes_that_fire_at_the_same_time_start_one_run(either_place: Place, clock: Clock) -> None:
    push(either_place, {**HOURLY, "catch_up": {"rule": "ALL", "most": 5}})
    clock.now = NOON + 5 * 60 * MINUTE
    first = either_place.operations
    nodes = [Operations(first.store, first.settings, admin("dalsegno"), clock=clock) for _ in range(4)]
    together = Barrier(len(nodes))

    def act(node: Operations) -> None:
        together.wait()
        triggers_of(node).fire(clock.now)

    threads = [Thread(target=act, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    fire(either_place, clock, clock.now)
    assert sorted(planned(either_place)) == [NOON + hours * 60 * MINUTE for hours in range(1, 6)]


def test_parameters_that_make_no_sense_are_a_failed_run(either_place: Place, clock: Clock) -> None:
    push(either_place, HOURLY, params={"x": expression("1 / 0")})

    fire(either_place, clock, NOON + 60 * MINUTE)
    fire(either_place, clock, NOON + 61 * MINUTE)

    [run] = runs(either_place)
    assert run.status is FAILED
    assert "x" in (run.reason or "")
    assert [event.data["status"] for event in either_place.operations.runs.events(run.id)] == ["FAILED"]


def test_one_that_cannot_be_started_does_not_hold_up_others(
    either_place: Place, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    push(either_place, HOURLY)
    either_place.push("other", noop("a"), time_triggers=[{"cron": "1 * * * *"}])
    operations = either_place.operations
    clock.now = NOON + 61 * MINUTE

    def start(blueprint: Any, *arguments: Any, **options: Any) -> RunView:
        if blueprint.workflow.id == "w":
            raise PlatformError("The store is away.")
        return operations.machinery.start_by_trigger(blueprint, *arguments, **options)

    TimeTriggers(operations.store, operations.machinery.versions.active, start).fire(clock.now)
    assert len(operations.runs.list("other")) == 1
    assert "w is due, but cannot be started: The store is away." in caplog.text
    fire(either_place, clock, NOON + 62 * MINUTE)
    assert planned(either_place) == [NOON + 60 * MINUTE]


def test_what_is_missed_is_said(either_place: Place, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    push(either_place, {**HOURLY, "catch_up": "none"})

    fire(either_place, clock, NOON + 150 * MINUTE)

    assert runs(either_place) == []
    assert "was not started for what was due from 2026-03-02T13:00:00+00:00 to 2026-03-02T14:00:00+00:00" in caplog.text
