"""What runs after what, and how a run ends."""

from __future__ import annotations

import pytest

from tests.engine.support import (
    FAILED,
    SUCCEEDED,
    Place,
    expression,
    foreach,
    long,
    loop_while,
    noop,
    shell,
    step,
    subworkflow,
)


def test_a_sequence(either_place: Place) -> None:
    ended = either_place.do(
        shell("a", f"echo a >> {either_place.folder}/out", "b"),
        shell("b", f"echo b >> {either_place.folder}/out", "c"),
        shell("c", f"echo c >> {either_place.folder}/out"),
    )
    assert ended.status is SUCCEEDED
    assert either_place.lines() == ["a", "b", "c"]
    assert set(either_place.statuses().values()) == {"SUCCEEDED"}


def test_conditions_and_a_join(place: Place) -> None:
    ended = place.do(
        noop("a", "b:x > 0", "c:x <= 0", params={"x": long(15)}),
        noop("b", "d"),
        noop("c", "d"),
        noop("d"),
    )
    assert ended.status is SUCCEEDED
    assert place.statuses() == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "UNSATISFIED", "d": "SUCCEEDED"}


def test_parameters_of_earlier_steps(place: Place) -> None:
    ended = place.do(
        shell("a", 'echo {\\"rows\\": 42} >> "$DALSEGNO_OUTPUT"', "b"),
        noop("b", params={"twice": expression("a__rows * 2"), "text": {"type": "STRING", "value": "got ${a.rows}"}}),
    )
    assert ended.status is SUCCEEDED
    found = place.steps()["b"].params
    assert (found["twice"]["value"], found["text"]["value"]) == (84, "got 42")


def test_a_failed_step_lets_others_end(place: Place) -> None:
    ended = place.do(
        shell("bad", "exit 3", "after", retry_policy={"error_retry_limit": 0}),
        shell("slow", f"sleep 1; echo slow >> {place.folder}/out", "later"),
        noop("after"),
        noop("later"),
    )
    assert ended.status is FAILED
    assert "bad" in (ended.reason or "")
    assert place.lines() == ["slow"]
    assert place.statuses() == {
        "bad": "FATALLY_FAILED",
        "slow": "SUCCEEDED",
        "after": "NOT_CREATED",
        "later": "NOT_CREATED",
    }


def test_a_failure_that_ends_the_others(place: Place) -> None:
    ended = place.do(
        shell("bad", "exit 3", retry_policy={"error_retry_limit": 0}, failure_mode="FAIL_IMMEDIATELY"),
        shell("slow", f"sleep 60; echo slow >> {place.folder}/out"),
    )
    assert ended.status is FAILED
    assert place.statuses() == {"bad": "FATALLY_FAILED", "slow": "STOPPED"}
    assert place.lines() == []


def test_a_failure_that_is_ignored(place: Place) -> None:
    ended = place.do(
        shell("bad", "exit 3", "b", retry_policy={"error_retry_limit": 0}, failure_mode="IGNORE_FAILURE"),
        noop("b", "c:params.getFromStep('bad', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'"),
        noop("c"),
    )
    assert ended.status is SUCCEEDED
    assert place.statuses() == {"bad": "COMPLETED_WITH_ERROR", "b": "SUCCEEDED", "c": "SUCCEEDED"}


def test_a_step_is_tried_again(place: Place) -> None:
    policy = {
        "error_retry_limit": 2,
        "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1},
    }
    count = f'echo x >> {place.folder}/out; test "$(wc -l < {place.folder}/out)" -ge 3'
    assert place.do(shell("a", count, retry_policy=policy)).status is SUCCEEDED
    assert place.lines() == ["x", "x", "x"]
    assert place.steps()["a"].attempt == 3


def test_foreach(either_place: Place) -> None:
    ended = either_place.do(
        foreach("each", [1, 2, 3, 4, 5], [noop("x", params={"square": expression("i * i")})], "after", concurrency=2),
        noop("after", params={"all": expression("params.getFromForeach('each', 'x', 'square')", "LONG_ARRAY")}),
    )
    assert ended.status is SUCCEEDED
    steps = either_place.steps()
    assert steps["each"].iterations == {"total": 5, "SUCCEEDED": 5}
    assert steps["after"].params["all"]["value"] == [1, 4, 9, 16, 25]


def test_foreach_over_nothing(place: Place) -> None:
    assert place.do(foreach("each", [], [noop("x")], "after"), noop("after")).status is SUCCEEDED
    assert place.statuses() == {"each": "SUCCEEDED", "after": "SUCCEEDED"}


