"""Job templates: a step type wrapped into one of its own."""

from __future__ import annotations

import pytest

from dalsegno.errors import InvalidWorkflow, UnknownName
from tests.engine.support import FAILED, SUCCEEDED, Place

GREET = """
owner: ada
definition:
  job_type: greet
  step_type: Shell
  description: greets somebody
  params:
    who: {type: STRING, internal_mode: REQUIRED}
    greeting: {type: STRING, value: hello}
    shell:
      type: MAP
      value:
        script: {type: STRING, value: 'echo "${greeting} ${who}" >> %s/out'}
"""

WORKFLOW = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: greet, who: world}
    - job: {id: b, type: greet, who: you, greeting: good evening}
  dag: sequential
"""


def test_a_template_runs_as_the_type_it_wraps(place: Place) -> None:
    place.operations.templates.push(GREET % place.folder)
    place.operations.workflows.push(WORKFLOW)
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["hello world", "good evening you"]


def test_a_parameter_that_must_be_given(place: Place) -> None:
    place.operations.templates.push(GREET % place.folder)
    place.operations.workflows.push(WORKFLOW.replace(", who: world", ""))
    ended = place.run("w")
    assert ended.status is FAILED
    assert "who" in (ended.reason or "")


def test_versions_and_inheritance(place: Place) -> None:
    place.operations.templates.push(GREET % place.folder)
    polite = """
definition:
  job_type: polite
  step_type: Shell
  version: v2
  inherit_from: {greet: default}
  params:
    greeting: {type: STRING, value: good day}
"""
    place.operations.templates.push(polite)
    place.operations.workflows.push("Workflow: {id: w, jobs: [{job: {id: a, type: polite, who: sir}}]}")
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["good day sir"]
    with pytest.raises(UnknownName, match="has no version 'v3'; it has v2"):
        place.operations.machinery.templates.find("polite", "v3")
    place.operations.templates.delete("polite")
    with pytest.raises(UnknownName, match="There is no job template 'polite'"):
        place.operations.machinery.templates.find("polite")


def test_what_is_no_template(place: Place) -> None:
    with pytest.raises(InvalidWorkflow) as refused:
        place.operations.templates.push("definition: {job_type: x, step_type: Shel, parms: {}}")
    assert [problem.message for problem in refused.value.problems] == [
        "there is no step type 'Shel'",
        "the definition of a job template has no field 'parms'",
    ]
