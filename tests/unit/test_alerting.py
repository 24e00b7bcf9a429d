"""Whom a workflow wants to tell what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dalsegno.model.alerting import Alerting
from dalsegno.spec.alerting import alerting_of
from dalsegno.spec.canonical import to_json
from dalsegno.spec.workflows import read

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("alerting", "expected"),
    [
        ({}, Alerting()),
        ({"emails": ["ada@example.com"]}, Alerting()),
        ({"on_failure": "ops"}, Alerting(("ops",), ("ops",), None, ("ops",), None)),
        (
            {"on_failure": ["a"], "on_late": ["b"], "complete_within": "2h", "max_lag": 3600},
            Alerting(("a",), ("b",), 2 * HOUR, ("a",), HOUR),
        ),
    ],
)
def test_what_is_meant(alerting: dict[str, Any], expected: Alerting) -> None:
    assert alerting_of({"alerting": alerting}) == expected


def test_nobody_is_told_where_that_is_disabled() -> None:
    assert alerting_of({"alerting": {"on_failure": "ops"}, "alerting_disabled": True}) == Alerting()


@pytest.mark.parametrize(
    "text",
    [
        "Workflow:\n  id: w\n  alerting: {ALERTING}\n  jobs: [{job: {id: a, type: NoOp}}]",
        "properties:\n  alerting: {ALERTING}\nworkflow: {id: w, steps: [{step: {id: a, type: NoOp}}]}",
    ],
)
def test_both_dialects_keep_all_that_was_written(text: str) -> None:
    written = "on_failure: [ops], complete_within: 2h, slack: {users: [ada]}"
    found = read(text.replace("ALERTING", written), now=datetime(2026, 1, 1, tzinfo=UTC))
    properties = to_json(found.definition)["properties"]
    assert properties["alerting"] == {"on_failure": ["ops"], "complete_within": "2h", "slack": {"users": ["ada"]}}
    assert alerting_of(properties).complete_within == 2 * HOUR


def test_a_misspelt_field_is_kept_with_a_warning() -> None:
    text = "Workflow:\n  id: w\n  alerting: {on_failures: [ops]}\n  jobs: [{job: {id: a, type: NoOp}}]"
    [warning] = read(text, now=datetime(2026, 1, 1, tzinfo=UTC)).warnings
    assert str(warning) == "'on_failures' is kept, but means nothing to dalsegno; did you mean 'on_failure'?"
    assert (warning.line, warning.column) == (3, 14)
