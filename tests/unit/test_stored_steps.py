"""Steps read from a stored definition are those of the workflow."""

from __future__ import annotations

from datetime import UTC, datetime

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.scopes import kind_of
from dalsegno.operations.stored_steps import stored_steps, with_loops
from dalsegno.spec import canonical, workflows

TEXT = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Shell, shell: {script: echo}}
    - foreach:
        id: each
        loop_params: {x: [1, 2]}
        jobs:
          - job: {id: b, type: NoOp}
          - foreach:
              id: inner
              loop_params: {y: [1]}
              jobs:
                - job: {id: c, type: Sleep, sleep: {seconds: 1}}
    - subworkflow: {id: s, subworkflow_id: other}
"""


def test_ids_types_and_loops() -> None:
    definition = workflows.read(TEXT, now=datetime.now(UTC), file="w.yaml").definition
    blueprint = Blueprint(definition, 1)
    found = list(with_loops(stored_steps(canonical.to_json(definition))))
    assert [(step.id, step.type) for step, _ in found] == [(s.id, kind_of(s)) for s in blueprint.steps.values()]
    assert {step.id: loop for step, loop in found if loop} == blueprint.loop_of
    assert [step.type for step, _ in found] == ["Shell", "foreach", "NoOp", "foreach", "Sleep", "subworkflow"]
