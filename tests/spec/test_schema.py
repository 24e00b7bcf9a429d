"""The schema for editors accepts what we accept, and offers every word there is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dalsegno.model.params import InternalMode, ParamMode, ParamType
from dalsegno.model.workflow import Criticality, FailureMode, Operator, RunRule
from dalsegno.spec import documents
from dalsegno.spec.nodes import plain
from dalsegno.spec.problems import Problems
from dalsegno.spec.schema import workflow_schema
from dalsegno.triggers.table_triggers.model import Quorum
from dalsegno.triggers.time_triggers.model import CatchUpRule
from tests.spec.texts import SAMPLES, jobs

SCHEMA = workflow_schema()
VALIDATOR = Draft7Validator(SCHEMA)


def values(text: str | bytes) -> Any:
    root = documents.read(text, Problems())
    assert root is not None
    return plain(root)


def test_it_is_a_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)


# A condition that is wrapped over lines is no YAML, so no editor can read it.
READABLE = [file for file in SAMPLES if file.name != "remediation.yaml"]


@pytest.mark.parametrize("file", READABLE, ids=lambda file: file.name)
def test_samples(file: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(values(file.read_bytes()))] == []


@pytest.mark.parametrize(
    "text",
    [
        "x: 1",
        "Workflow: {id: w}",
        "Workflow: {id: 'a b', jobs: [{job: {id: a, type: NoOp}}]}",
        jobs("id: a"),
        jobs("id: a, type: NoOp, failure_mode: never"),
        jobs("id: a, type: NoOp, retry_policy: {tries: 3}"),
        "workflow: {id: w, steps: [{step: {id: a, type: NoOp, x: 1}}]}",
        "Workflow: {id: w, alerting: {on_failure: [a b]}, jobs: [{job: {id: a, type: NoOp}}]}",
        "Workflow: {id: w, oracle: SELECT 1, jobs: [{job: {id: a, type: NoOp}}]}",
        "Trigger: {cron: '@daily', zone: UTC}\n" + jobs("id: a, type: NoOp"),
        "Trigger: {cron: '@daily', catch_up: some}\n" + jobs("id: a, type: NoOp"),
        "Trigger: {cron: '@daily', catch_up: {rule: all, most: 0}}\n" + jobs("id: a, type: NoOp"),
        "Trigger: {incremental: {tables: [a.b], quite: 5s}}\n" + jobs("id: a, type: NoOp"),
        "Trigger: {incremental: {min_rows: 0}}\n" + jobs("id: a, type: NoOp"),
    ],
)
def test_mistakes(text: str) -> None:
    assert not VALIDATOR.is_valid(values(text))


def offered(node: Any) -> set[frozenset[str]]:
    if isinstance(node, dict):
        own = {frozenset(node["enum"])} if isinstance(node.get("enum"), list) else set()
        return own.union(*map(offered, node.values()))
    return set().union(*map(offered, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize(
    "kind", [ParamType, ParamMode, InternalMode, FailureMode, Criticality, RunRule, Operator, CatchUpRule, Quorum]
)
def test_every_word_is_offered(kind: type[StrEnum]) -> None:
    assert frozenset(kind) in offered(SCHEMA)
