"""Hints: the same actions as commands, and as lines of a workflow."""

from __future__ import annotations

import pytest

from dalsegno.errors import UserError
from dalsegno.hints import Action, Verb, action, as_command, as_commands, in_step
from dalsegno.operations.json_values import error_fields
from dalsegno.store.refusals import settle_first

WHOSE = {"table": "lake.db.t", "consumer": "c"}


def test_a_capture_with_other_options() -> None:
    [action] = [Action("To capture it", Verb.CAPTURE, {**WHOSE, "changes": "before_after", "operation": None})]
    assert as_commands([action]) == (
        "To capture it: dalsegno capture lake.db.t --consumer c --changes before_after, without --operation"
    )
    assert in_step([action], "w", "get", "ip_capture") == (
        "To capture it: in step 'get' write 'changes: before_after' under ip_capture and remove 'data_operations', "
        "then push the workflow"
    )


def test_inside_of_a_workflow_nothing_counts_as_processed() -> None:
    assert "dalsegno commit k1" in str(as_commands(settle_first("k1")))
    inside = in_step(settle_first("k1"), "w", "get", "ip_capture")
    assert inside == "To abandon it, so that the next capture covers its rows: dalsegno abandon k1"


@pytest.mark.parametrize("name", ["a b", "$(rm -rf .)", "it's"])
def test_names_are_quoted(name: str) -> None:
    said = as_commands([Action("Again", Verb.REFRESH, {"table": "lake.db.t", "consumer": name})])
    assert said is not None
    assert f"--consumer '{name}'" in said or "it'\"'\"'s" in said


def test_no_action_is_no_hint() -> None:
    assert as_commands([]) is None


def test_what_is_missing_is_left_to_whoever_acts() -> None:
    assert as_command(action("Push it", Verb.PUSH)) == "dalsegno push FILE"
    assert as_command(action("See them", Verb.LIST_TABLES)) == "dalsegno catalogs tables"
    assert as_command(action("See them", Verb.LIST_TABLES, catalog="my lake")) == "dalsegno catalogs tables 'my lake'"


def test_options_without_a_value_and_arguments_that_repeat() -> None:
    undo = action("Undo it", Verb.UNDO, capture="k1", step="it's", leave_rows=True)
    assert as_command(undo) == """dalsegno undo k1 --step 'it'"'"'s' --leave-rows"""
    assert as_command(action("Together", Verb.COMMIT, capture=("k1", "k2"))) == "dalsegno commit k1 k2"
    again = action("Again", Verb.RESTART, run="w/1", from_="beginning", skip=("a", "b"))
    assert as_command(again) == "dalsegno restart w/1 --from beginning --skip a --skip b"


def test_an_error_says_the_same_to_people_and_programs() -> None:
    error = UserError("No.", hint="Look first.", actions=[action("Then", Verb.RESTART, run="w/1", from_="beginning")])
    assert str(error) == "No. Look first. Then: dalsegno restart w/1 --from beginning"
    assert error_fields(error) == {
        "code": "UserError",
        "message": "No.",
        "hint": "Look first. Then: dalsegno restart w/1 --from beginning",
        "actions": [{"aim": "Then", "verb": "restart", "arguments": {"run": "w/1", "from": "beginning"}}],
    }
    assert error_fields(UserError("No."))["actions"] == []


def test_advice_stays_inside_of_a_workflow() -> None:
    actions = [action("To see it", Verb.SHOW, run="w/1"), action("To list them", Verb.CAPTURE, partitions=True)]
    inside = in_step(actions, "w", "get", "ip_capture", "Look first.")
    assert inside == (
        "Look first. To see it: dalsegno show w/1. "
        "To list them: in step 'get' write 'partitions: true' under ip_capture, then push the workflow"
    )
    # A capture without other options is not a line of a step.
    plain = [action("Capture it", Verb.CAPTURE, table="lake.db.t", consumer="c")]
    assert in_step(plain, "w", "get", "ip_capture") == "Capture it: dalsegno capture lake.db.t --consumer c"
