"""Runs that start by signals: each complete join once, whoever dies, and however many try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import event, select

from dalsegno.errors import PlatformError
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.operations.service import Role, Service
from dalsegno.store.run_tables import signal_arrivals, triggers
from dalsegno.triggers.signal_triggers.engine import SignalTriggers
from tests.callers import admin
from tests.engine.dying import NEVER, announce_and_fire
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, expression, noop
from tests.engine.test_control import wait_for
from tests.store.crashes import killed_at


def by(*names: str, keys: tuple[str, ...] = (), **fields: Any) -> Json:
    return {"definitions": {name: {"join_keys": list(keys)} for name in names}, **fields}


A_AND_B = by("a", "b", keys=("day",))


def push(place: Place, *triggers: Json, **fields: Any) -> None:
    place.push("w", noop("s"), signal_triggers=list(triggers), **{"properties": {"run_strategy": 100}, **fields})


def announce(place: Place, name: str, **params: Any) -> int:
    return place.operations.signals.announce(name, params).id


def triggers_of(operations: Operations) -> SignalTriggers:
    return SignalTriggers(
        operations.store,
        operations.machinery.versions.active,
        operations.machinery.start_by_trigger,
        operations.machinery.scopes,
    )


def fire(place: Place) -> None:
    triggers_of(place.operations).fire(place.operations.clock())


def runs(place: Place, workflow_id: str = "w") -> list[RunView]:
    return sorted(place.operations.runs.list(workflow_id, limit=1000, with_params=True), key=lambda run: run.number)


def begun_by(place: Place) -> list[dict[str, int]]:
    """The numbers of the signals that began each run."""
    return [run.initiator["signal_ids"] for run in runs(place)]


def left(place: Place) -> int:
    """How many signals still wait for others, and how many triggers somebody must look at."""
    with place.operations.store.database.reading() as connection:
        due = connection.execute(select(triggers).where(triggers.c.next_at.is_not(None))).all()
        assert due == []
        return len(connection.execute(select(signal_arrivals)).all())


def test_a_signal_starts_a_run(either_place: Place) -> None:
    params = {"got": expression("params.getFromSignal('a', 'n')"), "sum": expression("params.getFromSignal('m') + got")}
    push(either_place, by("a", params={"m": expression("params.getFromSignal('a', 'n') + 1")}), params=params)

    fire(either_place)
    assert runs(either_place) == []
    number = announce(either_place, "a", n=5, who="me")
    announce(either_place, "other")
    fire(either_place)
    fire(either_place)

    [run] = runs(either_place)
    assert (run.initiator["type"], run.initiator["by"], run.initiator["trigger"]) == ("SIGNAL", "dalsegno", "a")
    assert run.initiator["signals"] == {"a": {"n": 5, "who": "me"}}
    assert run.initiator["signal_ids"] == {"a": number}
    assert run.params is not None
    assert {name: run.params[name]["value"] for name in ("got", "sum")} == {"got": 5, "sum": 11}
    assert either_place.finish(run).status is SUCCEEDED
    assert left(either_place) == 0


def test_signals_join_on_their_keys(either_place: Place) -> None:
    definitions = {"a": {"join_keys": ["day", "hour"]}, "b": {"join_keys": ["d", "h"]}, "c": {"join_keys": ["x", "y"]}}
    push(either_place, {"definitions": definitions})
    a = announce(either_place, "a", day=1, hour="00")
    announce(either_place, "b", d=2, h="00")
    fire(either_place)
    c = announce(either_place, "c", x="1", y="00")
    announce(either_place, "b", d=1)
    fire(either_place)
    assert runs(either_place) == []

    b = announce(either_place, "b", d=1, h="00")
    fire(either_place)
    assert begun_by(either_place) == [{"a": a, "b": b, "c": c}]
    assert left(either_place) == 1


def test_only_what_matches(either_place: Place) -> None:
    match = {"country": {"value": "DE", "operator": "="}, "n": {"value": 5, "operator": ">="}}
    push(either_place, {"definitions": {"a": {"match_params": match}}})
    for country, n in (("DE", 4), ("FR", 5), ("DE", 5), ("DE", 6)):
        announce(either_place, "a", country=country, n=n)
    fire(either_place)
    assert [run.initiator["signals"]["a"]["n"] for run in runs(either_place)] == [5, 6]
    assert left(either_place) == 0


def test_each_signal_is_used_once_the_oldest_first(either_place: Place) -> None:
    push(either_place, by("a", "b"))
    first, second, _ = (announce(either_place, "a") for _ in range(3))
    one, other = announce(either_place, "b"), announce(either_place, "b")
    fire(either_place)
    assert begun_by(either_place) == [{"a": first, "b": one}, {"a": second, "b": other}]
    assert left(either_place) == 1


def test_more_signals_than_are_looked_at_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalsegno.store.signal_subscriptions.PAGE", 2)
    push(place, by("a", "b"))
    for name in ("a",) * 5 + ("b",) * 7:
        announce(place, name)
    for _ in range(7):
        fire(place)
    assert len(runs(place)) == 5
    assert left(place) == 2


def test_a_condition_that_does_not_hold_uses_signals_up(either_place: Place) -> None:
    push(either_place, by("a", condition="params.getFromSignal('a', 'n') > 1"))
    for n in (1, 2):
        announce(either_place, "a", n=n)
    fire(either_place)
    assert [run.initiator["signals"]["a"]["n"] for run in runs(either_place)] == [2]
    assert left(either_place) == 0


def test_equal_values_start_one_run_only(either_place: Place) -> None:
    once = {name: by(name, dedup_expr=f"params.getFromSignal('{name}', 'day')") for name in "ab"}
    push(either_place, once["a"], once["b"])
    for day in (1, 1, 2, 1):
        announce(either_place, "a", day=day)
    fire(either_place)
    announce(either_place, "a", day=2)
    announce(either_place, "b", day=2)
    fire(either_place)
    assert [run.initiator["signals"]["a"]["day"] for run in runs(either_place)] == [1, 2]
    assert left(either_place) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"condition": "1 / 0 > 1"},
        {"dedup_expr": "params.nextUniqueId() + ''"},
        {"params": {"x": expression("1 / 0")}},
        {"dedup_expr": "params.getFromSignal('a', 'n')"},
    ],
)
def test_what_makes_no_sense_is_a_failed_run(either_place: Place, fields: Json) -> None:
    push(either_place, by("a", **fields))
    announce(either_place, "a")
    fire(either_place)
    [run] = runs(either_place)
    assert run.status is FAILED
    assert run.reason
    assert left(either_place) == 0


def test_a_match_without_a_value_is_said_and_not_asked_for_ever(
    either_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    match = {"n": {"param": {"value": "${nobody}", "type": "STRING"}}}
    push(either_place, {"definitions": {"a": {"match_params": match}}})
    announce(either_place, "a", n=1)
    fire(either_place)
    assert "what it waits for has no value" in caplog.text
    assert runs(either_place) == []
    assert left(either_place) == 1


def test_a_trigger_takes_what_is_announced_from_now_on(either_place: Place) -> None:
    announce(either_place, "a", day=1)
    push(either_place, A_AND_B)
    announce(either_place, "b", day=1)
    fire(either_place)
    assert runs(either_place) == []


def test_a_new_version_goes_on_where_the_old_one_was(either_place: Place) -> None:
    push(either_place, A_AND_B)
    announce(either_place, "a", day=1)
    fire(either_place)
    push(either_place, {**A_AND_B, "condition": "1 < 2"}, by("c"))
    announce(either_place, "b", day=1)
    fire(either_place)
    assert [run.version for run in runs(either_place)] == [2]


@pytest.mark.parametrize("how", ["deactivate", "delete", "disable", "without"])
def test_what_is_no_longer_in_force_starts_nothing(either_place: Place, how: str) -> None:
    push(either_place, A_AND_B)
    announce(either_place, "a", day=1)
    workflows = either_place.operations.workflows
    match how:
        case "deactivate":
            workflows.deactivate("w")
        case "delete":
            workflows.delete("w")
        case "disable":
            push(either_place, A_AND_B, properties={"signal_trigger_disabled": True})
        case "without":
            push(either_place)
    announce(either_place, "b", day=1)
    fire(either_place)
    assert left(either_place) == 0
    push(either_place, A_AND_B)
    announce(either_place, "b", day=1)
    fire(either_place)
    assert runs(either_place) == []


def test_several_triggers_take_the_same_signal(either_place: Place) -> None:
    push(either_place, by("a"), by("a", "b"))
    either_place.push("v", noop("s"), signal_triggers=[by("a")])
    announce(either_place, "a")
    announce(either_place, "b")
    fire(either_place)
    assert [run.initiator["trigger"] for run in runs(either_place)] == ["a", "a + b"]
    assert len(runs(either_place, "v")) == 1


def test_a_repeated_signal_starts_nothing(either_place: Place) -> None:
    push(either_place, by("a"))
    for _ in range(2):
        either_place.operations.signals.announce("a", {}, key="once")
        fire(either_place)
    assert len(runs(either_place)) == 1


def test_a_step_starts_runs_of_other_workflows(either_place: Place) -> None:
    push(either_place, by("done"))
    either_place.push("v", noop("s", signal_outputs=[{"name": "done", "params": {"n": {"value": 1, "type": "LONG"}}}]))
    either_place.run("v")
    fire(either_place)
    assert [run.initiator["signals"] for run in runs(either_place)] == [{"done": {"n": 1}}]


# Dying, and doing the same at once.


class Died(BaseException):
    """What stands for the sudden end of a process."""


@contextmanager
def dying_at(place: Place, moment: int) -> Iterator[None]:
    """Before the statement or the COMMIT of this number."""
    passed = count(1)

    def tick(*_: object) -> None:
        if next(passed) == moment:
            raise Died

    engine = place.operations.store.database.engine
    names = ("before_cursor_execute", "commit")
    for name in names:
        event.listen(engine, name, tick)
    try:
        yield
    finally:
        for name in names:
            event.remove(engine, name, tick)


def test_whoever_dies_at_any_moment_starts_no_second_run_and_forgets_none(either_place: Place) -> None:
    """With a key that is another one each time, which is the hardest case."""
    push(either_place, by("a", "b", keys=("day",), dedup_expr="UUID.randomUUID().toString()"))
    # On SQLite at each, which is quicker.
    is_sqlite = either_place.operations.store.database.is_sqlite
    days = 0
    for moment in count(1, 1 if is_sqlite else 3):
        days += 1
        announce(either_place, "a", day=days)
        try:
            with dying_at(either_place, moment):
                either_place.operations.signals.announce("b", {"day": days}, key=str(days))
                fire(either_place)
            break
        except Died:
            # Whoever announced it heard no answer, and says it again.
            either_place.operations.signals.announce("b", {"day": days}, key=str(days))
            fire(either_place)
        assert len(runs(either_place)) == days
    assert moment > 20
    found = Counter(run.initiator["signals"]["b"]["day"] for run in runs(either_place))
    assert found == Counter(range(1, days + 1))
    assert left(either_place) == 0


def test_nodes_that_fire_at_the_same_time_start_each_run_once(either_place: Place) -> None:
    push(either_place, by("a", "b", keys=("day",), dedup_expr="UUID.randomUUID().toString()"))
    first = either_place.operations
    nodes = [Operations(first.store, first.settings, admin("dalsegno")) for _ in range(4)]
    together = Barrier(len(nodes))

    def act(node: Operations, which: int) -> None:
        together.wait()
        for day in range(8):
            # Each is announced by two of them.
            node.signals.announce("ab"[which % 2], {"day": day}, key=str(day))
            triggers_of(node).fire(node.clock())

    threads = [Thread(target=act, args=(node, which)) for which, node in enumerate(nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    fire(either_place)
    found = Counter(run.initiator["signals"]["a"]["day"] for run in runs(either_place))
    assert found == Counter(range(8))
    assert left(either_place) == 0


def test_nobody_waits_for_ever(either_place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever pushes, announces or starts holds some of what the others need."""
    push(either_place, A_AND_B, by("b", "c"))
    first = either_place.operations
    operationss = [Operations(first.store, first.settings, admin("dalsegno")) for _ in range(5)]

    def arm(operations: Operations) -> None:
        for _ in range(6):
            operations.workflows.deactivate("w")
            operations.workflows.activate("w", "latest")

    def tell(operations: Operations) -> None:
        for day in range(20):
            operations.signals.announce("abc"[day % 3], {"day": day // 3})

    def start(operations: Operations) -> None:
        for _ in range(15):
            triggers_of(operations).fire(operations.clock())

    with ThreadPoolExecutor(len(operationss)) as pool:
        acts = (arm, tell, tell, start, start)
        for done in [pool.submit(act, each) for act, each in zip(acts, operationss, strict=True)]:
            done.result()
    fire(either_place)
    assert caplog.text == ""
    begun = [run.initiator for run in runs(either_place)]
    used = Counter((each["trigger"], number) for each in begun for number in each["signal_ids"].values())
    assert max(used.values(), default=1) == 1


def test_one_that_cannot_be_started_does_not_hold_up_others(
    either_place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    push(either_place, by("a"))
    either_place.push("v", noop("s"), signal_triggers=[by("a")])
    announce(either_place, "a")
    operations = either_place.operations

    def start(blueprint: Any, *arguments: Any, **options: Any) -> RunView:
        if blueprint.workflow.id == "v":
            raise PlatformError("The store is away.")
        return operations.machinery.start_by_trigger(blueprint, *arguments, **options)

    SignalTriggers(operations.store, operations.machinery.versions.active, start, operations.machinery.scopes).fire(
        operations.clock()
    )
    assert (len(runs(either_place)), len(runs(either_place, "v"))) == (1, 0)
    assert "signals for v have come, but it cannot be started: The store is away." in caplog.text
    fire(either_place)
    assert (len(runs(either_place)), len(runs(either_place, "v"))) == (1, 1)


def test_killed_between_announcing_and_starting(tmp_path: Path) -> None:
    """Processes that really die."""
    moments = (8, 16, 24, 32)

    def die(moment: int) -> None:
        folder = tmp_path / str(moment)
        folder.mkdir()
        place = Place.at(folder)
        push(place, A_AND_B)
        announce(place, "a", day=1)
        place.operations.close()
        killed_at(moment, announce_and_fire, str(folder))
        killed_at(NEVER, announce_and_fire, str(folder))
        place = Place.at(folder)
        assert len(runs(place)) == 1
        assert left(place) == 0
        place.operations.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(die, moments))


def test_a_service_starts_runs_soon(either_place: Place) -> None:
    push(either_place, by("a"))
    operations = either_place.operations
    service = Service(operations.settings, operations.store, list(Role))
    thread = Thread(target=service.run)
    thread.start()
    try:
        announce(either_place, "a")
        wait_for(lambda: any(run.status is SUCCEEDED for run in runs(either_place)))
    finally:
        service.stop()
        thread.join()
