"""What is stored reads back equal, and is Maestro's JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dalsegno.model.params import ParamDefinition, ParamSource, ParamType
from dalsegno.spec.canonical import to_json
from dalsegno.spec.workflows import from_json, read
from tests.spec.texts import SAMPLES, definition, jobs, sample


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.name)
def test_samples_read_back_equal(file: Path) -> None:
    found = read(file.read_bytes(), file=file.name)
    assert found.warnings == ()
    written = json.dumps(to_json(found.definition))
    assert from_json(json.loads(written)) == found.definition
    # And as a text, by which it is checked again.
    assert read(written).definition == found.definition


def test_what_maestro_calls_it() -> None:
    written = to_json(definition(sample("canonical.json")))
    assert written["properties"]["run_strategy"] == {"rule": "PARALLEL", "workflow_concurrency": 7}
    assert written["properties"]["owner"] == {"name": "media", "team": "plays"}
    assert written["source"] == "s3://code/plays.jar"
    workflow = written["workflow"]
    assert workflow["time_triggers"][1] == {"type": "PREDEFINED", "expression": "@daily"}
    assert workflow["signal_triggers"][0]["definitions"]["a"] == {
        "match_params": {"w": {"value": 12345, "operator": ">="}},
        "join_keys": ["who"],
    }
    step = workflow["steps"][0]["step"]
    assert step["transition"] == {"successors": {"loop": "days.length > 0", "sub": "true"}}
    assert (step["type"], step["failure_mode"]) == ("NoOp", "IGNORE_FAILURE")
    assert step["retry_policy"]["error_retry_limit"] == 4
    assert workflow["params"]["rate"] == {
        "value": 10.5,
        "type": "DOUBLE",
        "tags": ["money"],
        "validator": "@NotEmpty",
        "unit": "EUR",
    }


def test_what_is_not_said_is_not_written() -> None:
    assert to_json(definition(jobs("id: a, type: NoOp")))["workflow"] == {
        "id": "w",
        "steps": [{"step": {"id": "a", "transition": {"successors": {}}, "type": "NoOp"}}],
    }


def test_what_only_the_system_writes_is_kept() -> None:
    before = definition(jobs("id: a, type: NoOp"))
    param = ParamDefinition(ParamType.LONG, 1, source=ParamSource.SYSTEM)
    changed = replace(before, workflow=replace(before.workflow, params={"RUN_TS": param}))
    assert from_json(json.loads(json.dumps(to_json(changed)))) == changed
