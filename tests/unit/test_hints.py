"""Hints: the same actions as commands, and as lines of a workflow."""

from __future__ import annotations

import pytest

from dalsegno.hints import Action, Verb, as_commands, in_step
from dalsegno.store.refusals import settle_first

WHOSE = {"table": "lake.db.t", "consumer": "c"}


def test_a_capture_with_other_options() -> None:
    [action] = [Action("To capture it", Verb.CAPTURE, {**WHOSE, "changes": "before_after", "operation": None})]
    assert as_commands([action]) == (
        "To capture it: dalsegno capture lake.db.t --consumer c --changes before_after, without --operation."
    )
    assert in_step([action], "w", "get", "ip_capture") == (
        "To capture it: in step 'get' write 'changes: before_after' under ip_capture and remove 'data_operations', "
        "then push the workflow."
    )


def test_inside_of_a_workflow_nothing_counts_as_processed() -> None:
    assert "dalsegno commit k1" in str(as_commands(settle_first("k1")))
    inside = in_step(settle_first("k1"), "w", "get", "ip_capture")
    assert inside == "To abandon it, so that the next capture covers its rows: dalsegno abandon k1."


@pytest.mark.parametrize("name", ["a b", "$(rm -rf .)", "it's"])
def test_names_are_quoted(name: str) -> None:
    said = as_commands([Action("Again", Verb.REFRESH, {"table": "lake.db.t", "consumer": name})])
    assert said is not None
    assert f"--consumer '{name}'" in said or "it'\"'\"'s" in said


def test_no_action_is_no_hint() -> None:
    assert as_commands([]) is None
