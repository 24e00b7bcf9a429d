"""What people can do to runs while they go on, and afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dalsegno.errors import UnknownName, UserError
from dalsegno.model.runs import Ending, RestartFrom
from dalsegno.operations.admin import Limit
from dalsegno.operations.run_views import RunView
from tests.engine.support import (
    FAILED,
    STOPPED,
    SUCCEEDED,
    TIMED_OUT,
    Json,
    Place,
    foreach,
    long,
    noop,
    shell,
    step,
    subworkflow,
)

NO_RETRY = {"error_retry_limit": 0}


@contextmanager
def going_on(place: Place, run: RunView) -> Iterator[Callable[[], RunView]]:
    """A run that an engine runs in another thread; what is yielded waits for its end."""
    thread = threading.Thread(target=place.operations.runs.finish, args=(run.id,))
    thread.start()

    def ended() -> RunView:
        thread.join(60)
        assert not thread.is_alive(), place.statuses(run)
        return place.operations.runs.get(run.id)

    try:
        yield ended
    finally:
        if not place.operations.runs.get(run.id).status.is_final:
            place.operations.runs.kill(run.id)
        thread.join(60)


def wait_for(condition: Callable[[], bool]) -> None:
    patience = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < patience
        time.sleep(0.02)


def is_alive(place: Place) -> bool:
    """Whether the job that writes its process number to ``pid`` is still there."""
    import os

    try:
        os.kill(int(place.lines("pid")[0]), 0)
    except (ProcessLookupError, IndexError):
        return False
    return True


LONG_JOB = "echo $$ > {folder}/pid; echo begun >> {folder}/out; sleep 300"


@pytest.mark.parametrize(
    ("ending", "status", "of_step"),
    [(Ending.STOP, STOPPED, "STOPPED"), (Ending.KILL, FAILED, "FATALLY_FAILED")],
)
def test_a_run_is_ended_with_its_jobs(either_place: Place, ending: Ending, status: str, of_step: str) -> None:
    place = either_place
    place.push("w", shell("a", LONG_JOB.format(folder=place.folder), "b"), noop("b"))
    run = place.start("w")
    with going_on(place, run) as ended:
        wait_for(lambda: place.lines() == ["begun"])
        (place.operations.runs.kill if ending is Ending.KILL else place.operations.runs.stop)(run.id)
        assert ended().status == status
    assert place.statuses() == {"a": of_step, "b": "NOT_CREATED"}
    assert not is_alive(place)


def test_a_step_is_skipped(place: Place) -> None:
    place.push("w", shell("a", LONG_JOB.format(folder=place.folder), "b"), noop("b"))
    run = place.start("w")
    with going_on(place, run) as ended:
        wait_for(lambda: place.lines() == ["begun"])
        place.operations.runs.skip(run.id, step="a")
        assert ended().status is SUCCEEDED
    assert place.statuses() == {"a": "SKIPPED", "b": "SUCCEEDED"}
    assert not is_alive(place)


def test_what_runs_below_is_stopped_too(place: Place) -> None:
    place.push("child", foreach("each", [1], [shell("a", LONG_JOB.format(folder=place.folder))]))
    place.push("w", subworkflow("sub", "child"))
    run = place.start("w")
    with going_on(place, run) as ended:
        wait_for(lambda: place.lines() == ["begun"])
        place.operations.runs.stop(run.id)
        assert ended().status is STOPPED
    assert place.operations.runs.get("child").status is STOPPED
    assert not is_alive(place)


def test_a_step_that_takes_too_long(place: Place) -> None:
    ended = place.do(shell("a", LONG_JOB.format(folder=place.folder), timeout="1s"))
    assert ended.status is TIMED_OUT
    assert place.statuses() == {"a": "TIMED_OUT"}
    assert not is_alive(place)


def test_steps_without_a_worker_that_take_too_long(place: Place) -> None:
    place.push("child", step("nap", "Sleep", params={"sleep_seconds": long(300)}))
    waiting = {
        "nap": step("nap", "Sleep", params={"sleep_seconds": long(300)}, timeout="1s"),
        "each": foreach("each", [1], [shell("a", LONG_JOB.format(folder=place.folder))], timeout="1s"),
        "sub": subworkflow("sub", "child", timeout="1s"),
    }
    for name, each in waiting.items():
        place.push(f"w.{name}", each)
        ended = place.run(f"w.{name}")
        assert (ended.status, place.statuses(ended)) == (TIMED_OUT, {name: "TIMED_OUT"})
    assert not is_alive(place)
    assert place.operations.runs.get("child").status is TIMED_OUT


def test_a_run_that_takes_too_long(place: Place) -> None:
    ended = place.do(shell("a", LONG_JOB.format(folder=place.folder)), timeout="1s")
    assert ended.status is TIMED_OUT
    assert not is_alive(place)


def test_pause_and_resume(place: Place) -> None:
    place.push("w", shell("a", f"until test -e {place.folder}/go; do sleep 0.05; done", "b"), noop("b"))
    run = place.start("w")
    with going_on(place, run) as ended:
        wait_for(lambda: place.statuses()["a"] == "RUNNING")
        place.operations.runs.pause(run.id)
        (place.folder / "go").touch()
        wait_for(lambda: place.statuses() == {"a": "SUCCEEDED", "b": "PAUSED"})
        place.operations.runs.resume(run.id)
        assert ended().status is SUCCEEDED


def test_a_breakpoint(place: Place) -> None:
    place.push("w", noop("a", "b"), noop("b"))
    place.operations.workflows.set_breakpoint("w", "b")
    run = place.start("w")
    with going_on(place, run) as ended:
        wait_for(lambda: place.statuses() == {"a": "SUCCEEDED", "b": "PAUSED"})
        place.operations.workflows.clear_breakpoint("w", "b")
        place.operations.runs.resume(run.id, "b")
        assert ended().status is SUCCEEDED
    with pytest.raises(UnknownName, match="has no step 'c'"):
        place.operations.workflows.set_breakpoint("w", "c")


def flaky(place: Place, name: str) -> str:
    """Fails until there is a file ``mended``."""
    return f"echo {name} >> {place.folder}/out; test -e {place.folder}/mended"


def test_restart_of_what_failed(either_place: Place) -> None:
    place = either_place
    place.push(
        "w",
        shell("a", f"echo a >> {place.folder}/out", "b"),
        shell("b", flaky(place, "b"), "c", retry_policy=NO_RETRY),
        shell("c", f"echo c >> {place.folder}/out"),
    )
    failed = place.run("w")
    assert failed.status is FAILED
    (place.folder / "mended").touch()
    again = place.finish(place.operations.runs.restart(failed.id))
    assert (again.status, again.attempt, again.number) == (SUCCEEDED, 2, 1)
    assert place.lines() == ["a", "b", "b", "c"]


def test_restart_from_the_beginning_with_other_parameters(place: Place) -> None:
    params = {"word": {"type": "STRING", "value": "one"}}
    place.push("w", shell("a", f"echo ${{word}} >> {place.folder}/out"), params=params)
    first = place.run("w")
    with pytest.raises(UserError, match="nothing is left to run"):
        place.operations.runs.restart(first.id)
    again = place.operations.runs.restart(first.id, restart=RestartFrom.BEGINNING, params={"word": "two"})
    assert place.finish(again).status is SUCCEEDED
    assert place.lines() == ["one", "two"]


def test_what_is_evaluated_again_at_a_restart(place: Place) -> None:
    """Values stay those of the first time, but for parameters that are immutable."""
    clock = {"type": "LONG", "expression": "new DateTime().getMillis()"}
    params = {"kept": clock, "immutable": {**clock, "mode": "immutable"}}
    place.push("w", shell("a", f"echo ${{kept}} ${{immutable}} >> {place.folder}/out"), params=params)
    first = place.run("w")
    place.finish(place.operations.runs.restart(first.id, restart=RestartFrom.BEGINNING))
    (kept, before), (still, after) = (map(int, line.split()) for line in place.lines())
    assert kept == still
    assert before < after


def test_restart_from_a_step(place: Place) -> None:
    place.push(
        "w",
        *(
            shell(name, f"echo {name} >> {place.folder}/out", *then)
            for name, then in [("a", ["b"]), ("b", ["c"]), ("c", [])]
        ),
    )
    first = place.run("w")
    assert place.finish(place.operations.runs.restart(first.id, restart=RestartFrom.STEP, step="b")).status is SUCCEEDED
    assert place.lines() == ["a", "b", "c", "b", "c"]


def test_restart_that_skips(place: Place) -> None:
    place.push("w", shell("a", "exit 1", "b", retry_policy=NO_RETRY), noop("b"))
    failed = place.run("w")
    assert place.finish(place.operations.runs.restart(failed.id, skip=["a"])).status is SUCCEEDED
    assert place.statuses() == {"a": "SKIPPED", "b": "SUCCEEDED"}


CHAIN: list[tuple[str, tuple[str, ...]]] = [("a", ("b",)), ("b", ("c",)), ("c", ())]


@pytest.mark.parametrize("restart", [RestartFrom.BEGINNING, RestartFrom.INCOMPLETE])
def test_a_skipped_step_waits_for_its_turn(place: Place, restart: RestartFrom) -> None:
    """Whether or not the run has reached it before: what follows it comes after what is before it."""
    echo = f"echo $STEP >> {place.folder}/out; test -e {place.folder}/mended"
    steps = [shell(each, echo.replace("$STEP", each), *then, retry_policy=NO_RETRY) for each, then in CHAIN]
    place.push("w", *steps)
    failed = place.run("w")
    (place.folder / "mended").touch()
    assert place.finish(place.operations.runs.restart(failed.id, restart=restart, skip=["b"])).status is SUCCEEDED
    assert place.statuses() == {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED"}
    assert place.lines() == ["a", "a", "c"]


def test_restart_that_skips_all_that_is_left(place: Place) -> None:
    place.push("w", noop("a", "b"), shell("b", "exit 1", retry_policy=NO_RETRY))
    failed = place.run("w")
    restarted = place.operations.runs.restart(failed.id, skip=["b"])
    assert restarted.status is SUCCEEDED
    assert place.statuses() == {"a": "SUCCEEDED", "b": "SKIPPED"}
    assert place.run("w").number == 2


def test_restart_of_failed_iterations(place: Place) -> None:
    body = [
        shell(
            "x",
            f"echo ${{i}} >> {place.folder}/out; test ${{i}} != 2 -o -e {place.folder}/mended",
            retry_policy=NO_RETRY,
        )
    ]
    place.push("w", foreach("each", [1, 2, 3], body, concurrency=1))
    failed = place.run("w")
    assert (failed.status, place.lines()) == (FAILED, ["1", "2"])
    (place.folder / "mended").touch()
    assert place.finish(place.operations.runs.restart(failed.id)).status is SUCCEEDED
    assert place.lines() == ["1", "2", "2", "3"]


def test_restart_of_a_subworkflow_that_failed(either_place: Place) -> None:
    """What the subworkflow has done it does not do again; the second time it gets what has changed since."""
    place = either_place
    place.push(
        "child",
        shell("first", f"echo first >> {place.folder}/out", "second"),
        shell("second", f"test ${{word}} = good && echo ${{word}} >> {place.folder}/out", retry_policy=NO_RETRY),
    )
    place.push("w", subworkflow("sub", "child"), params={"word": {"type": "STRING", "value": "bad"}})
    failed = place.run("w")
    assert failed.status is FAILED
    assert place.finish(place.operations.runs.restart(failed.id)).status is FAILED
    again = place.operations.runs.restart(failed.id, params={"word": "good"})
    assert place.finish(again).status is SUCCEEDED
    assert place.lines() == ["first", "good"]
    child = place.operations.runs.get("child/1")
    assert (child.status, child.attempt) == (SUCCEEDED, 3)

    anew = place.operations.runs.restart(failed.id, restart=RestartFrom.BEGINNING)
    assert place.finish(anew).status is SUCCEEDED
    assert place.lines() == ["first", "good", "first", "good"]
    assert place.steps(again)["sub"].run == "child/2"


def test_only_an_ended_run_is_restarted(place: Place) -> None:
    place.push("w", noop("a"))
    run = place.start("w")
    with pytest.raises(UserError, match="only a run that has ended"):
        place.operations.runs.restart(run.id)
    place.finish(run)
    with pytest.raises(UserError, match="has ended: it is SUCCEEDED"):
        place.operations.runs.stop(run.id)


def statuses_of_runs(place: Place) -> list[str]:
    return [run.status.value for run in reversed(place.operations.runs.list("w"))]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("sequential", ["IN_PROGRESS", "CREATED", "CREATED"]),
        ("strict_sequential", ["IN_PROGRESS", "CREATED", "CREATED"]),
        ("first_only", ["IN_PROGRESS", "STOPPED", "STOPPED"]),
        ("last_only", ["STOPPED", "STOPPED", "IN_PROGRESS"]),
        ({"rule": "parallel", "workflow_concurrency": 2}, ["IN_PROGRESS", "IN_PROGRESS", "CREATED"]),
        ("serial_latest_only", ["IN_PROGRESS", "STOPPED", "CREATED"]),
    ],
)
def test_run_strategies(place: Place, strategy: object, expected: list[str]) -> None:
    place.push("w", noop("a"), properties={"run_strategy": strategy})
    for _ in range(3):
        place.start("w")
    assert statuses_of_runs(place) == expected
    place.operations.runs.work()
    assert all(status in ("SUCCEEDED", "STOPPED") for status in statuses_of_runs(place))


def test_a_failure_blocks_those_behind_it(place: Place) -> None:
    place.push(
        "w", shell("a", flaky(place, "a"), retry_policy=NO_RETRY), properties={"run_strategy": "strict_sequential"}
    )
    first = place.run("w")
    second = place.start("w")
    assert (first.status, second.status.value) == (FAILED, "CREATED")
    (place.folder / "mended").touch()
    place.finish(place.operations.runs.restart(first.id))
    place.operations.runs.work()
    assert statuses_of_runs(place) == ["SUCCEEDED", "SUCCEEDED"]


def test_a_limit_on_a_tag(place: Place) -> None:
    """Each step notes how many are at work; with a limit of two, never more than two."""
    count = (
        f"touch {place.folder}/at-work-${{i}}; ls {place.folder} | grep -c at-work >> {place.folder}/out;"
        f" sleep 0.3; rm {place.folder}/at-work-${{i}}"
    )
    place.push("w", foreach("each", list(range(6)), [shell("x", count, tags=["scarce"])], concurrency=6))
    place.operations.admin.set_limit("scarce", 2)
    assert place.run("w").status is SUCCEEDED
    assert max(map(int, place.lines())) <= 2
    assert place.operations.admin.limits().items == (Limit("scarce", 2, 0),)


def test_the_same_key_is_the_same_run(either_place: Place) -> None:
    place = either_place
    place.push("w", noop("a"), params={"n": long(1)})
    first = place.operations.runs.start("w", {"n": 2}, idempotency_key="k")
    again = place.operations.runs.start("w", {"n": "2"}, idempotency_key="k")
    assert (again.id, again.is_repeated, first.is_repeated) == (first.id, True, False)
    with pytest.raises(UserError, match="with other parameters"):
        place.operations.runs.start("w", {"n": 3}, idempotency_key="k")


def test_versions(place: Place) -> None:
    place.push("w", noop("a"))
    place.push("w", noop("a"))
    place.push("w", noop("a"), noop("b"))
    assert [found.version for found in place.operations.workflows.versions("w")] == [2, 1]
    place.operations.workflows.activate("w", "1")
    place.run("w")
    assert set(place.statuses()) == {"a"}
    with pytest.raises(UnknownName, match="has no version 7"):
        place.operations.runs.start("w", version="7")
    place.operations.workflows.delete("w")
    with pytest.raises(UnknownName, match="There is no workflow 'w'"):
        place.start("w")
    place.push("w", noop("a"))
    assert place.run("w").number == 2


def test_waiting_for_a_permit_costs_nothing(place: Place) -> None:
    place.push("w", *(shell(f"s{number}", "sleep 1") for number in range(3)), properties={"step_concurrency": 1})
    began = time.process_time()
    assert place.run("w").status is SUCCEEDED
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize("restart", [RestartFrom.BEGINNING, RestartFrom.STEP])
def test_a_loop_is_run_again_as_a_whole_if_what_is_before_it_is(place: Place, restart: RestartFrom) -> None:
    """Its iterations may be given something else, such as new rows: those that succeeded before, too."""
    body = [
        shell(
            "a",
            f"cd {place.folder}; echo ${{i}} $(cat given) >> out; test ${{i}} != 2 || test -e go",
            retry_policy={"error_retry_limit": 0},
        )
    ]
    place.push("w", shell("given", "true", "each"), foreach("each", [1, 2], body, concurrency=1))
    (place.folder / "given").write_text("old")
    first = place.start("w")
    assert place.finish(first).status is FAILED
    (place.folder / "given").write_text("new")
    (place.folder / "go").touch()
    step = "given" if restart is RestartFrom.STEP else None
    assert place.finish(place.operations.runs.restart(first.id, restart=restart, step=step)).status is SUCCEEDED
    assert place.lines() == ["1 old", "2 old", "1 new", "2 new"]


def test_a_restart_at_a_step_that_was_not_reached(place: Place) -> None:
    """Nothing would ever start it, so that the run would never end."""
    failing = shell("b", "exit 1", "c", retry_policy={"error_retry_limit": 0})
    assert place.do(shell("a", "true", "b"), failing, shell("c", "true")).status is FAILED
    with pytest.raises(UserError, match="has not reached step 'c'"):
        place.operations.runs.restart("w", restart=RestartFrom.STEP, step="c")
    assert place.finish(place.operations.runs.restart("w", restart=RestartFrom.STEP, step="b")).status is FAILED
    with pytest.raises(UserError, match="has not reached step 'c'"):
        place.operations.runs.restart("w", restart=RestartFrom.STEP, step="c")


def line(place: Place, name: str, *then: str) -> Json:
    """A step that writes its name."""
    return shell(name, f"echo {name} >> {place.folder}/out", *then)


def failing(name: str, *then: str) -> Json:
    return shell(name, "false", *then, retry_policy=NO_RETRY)


def resumed(place: Place, run: RunView, **how: Any) -> RunView:
    return place.finish(place.operations.runs.restart(run.id, version="latest", **how))


def test_restart_with_the_newest_version(either_place: Place) -> None:
    """What succeeded stays; what failed is run as it is written now, and what is new in its place."""
    place = either_place
    place.push("w", line(place, "a", "b"), failing("b", "c"), line(place, "c"))
    failed = place.run("w")
    place.push("w", line(place, "a", "b"), line(place, "b", "new"), line(place, "new", "c"), line(place, "c"))
    assert place.finish(place.operations.runs.restart(failed.id)).status is FAILED
    again = resumed(place, failed)
    assert (again.status, again.version, again.number) == (SUCCEEDED, 2, 1)
    assert place.lines() == ["a", "b", "new", "c"]
    assert set(place.statuses().values()) == {"SUCCEEDED"}


def test_a_restart_takes_parameters_and_timeouts_of_its_version(place: Place) -> None:
    def push(word: str, timeout: str) -> None:
        params = {
            "word": {"type": "STRING", "value": word},
            "text": {"type": "STRING", "value": "${word}!"},
            "same": {"type": "LONG", "expression": "new DateTime().getMillis()"},
        }
        script = f"echo ${{text}} ${{same}} >> {place.folder}/out; test ${{word}} = good || sleep 300"
        place.push("w", shell("a", script), params=params, timeout=timeout)

    push("bad", "1s")
    late = place.run("w")
    assert late.status is TIMED_OUT
    push("good", "1h")
    assert resumed(place, late).status is SUCCEEDED
    (bad, before), (good, after) = (found.split() for found in place.lines())
    assert (bad, good, before) == ("bad!", "good!", after)


def test_a_failed_step_may_be_removed_or_renamed(place: Place) -> None:
    place.push("w", line(place, "a", "b"), failing("b"))
    failed = place.run("w")
    place.push("w", line(place, "a", "other"), line(place, "other"))
    assert resumed(place, failed).status is SUCCEEDED
    assert place.statuses() == {"a": "SUCCEEDED", "other": "SUCCEEDED"}
    assert place.lines() == ["a", "other"]


def test_a_step_that_comes_back_is_not_taken_for_its_earlier_attempt(place: Place) -> None:
    place.push("w", line(place, "a", "b"), failing("b"))
    failed = place.run("w")
    place.push("w", line(place, "a", "other"), failing("other"))
    assert resumed(place, failed).status is FAILED
    place.push("w", line(place, "a", "b"), line(place, "b"))
    assert resumed(place, failed).status is SUCCEEDED
    assert place.lines() == ["a", "b"]


def test_a_condition_that_led_nowhere_is_decided_anew(place: Place) -> None:
    place.push("w", line(place, "a", "b", "c:1 > 2"), failing("b"), line(place, "c", "d"), line(place, "d"))
    failed = place.run("w")
    assert place.statuses()["d"] == "UNSATISFIED"
    place.push("w", line(place, "a", "b", "c"), line(place, "b"), line(place, "c", "d"), line(place, "d"))
    assert resumed(place, failed).status is SUCCEEDED
    assert sorted(place.lines()) == ["a", "b", "c", "d"]


def test_a_condition_that_was_not_met_stays_so(place: Place) -> None:
    place.push("w", line(place, "a", "b", "c:1 > 2"), failing("b"), line(place, "c"))
    failed = place.run("w")
    place.push("w", line(place, "a", "b", "c:1 > 2"), line(place, "b"), line(place, "c"))
    assert resumed(place, failed).status is SUCCEEDED
    assert place.statuses()["c"] == "UNSATISFIED"


@pytest.mark.parametrize("part", ["same", "changed"])
def test_a_loop_of_another_version(place: Place, part: str) -> None:
    """If the loop is the same, its failed iterations run; if it is another one, all of them do."""

    def loop(script: str) -> Json:
        body = [shell("x", f"echo ${{i}} >> {place.folder}/out; {script}", retry_policy=NO_RETRY)]
        return foreach("each", [1, 2, 3], body, "after", concurrency=1)

    script = f"test ${{i}} != 2 -o -e {place.folder}/mended"
    place.push("w", loop(script), failing("after"))
    failed = place.run("w")
    (place.folder / "mended").touch()
    place.push("w", loop(script if part == "same" else "true"), line(place, "after"))
    assert resumed(place, failed).status is SUCCEEDED
    again = ["2", "3"] if part == "same" else ["1", "2", "3"]
    assert place.lines() == ["1", "2", *again, "after"]


def _refused(place: Place) -> list[tuple[list[Json], str]]:
    a, b, c = line(place, "a", "b"), line(place, "b", "c"), line(place, "c")
    return [
        ([b, c], "'a' has completed, and the new version does not have it"),
        ([foreach("each", [1], [line(place, "a")], "b"), b, c], "does not have it"),
        ([noop("a", "b"), b, c], "'a' has completed, and is of another type"),
        ([line(place, "x", "a"), a, b, c], "'a' has completed, and the new version runs 'x' before it"),
        ([a, line(place, "z", "b"), b, c], "runs 'z' before it"),
        (
            [line(place, "b", "a"), line(place, "a", "c"), c],
            "'a' has completed, and the new version runs 'b' before it",
        ),
        ([line(place, "a", "b:1 < 2"), b, c], "nobody knows whether 'b' would have followed it"),
        ([line(place, "a", "c"), line(place, "x", "b"), b, c], "runs 'x' before it"),
        ([line(place, "a", "x"), line(place, "x", "b"), b, c], "runs 'x' before it"),
    ]


def test_a_version_that_would_not_have_come_so_far_is_refused(place: Place) -> None:
    place.push("w", line(place, "a", "b"), line(place, "b", "c"), failing("c"))
    failed = place.run("w")
    for version, (steps, said) in enumerate(_refused(place), start=2):
        place.push("w", *steps)
        with pytest.raises(UserError, match=said) as refused:
            resumed(place, failed)
        assert f"dalsegno restart w/1 --version {version} --from beginning" in (refused.value.hint or "")
        unchanged = place.operations.runs.get(failed.id)
        assert (unchanged.status, unchanged.version, unchanged.attempt) == (FAILED, 1, 1)
        assert place.statuses(failed) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "FATALLY_FAILED"}
    again = resumed(place, failed, restart=RestartFrom.BEGINNING)
    assert (again.status, again.version) == (SUCCEEDED, version)
    assert place.lines() == ["a", "b", "a", "x", "b", "c"]


def test_restart_from_a_step_that_is_new(place: Place) -> None:
    place.push("w", line(place, "a", "b"), line(place, "b"))
    first = place.run("w")
    place.push("w", line(place, "a", "new"), line(place, "new", "b"), line(place, "b"))
    assert resumed(place, first, restart=RestartFrom.STEP, step="new").status is SUCCEEDED
    assert place.lines() == ["a", "b", "new", "b"]


def test_subworkflows_follow_to_their_active_version(either_place: Place) -> None:
    place = either_place
    place.push("leaf", line(place, "x", "y"), failing("y"))
    place.push("child", subworkflow("sub", "leaf"))
    place.push("w", subworkflow("sub", "child"))
    failed = place.run("w")
    place.push("leaf", line(place, "x", "y"), line(place, "y"))
    assert place.finish(place.operations.runs.restart(failed.id)).status is FAILED
    assert resumed(place, failed).status is SUCCEEDED
    assert place.lines() == ["x", "y"]
    assert [(run.number, run.version) for run in place.operations.runs.list("leaf")] == [(1, 2)]


def test_a_subworkflow_that_cannot_follow_fails_its_step(place: Place) -> None:
    place.push("child", line(place, "x", "y"), failing("y"))
    place.push("w", subworkflow("sub", "child"))
    failed = place.run("w")
    place.push("child", line(place, "other"))
    again = resumed(place, failed)
    assert again.status is FAILED
    assert "child/1 cannot resume with version 2. Step 'x' has completed" in (again.reason or "")
    assert resumed(place, failed, restart=RestartFrom.BEGINNING).status is SUCCEEDED
    assert place.lines() == ["x", "other"]


def test_versions_that_a_restart_names(place: Place) -> None:
    place.push("w", failing("a"))
    failed = place.run("w")
    with pytest.raises(UnknownName, match="has no version 7"):
        place.operations.runs.restart(failed.id, version="7")
    place.push("w", line(place, "a"))
    place.operations.workflows.activate("w", "1")
    assert place.finish(place.operations.runs.restart(failed.id, version="active")).status is FAILED
    assert place.finish(place.operations.runs.restart(failed.id, version="2")).status is SUCCEEDED
