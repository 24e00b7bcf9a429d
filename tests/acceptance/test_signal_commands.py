"""dalsegno signal, as people call it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import Commands


def test_announce_and_list(run: Commands) -> None:
    assert run("signal", "list").out == "There are no signals.\n"
    done = run("signal", "announce", "plays/complete", "--param", "day=20261116", "--param", "country=DE", "--key", "k")
    assert (done.code, done.out, done.err) == (0, "Announced plays/complete as signal 1.\n", "")
    again = run(
        "signal", "announce", "plays/complete", "--param", "day=20261116", "--param", "country=DE", "--key", "k"
    )
    assert again.out == "Signal 1, plays/complete, was announced before with the same key.\n"
    run("signal", "announce", "other")
    assert "\n 1  plays/complete  day=20261116, country=DE  2" in run("signal", "list", "plays/complete").out
    assert len(run("signal", "list").out.splitlines()) == 3
    assert len(run("signal", "list", "--limit", "1").out.splitlines()) == 2


def params(run: Commands, *pairs: str) -> Any:
    given = [word for pair in pairs for word in ("--param", pair)]
    return run.json("signal", "announce", "x", *given)["params"]


def test_types(run: Commands) -> None:
    found = params(run, "a=7", "b=-7", "c=007", "d:STRING=7", "e:long=007", "f=", "g=x=y")
    assert found == {"a": 7, "b": -7, "c": "007", "d": "7", "e": 7, "f": "", "g": "x=y"}
    found = params(run, "a=9223372036854775807", "b=9223372036854775808", "c=-0")
    assert found == {"a": 2**63 - 1, "b": str(2**63), "c": "-0"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x", "--param", "a"], "'a' is not a parameter: expected NAME=VALUE."),
        (["x", "--param", "a:DOUBLE=1"], "'DOUBLE' is not a type of a signal's parameter: expected STRING or LONG."),
        (["x", "--param", "a:LONG=one"], "The parameter 'a' is a LONG"),
        (["a*b"], "'a*b' cannot be a signal"),
    ],
)
def test_mistakes(run: Commands, arguments: list[str], says: str) -> None:
    done = run("signal", "announce", *arguments)
    assert done.code == 2
    assert says in done.err


def test_show_says_what_a_step_waits_for(run: Commands) -> None:
    text = """\
Workflow:
  id: w
  jobs:
    - job:
        id: a
        type: NoOp
        signal_dependencies:
          - name: plays/complete
            match: {day: {operator: '>=', value: 5}, country: DE}
          - prices
"""
    (run.folder / "w.yaml").write_text(text)
    run("push", "w.yaml")
    run("run", "w", "--no-wait")
    from dalsegno.operations.facade import Operations

    with Operations.open() as operations:
        operations.machinery.engine().run(lambda: bool(operations.runs.steps("w")[0].signals))
    said = run("show", "w").out
    assert "a  NoOp  WAITING_FOR_SIGNALS  for plays/complete (day >= 5, country = DE), prices" in said
    run("signal", "announce", "prices")
    assert "for plays/complete (day >= 5, country = DE)\n" in run("show", "w").out
    [step] = run.json("show", "w")["steps"]
    assert step["signals"][1] == {"name": "prices", "match": {}, "signal_id": 1}
