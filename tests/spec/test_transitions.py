"""Which step follows on which, in every spelling."""

from __future__ import annotations

import textwrap

import pytest

from tests.spec.texts import jobs, problem, sample, steps

ABCDE = [f"id: {name}, type: NoOp" for name in "abcde"]
CONDITION = "params.getFromStep('a', 'x') == 'y'"


def followers(text: str) -> dict[str, dict[str, str | None]]:
    return {name: dict(step.successors) for name, step in steps(text).items() if step.successors}


def of_dag(dag: str) -> dict[str, dict[str, str | None]]:
    return followers(jobs(*ABCDE, dag="\n" + textwrap.indent(textwrap.dedent(dag), "    ")))


def test_orders() -> None:
    assert followers(jobs(*ABCDE, dag="sequential")) == {
        "a": {"b": None},
        "b": {"c": None},
        "c": {"d": None},
        "d": {"e": None},
    }
    assert followers(jobs(*ABCDE, dag="parallel")) == {}
    assert followers(jobs(*ABCDE)) == {}
    assert followers(jobs(*ABCDE, dag="a -> b -> e")) == {"a": {"b": None}, "b": {"e": None}}


REMEDY = {
    "a": {"b": None},
    "b": {"c": CONDITION, "e": f"!(({CONDITION}))"},
    "c": {"d": None},
    "d": {"e": None},
}


@pytest.mark.parametrize(
    "dag",
    [
        f"- a -> b\n- b:\n    IF {CONDITION}: c -> d -> e\n    OTHERWISE: e\n",
        f"- a -> b\n- b:\n  IF {CONDITION}: c -> d -> e\n  OTHERWISE: e\n",
        f"- a -> b\n- b:\n    - IF {CONDITION}: c -> d -> e\n    - OTHERWISE: e\n",
        f'- a -> b\n- b:\n    - "IF {CONDITION}: c -> d -> e"\n    - OTHERWISE e\n',
        f"- a -> b\n- b: |\n    IF {CONDITION}: c -> d -> e\n    OTHERWISE: e\n",
        f"a: b\nb:\n  - if {CONDITION} then c\n  - otherwise e\nc: [d]\nd: [e]\n",
        f'a: [b]\nb: {{"IF {CONDITION}": c -> d, OTHERWISE: e}}\nd: e\n',
        "- a -> b\n- b:\n    IF params.getFromStep('a',\n    'x') ==\n    'y': c -> d ->\n    e\n    OTHERWISE: e\n",
        "- a -> b\n- b:\n  IF params.getFromStep('a',\n  'x') ==\n  'y': c -> d ->\n  e\n  OTHERWISE: e\n",
    ],
)
def test_a_condition_with_chains(dag: str) -> None:
    assert of_dag(dag) == REMEDY


def test_what_stands_below_a_wrapped_condition_keeps_its_line() -> None:
    text = sample("remediation.yaml")
    lines = text.splitlines()
    number = next(index for index, line in enumerate(lines, 1) if "OTHERWISE" in line)
    wrong = text.replace("OTHERWISE: end", "OTHERWISE: ende")
    assert problem(wrong).startswith(f"{number}:9: there is no step 'ende'; did you mean 'end'?")


def test_several_at_once() -> None:
    assert of_dag("- a -> b, c -> d") == {"a": {"b": None, "c": None}, "b": {"d": None}, "c": {"d": None}}


def test_conditions_may_hold_what_separates_them() -> None:
    text = jobs("id: a, type: NoOp, transition: [\"IF (x ? 'THEN b' : ': c') == 'IF' THEN b\"]", *ABCDE[1:])
    assert followers(text) == {"a": {"b": "(x ? 'THEN b' : ': c') == 'IF'"}}


def test_two_ways_to_one_step() -> None:
    text = jobs("id: a, type: NoOp, transition: ['IF x > 1 THEN b', 'IF x < 0 THEN b', OTHERWISE c]", *ABCDE[1:])
    assert followers(text) == {"a": {"b": "(x > 1) || (x < 0)", "c": "!((x > 1) || (x < 0))"}}


def test_a_transition_of_its_own_wins() -> None:
    text = jobs("id: a, type: NoOp, transition: [c]", "id: b, type: NoOp", "id: c, type: NoOp", dag="sequential")
    assert followers(text) == {"a": {"c": None}, "b": {"c": None}}


def test_depends_on_adds_to_the_dag() -> None:
    text = jobs("id: a, type: NoOp", "id: b, type: NoOp", "id: c, type: NoOp, depends_on: [a]", dag="[a -> b]")
    assert followers(text) == {"a": {"b": None, "c": None}}


def test_true_is_no_condition() -> None:
    text = (
        "id: w\nsteps:\n- step: {id: a, type: NoOp, transition: {successors: {b: 'true', c: 'true;', d: true}}}\n"
        + "".join(f"- step: {{id: {name}, type: NoOp}}\n" for name in "bcd")
    )
    assert followers(text) == {"a": {"b": None, "c": None, "d": None}}


@pytest.mark.parametrize(
    ("dag", "expected"),
    [
        ("squential", "9:8: 'squential' is not an order of steps; did you mean 'sequential'?"),
        ("[a -> x]", "9:9: there is no step 'x'"),
        ("{aa: [b]}", "9:9: there is no step 'aa'; did you mean 'a'?"),
        ("[a, x]", "9:12: there is no step 'x'"),
        ("[a -> b -> a]", "9:9: the steps go in a circle: a -> b -> a"),
        ("[a -> a]", "9:9: the steps go in a circle: a -> a"),
        ("{a: [OTHERWISE b, c]}", "9:13: OTHERWISE must be the last transition"),
        ("[5]", "9:9: 5 is not an order of steps; write 'sequential', 'parallel', or chains such as 'a -> b -> c'"),
        ("{OTHERWISE: b}", "9:9: 'OTHERWISE' belongs to no step; indent it under one"),
    ],
)
def test_refusals(dag: str, expected: str) -> None:
    assert problem(jobs(*ABCDE, dag=dag)) == expected


def test_a_transition_that_is_none() -> None:
    assert problem(jobs("id: a, type: NoOp, transition: [IF x b]")).startswith(
        "4:45: 'IF x b' is not a transition; expected"
    )


def test_predecessors_must_agree() -> None:
    text = """\
id: w
steps:
- step: {id: a, type: NoOp, transition: {successors: {b: x > 1}}}
- step:
    id: b
    type: NoOp
    transition:
      predecessors: [c]
"""
    assert problem(text) == "8:7: the predecessors of 'b' are a by the transitions, not c"


def test_only_steps_of_one_list_follow_each_other() -> None:
    text = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: each
        params: {i: [1]}
        jobs: [{job: {id: inner, type: NoOp}}]
    - job: {id: outer, type: NoOp, transition: [inner]}
"""
    assert problem(text) == (
        "9:49: there is no step 'inner'; it stands in another loop, and only steps of one list can follow each other"
    )