def test_foreach_inside_of_foreach(place: Place) -> None:
    inner = {
        "foreach": {
            "id": "inner",
            "params": {"loop_params": {"type": "MAP", "value": {"j": {"type": "LONG_ARRAY", "value": [10, 20]}}}},
            "steps": [shell("x", f"echo ${{i}} ${{j}} >> {place.folder}/out")],
            "transition": {},
        }
    }
    assert place.do(foreach("outer", [1, 2], [inner])).status is SUCCEEDED
    assert sorted(place.lines()) == ["1 10", "1 20", "2 10", "2 20"]


def test_a_failed_iteration_fails_the_loop(place: Place) -> None:
    body = [shell("x", f"echo ${{i}} >> {place.folder}/out; test ${{i}} != 2", retry_policy={"error_retry_limit": 0})]
    ended = place.do(foreach("each", [1, 2, 3, 4], body, "after", concurrency=1), noop("after"))
    assert ended.status is FAILED
    assert place.lines() == ["1", "2"]
    assert place.statuses() == {"each": "FATALLY_FAILED", "after": "NOT_CREATED"}


def test_while(place: Place) -> None:
    body = [shell("x", f"echo ${{n}} >> {place.folder}/out", params={"n": expression("n + 1")})]
    assert place.do(loop_while("again", "n < 3", {"n": long(0)}, body)).status is SUCCEEDED
    assert place.lines() == ["1", "2", "3"]


def test_while_that_is_false_at_once(place: Place) -> None:
    assert place.do(loop_while("again", "n < 0", {"n": long(0)}, [noop("x")])).status is SUCCEEDED
    assert place.statuses() == {"again": "SUCCEEDED"}


def test_subworkflow(either_place: Place) -> None:
    place = either_place
    place.push(
        "child", shell("c", f"echo ${{word}} >> {place.folder}/out"), params={"word": {"type": "STRING", "value": "x"}}
    )
    place.push(
        "w", subworkflow("sub", "child", "after"), noop("after"), params={"word": {"type": "STRING", "value": "hi"}}
    )
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["hi"]
    assert place.steps()["sub"].run == "child/1"


def test_subworkflow_with_explicit_params(place: Place) -> None:
    place.push(
        "child",
        shell("c", f"echo ${{word}} >> {place.folder}/out"),
        params={"word": {"type": "STRING", "value": "own"}},
    )
    place.push(
        "w", subworkflow("sub", "child", explicit_params=True), params={"word": {"type": "STRING", "value": "hi"}}
    )
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["own"]


def test_subworkflow_that_nobody_waits_for(place: Place) -> None:
    place.push("child", shell("c", f"sleep 1; echo child >> {place.folder}/out"))
    place.push("w", subworkflow("sub", "child", sync=False))
    assert place.run("w").status is SUCCEEDED
    place.operations.runs.work()
    assert place.lines() == ["child"]


def test_subworkflow_that_fails(place: Place) -> None:
    place.push("child", shell("c", "exit 1", retry_policy={"error_retry_limit": 0}))
    place.push("w", subworkflow("sub", "child", "after"), noop("after"))
    ended = place.run("w")
    assert ended.status is FAILED
    assert "child/1 failed" in (ended.reason or "")


def test_sleep(place: Place) -> None:
    assert place.do(step("nap", "Sleep", params={"sleep_seconds": long(1)})).status is SUCCEEDED
    nap = place.steps()["nap"]
    assert nap.started_at and nap.ended_at and (nap.ended_at - nap.started_at).total_seconds() >= 1


@pytest.mark.parametrize("count", [1000])
def test_many_steps_at_once(place: Place, count: int) -> None:
    assert place.do(*(noop(f"s{number}") for number in range(count))).status is SUCCEEDED
    assert len(place.statuses()) == count


def test_a_parameter_that_cannot_be_evaluated(place: Place) -> None:
    ended = place.do(noop("a", params={"x": expression("1 / 0")}))
    assert ended.status is FAILED
    assert "x" in (ended.reason or "")


def test_a_subworkflow_gets_secrets_by_their_names(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALSEGNO_SECRET_DOOR", "sesame-open")
    place.push("child", shell("c", f'printf %s "${{key}}" | wc -c >> {place.folder}/out'))
    place.push("w", subworkflow("sub", "child"), params={"key": {"type": "STRING", "secret": "door"}})
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["11"]
    stored = (place.folder / ".dalsegno" / "dalsegno.db").read_bytes()
    assert b"sesame-open" not in stored
