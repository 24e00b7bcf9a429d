"""Steps that wait for signals, and steps that announce them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import select

from dalsegno.errors import ParamError, UserError
from dalsegno.model.runs import Ending, RestartFrom, RunStatus
from dalsegno.model.signals import Announcement
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.operations.signals import SignalView
from dalsegno.store import runs, signals
from dalsegno.store.run_tables import signal_waits
from tests.callers import admin
from tests.engine.support import FAILED, STOPPED, SUCCEEDED, Json, Place, expression, foreach, long, noop, shell

WAITS = "WAITING_FOR_SIGNALS"


def on(name: str, **match: Json | int | str) -> Json:
    """A dependency; a plain value must be equal."""
    params = {}
    for key, value in match.items():
        is_plain = not isinstance(value, dict)
        kind = "LONG" if isinstance(value, int) else "STRING"
        params[key] = {"param": {"value": value, "type": kind}, "operator": "="} if is_plain else value
    return {"name": name, "match_params": params}


def at_least(param: Json) -> Json:
    return {"param": param, "operator": ">="}


def work_until(place: Place, condition: Callable[[], bool]) -> None:
    """Run steps until it holds."""
    place.operations.machinery.engine().run(condition)


def until_waiting(place: Place, run: RunView, *step_ids: str) -> None:
    """Until these steps wait for signals, and somebody has found out for which."""

    def are_known() -> bool:
        with place.operations.store.database.reading() as connection:
            found = connection.execute(select(signal_waits.c.step_id)).scalars()
            return set(step_ids) <= set(found)

    work_until(place, are_known)
    assert {place.statuses(run)[step_id] for step_id in step_ids} == {WAITS}


def announce(place: Place, name: str, **params: Any) -> SignalView:
    return place.operations.signals.announce(name, params)


def open_waits(place: Place) -> int:
    with place.operations.store.database.reading() as connection:
        return len(connection.execute(select(signal_waits).where(signal_waits.c.signal_id.is_(None))).all())


def test_a_step_waits_until_all_its_signals_are_there(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", "b"), noop("b", signal_dependencies=[on("x", day=at_least(long(5))), on("y", who="me")]))
    run = place.start("w")
    until_waiting(place, run, "b")
    assert place.steps(run)["b"].started_at is None

    announce(place, "x", day=4)
    announce(place, "y", who="you")
    announce(place, "y", day=5)
    announce(place, "z", day=5)
    assert open_waits(place) == 2
    found = announce(place, "x", day=5)
    assert [wait.signal_id for wait in place.steps(run)["b"].signals] == [found.id, None]
    assert place.statuses(run)["b"] == WAITS
    announce(place, "y", who="me")
    assert place.statuses(run)["b"] == "CREATED"

    assert place.finish(run).status is SUCCEEDED
    assert place.steps(run)["b"].started_at is not None


def test_what_was_announced_before_counts_and_of_several_the_newest(either_place: Place) -> None:
    place = either_place
    for day in (1, 3, 2, 0):
        announce(place, "x", day=day)
    got = {"got": expression("params.getFromSignalDependency('0', 'day')")}
    run = place.do(noop("a", signal_dependencies=[on("x", day=at_least(long(1)))], params=got))
    assert run.status is SUCCEEDED
    assert place.steps(run)["a"].params["got"]["value"] == 2


def test_what_is_wanted_may_depend_on_what_came_before(either_place: Place) -> None:
    place = either_place
    dependency = on("x", day=at_least(expression("params.getFromStep('a', 'day') + n")), who="${owner}")
    place.push(
        "w",
        noop("a", "b", params={"day": expression("2 * 2")}),
        noop("b", signal_dependencies=[dependency]),
        params={"n": long(1)},
    )
    run = place.start("w")
    until_waiting(place, run, "b")
    [wait] = place.steps(run)["b"].signals
    assert wait.match == {"day": (">=", 5), "who": ("=", "ada")}
    announce(place, "x", day="5", who="ada")
    assert place.finish(run).status is SUCCEEDED


def test_what_has_no_value_fails_the_step(either_place: Place) -> None:
    run = either_place.do(noop("a", signal_dependencies=[on("x", day=at_least(expression("1 / 0")))]))
    assert run.status is FAILED
    assert "day" in (run.reason or "")
    assert open_waits(either_place) == 0


def test_each_iteration_waits_for_its_own(either_place: Place) -> None:
    place = either_place
    inner = noop("x", signal_dependencies=[on("day", n=at_least(expression("i")))])
    place.push("w", foreach("each", [1, 2, 3], [inner]))
    run = place.start("w")
    work_until(place, lambda: open_waits(place) == 3)
    announce(place, "day", n=2)
    assert open_waits(place) == 1
    announce(place, "day", n=3)
    assert place.finish(run).status is SUCCEEDED


def test_exactly_those_are_woken_that_wait_for_the_signal(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]), properties={"run_strategy": 5})
    place.push("v", noop("b", signal_dependencies=[on("y")]))
    first, second, other = place.start("w"), place.start("w"), place.start("v")
    work_until(place, lambda: open_waits(place) == 3)

    store = place.operations.store
    with store.database.writing() as connection:
        news = [Announcement("x")]
        signals.announce(connection, news, place.operations.clock())
        woken = {message["run_id"] for message in runs.messages(connection)}
    assert woken == {first.id, second.id}
    place.operations.machinery.deliver()
    assert place.finish(first).status is place.finish(second).status is SUCCEEDED
    assert place.statuses(other) == {"b": WAITS}


def test_resume_goes_on_without_signals(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]))
    run = place.start("w")
    until_waiting(place, run, "a")
    place.operations.runs.resume(run.id, "a")
    assert open_waits(place) == 0
    assert place.finish(run).status is SUCCEEDED


def test_before_anybody_has_looked_resume_goes_on_as_well(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]))
    run = place.start("w")
    assert place.statuses(run) == {"a": WAITS}
    place.operations.runs.resume(run.id, "a")
    assert place.finish(run).status is SUCCEEDED


@pytest.mark.parametrize(("ending", "status"), [(Ending.STOP, STOPPED), (Ending.KILL, FAILED)])
def test_a_run_that_ends_waits_no_more(either_place: Place, ending: Ending, status: RunStatus) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]))
    run = place.start("w")
    until_waiting(place, run, "a")
    end = place.operations.runs.kill if ending is Ending.KILL else place.operations.runs.stop
    assert end(run.id).status is status
    assert open_waits(place) == 0
    announce(place, "x")
    assert place.operations.runs.get(run.id).status is status


def test_a_paused_run_waits_for_both(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]))
    run = place.start("w")
    until_waiting(place, run, "a")
    place.operations.runs.pause(run.id)
    announce(place, "x")
    assert place.statuses(run) == {"a": "PAUSED"}
    place.operations.runs.resume(run.id)
    assert place.finish(run).status is SUCCEEDED


def test_a_breakpoint_comes_before_the_signals(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("x")]))
    place.operations.workflows.set_breakpoint("w", "a")
    run = place.start("w")
    assert place.statuses(run) == {"a": "PAUSED"}
    place.operations.runs.resume(run.id, "a")
    until_waiting(place, run, "a")
    announce(place, "x")
    assert place.finish(run).status is SUCCEEDED


def test_a_restart_looks_again(either_place: Place) -> None:
    place = either_place
    got = {"got": expression("params.getFromSignalDependency('0', 'n')")}
    announce(place, "x", n=1)
    run = place.do(noop("a", signal_dependencies=[on("x")], params=got))
    announce(place, "x", n=2)
    again = place.finish(place.operations.runs.restart(run.id, restart=RestartFrom.BEGINNING))
    assert again.status is SUCCEEDED
    assert place.steps(run)["a"].params["got"]["value"] == 2


def test_signals_and_steps_that_come_at_the_same_time_find_each_other(either_place: Place) -> None:
    """Neither may overlook the other: a step that waits, and a signal that is announced."""
    place = either_place
    place.push(
        "w", noop("a", signal_dependencies=[on("x", n="${n}")]), params={"n": long(0)}, properties={"run_strategy": 20}
    )
    started = [place.start("w", n=number) for number in range(8)]
    first = place.operations
    together = Barrier(2)

    def tell() -> None:
        teller = Operations(first.store, first.settings, admin("bob"))
        together.wait()
        for number in range(8):
            teller.signals.announce("x", {"n": number})

    thread = Thread(target=tell)
    thread.start()
    together.wait()
    place.operations.runs.work()
    thread.join()
    assert {place.operations.runs.get(run.id).status for run in started} == {SUCCEEDED}


# Announcing.


def told(place: Place) -> list[tuple[str, dict[str, Any]]]:
    """Oldest first."""
    return [(found.name, dict(found.params)) for found in reversed(place.operations.signals.list())]


def test_a_key_makes_it_the_same_signal(either_place: Place) -> None:
    place = either_place
    announced = place.operations.signals.announce
    first = announced("x", {"day": 1}, key="k")
    assert announced("x", {"day": 1}, key="k") == SignalView(**{**vars(first), "is_repeated": True})
    assert announced("y", {"day": 1}, key="k").id != first.id
    assert announced("x", {"day": 1}).id != first.id
    with pytest.raises(UserError, match="'k' was used for a signal 'x' with other parameters"):
        announced("x", {"day": 2}, key="k")
    assert len(told(place)) == 3


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("", {}, "cannot be a signal"),
        ("a*b", {}, "cannot be a signal"),
        ("a", {"x y": 1}, "cannot be the name of a parameter"),
        ("a", {"x": 1.5}, "must be a STRING or a LONG, found DOUBLE"),
        ("a", {"x": 2**63}, "more than 64 bits"),
    ],
)
def test_what_cannot_be_announced(place: Place, name: str, params: dict[str, Any], says: str) -> None:
    with pytest.raises((UserError, ParamError), match=says):
        place.operations.signals.announce(name, params)
    assert told(place) == []


def output(name: str, **params: Json) -> Json:
    return {"name": name, "params": params, "payload": {"by": "us"}}


def test_a_step_announces_its_success_once(either_place: Place) -> None:
    place = either_place
    text = {"value": "${day}", "type": "STRING"}
    place.push(
        "w",
        shell(
            "a",
            "echo n=7 >> $DALSEGNO_OUTPUT; test $DALSEGNO_ATTEMPT = 2",
            "b",
            signal_outputs=[output("done", n=expression("n"), day=text), output("too")],
            params={"n": long(0)},
            retry_policy={"error_retry_limit": 0},
        ),
        noop("b"),
        params={"day": {"value": "monday", "type": "STRING"}},
    )
    run = place.run("w")
    assert (run.status, told(place)) == (FAILED, [])
    assert place.finish(place.operations.runs.restart(run.id)).status is SUCCEEDED
    assert told(place) == [("done", {"n": 7, "day": "monday"}), ("too", {})]
    found = place.operations.signals.list("done")[0]
    assert found.source == {"workflow_id": "w", "run": 1, "step": "a", "attempt": 2}
    assert found.payload == {"by": "us"}
    again = place.operations.runs.restart(run.id, restart=RestartFrom.STEP, step="a")
    assert place.finish(again).status is FAILED
    assert len(told(place)) == 2


def test_a_job_announces_what_it_found(either_place: Place) -> None:
    place = either_place
    line = '{"maestro_dynamic_output": {"signal_outputs": [{"name": "found", "rows": %d, "day": "monday"}]}}'
    script = "\n".join(f"echo '{line % rows}' >> $DALSEGNO_OUTPUT" for rows in (1, 2))
    run = place.do(shell("a", script, signal_outputs=[output("done")]))
    assert run.status is SUCCEEDED, run.reason
    days = {"day": "monday"}
    assert told(place) == [("done", {}), ("found", {"rows": 1, **days}), ("found", {"rows": 2, **days})]
    assert place.steps(run)["a"].outputs == {}


@pytest.mark.parametrize(
    "line", ['{"maestro_dynamic_output": 1}', '{"maestro_dynamic_output": {"signal_outputs": [{}]}}']
)
def test_a_job_that_announces_nonsense_fails(place: Place, line: str) -> None:
    run = place.do(shell("a", f"echo '{line}' >> $DALSEGNO_OUTPUT", retry_policy={"error_retry_limit": 0}))
    assert run.status is FAILED
    assert "announces" in (run.reason or "")
    assert told(place) == []


def test_loops_and_what_is_skipped(either_place: Place) -> None:
    place = either_place
    place.push(
        "w",
        foreach(
            "each",
            [1, 2],
            [noop("x", signal_outputs=[output("one", i=expression("i"))])],
            "b",
            signal_outputs=[output("all")],
        ),
        noop("b", signal_dependencies=[on("never")], signal_outputs=[output("skipped")]),
    )
    run = place.start("w")
    until_waiting(place, run, "b")
    place.operations.runs.skip(run.id, step="b")
    assert place.finish(run).status is SUCCEEDED
    found = told(place)
    assert sorted(found[:2], key=str) == [("one", {"i": 1}), ("one", {"i": 2})]
    assert found[2:] == [("all", {})]


def test_what_cannot_be_announced_fails_the_step(either_place: Place) -> None:
    run = either_place.do(noop("a", signal_outputs=[output("done", n=expression("1 / 0"))]))
    assert run.status is FAILED
    assert told(either_place) == []


def test_a_step_wakes_another_run(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a", signal_dependencies=[on("done", n=3)]))
    place.push("v", noop("b", signal_outputs=[output("done", n=long(3))]))
    run = place.start("w")
    until_waiting(place, run, "a")
    place.start("v")
    place.operations.runs.work()
    assert place.operations.runs.get(run.id).status is SUCCEEDED
