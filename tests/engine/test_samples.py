"""Workflows in Maestro's JSON, each like one of the samples that come with Maestro, run to the end they have there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.operations.run_views import RunView
from dalsegno.triggers.signal_triggers.engine import SignalTriggers
from tests.engine.support import FAILED, STOPPED, SUCCEEDED, Place

SAMPLES = Path(__file__).parent / "samples"

ALL_SUCCEED = {
    "retries-and-timeouts": ["first", "nap", "long_nap", "last"],
    "foreach": ["before", "each", "after"],
    "nested-foreach": ["years"],
    "while": ["again", "after"],
    "parent": ["begin", "waits", "forgets", "explicit", "end"],
    "foreach-of-subworkflows": ["each", "after"],
}


def pushed(place: Place, *names: str) -> None:
    for name in names:
        place.operations.workflows.push_file(SAMPLES / f"{name}.json")


def param(place: Place, run: RunView | str, step: str, name: str) -> Any:
    return place.steps(run)[step].params[name]["value"]


@pytest.mark.parametrize("name", ALL_SUCCEED)
def test_all_steps_succeed(place: Place, name: str) -> None:
    pushed(place, "conditional", "while", "foreach", name)
    assert place.run(name).status is SUCCEEDED
    assert place.statuses(name) == dict.fromkeys(ALL_SUCCEED[name], "SUCCEEDED")


@pytest.mark.parametrize(("size", "taken", "left"), [(3, "few", "many"), (5, "many", "few")])
def test_conditions(place: Place, size: int, taken: str, left: str) -> None:
    pushed(place, "conditional")
    assert place.run("conditional", size=size).status is SUCCEEDED
    assert place.statuses("conditional") == {
        "count": "SUCCEEDED",
        taken: "SUCCEEDED",
        left: "UNSATISFIED",
        "report": "SUCCEEDED",
    }


def test_parameters_of_other_steps(place: Place) -> None:
    pushed(place, "retries-and-timeouts")
    assert param(place, place.run("retries-and-timeouts"), "last", "slept") == "1 and 1"


def test_parameters_of_iterations(place: Place) -> None:
    pushed(place, "foreach")
    ended = place.run("foreach")
    assert place.steps(ended)["each"].iterations == {"total": 6, "SUCCEEDED": 6}
    days = (20260101, 20260102, 20260103)
    assert param(place, ended, "after", "names") == [f"{region}-{day}" for region in ("eu", "us") for day in days]


def test_iterations_of_a_while(place: Place) -> None:
    pushed(place, "while")
    assert place.steps(place.run("while"))["again"].iterations == {"total": 4, "SUCCEEDED": 4}


def test_subworkflows(place: Place) -> None:
    pushed(place, "conditional", "while", "foreach", "parent")
    ended = place.run("parent")
    assert param(place, ended, "end", "total") == 40
    started = {step.id: step.run for step in place.steps(ended).values() if step.run}
    assert started == {"waits": "conditional/1", "forgets": "while/1", "explicit": "foreach/1"}
    assert place.statuses("conditional/1")["many"] == "SUCCEEDED"
    assert place.operations.runs.get("while/1").status is SUCCEEDED


def test_a_retry_policy_that_names_what_is_not_there(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    pushed(place, "undefined-retry-policy")
    assert place.run("undefined-retry-policy").status is SUCCEEDED
    assert place.lines() == ["written"]
    assert "retry_policy has no value, so the default counts" in caplog.text
    assert "nobody" in caplog.text


# Run strategies.


def statuses(place: Place, workflow_id: str) -> list[RunStatus]:
    """Oldest first."""
    return [run.status for run in reversed(place.operations.runs.list(workflow_id))]


def test_sequential(place: Place) -> None:
    pushed(place, "sequential")
    first, second = place.start("sequential", n=1), place.start("sequential", n=2)
    assert statuses(place, "sequential") == [RunStatus.IN_PROGRESS, RunStatus.CREATED]
    (place.folder / "bad").touch()
    assert place.finish(first).status is FAILED
    (place.folder / "bad").unlink()
    assert place.finish(second).status is SUCCEEDED
    assert place.lines() == ["1", "2"]


def test_strict_sequential(place: Place) -> None:
    pushed(place, "strict-sequential")
    (place.folder / "bad").touch()
    first = place.run("strict-sequential", n=1)
    second = place.start("strict-sequential", n=2)
    assert statuses(place, "strict-sequential") == [FAILED, RunStatus.CREATED]
    waits_for = place.operations.runs.waits_for(second)
    assert waits_for is not None and waits_for.id == first.id
    (place.folder / "bad").unlink()
    place.operations.runs.restart(first.id)
    assert place.finish(first).status is SUCCEEDED
    assert place.finish(second).status is SUCCEEDED
    assert place.lines() == ["1", "1", "2"]


def test_first_only(place: Place) -> None:
    pushed(place, "first-only")
    first, second = place.start("first-only", n=1), place.start("first-only", n=2)
    assert second.status is STOPPED
    assert place.finish(first).status is SUCCEEDED
    assert place.run("first-only", n=3).status is SUCCEEDED
    assert place.lines() == ["1", "3"]


def test_last_only(place: Place) -> None:
    pushed(place, "last-only")
    place.start("last-only", n=1)
    second = place.start("last-only", n=2)
    assert statuses(place, "last-only") == [STOPPED, RunStatus.IN_PROGRESS]
    assert place.finish(second).status is SUCCEEDED
    assert place.lines() == ["2"]


def test_signals(place: Place) -> None:
    """As Maestro's README of signals announces them."""
    pushed(place, "signals")
    operations = place.operations
    tell = operations.signals.announce
    tell("signal_a", {"foo": "bat", "watermark": 123456, "updated_by": "tester"})
    tell("signal_b", {"bar": "baz", "watermark": 123456, "posted_by": "tester"})
    SignalTriggers(
        operations.store,
        operations.machinery.versions.active,
        operations.machinery.start_by_trigger,
        operations.machinery.scopes,
    ).fire(operations.clock())
    [run] = operations.runs.list("signals")
    assert place.statuses(run)["job.1"] == "WAITING_FOR_SIGNALS"

    tell("db/test/table1", {"vtts_utc_dateint": "20500101", "vtts_utc_hour": "00"})
    tell("db/test/table2", {"vtts_utc_dateint": "20500101", "vtts_utc_hour": "00"})
    assert place.finish(run).status is SUCCEEDED
    found = {name: param(place, run, "job.1", name) for name in ("of_trigger", "of_signal", "of_dependency")}
    assert found == {"of_trigger": "bar", "of_signal": 123456, "of_dependency": "20500101"}
    announced = [(each.name, each.params) for each in reversed(operations.signals.list(limit=2))]
    assert announced == [("dummy/test/signal1", {"key1": "v1", "key2": 1}), ("dummy/test/signal2", {"key3": "v3"})]
