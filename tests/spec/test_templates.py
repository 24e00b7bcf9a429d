"""Job templates."""

from __future__ import annotations

import json

import pytest

from dalsegno.errors import InvalidWorkflow
from dalsegno.model.params import InternalMode, Tag
from dalsegno.spec.templates import from_json, read, to_json

TEMPLATE = """
owner: platform
status: beta
definition:
  job_type: report
  step_type: notebook
  version: v2
  description: Runs a notebook that reports.
  tags: [reports, {name: slow, namespace: job_template, why: charts}]
  inherit_from: {base_report: v1}
  params:
    notebook:
      type: MAP
      value:
        input_path: {value: s3://bucket/report.ipynb, type: STRING, internal_mode: PROVIDED}
    title: {type: STRING, internal_mode: REQUIRED}
    '10': {type: LONG}
"""


def test_a_template() -> None:
    found = read(TEMPLATE.replace("    '10': {type: LONG}\n", ""))
    assert (found.job_type, found.step_type, found.version, found.owner) == ("report", "Notebook", "v2", "platform")
    assert found.tags == (Tag("reports"), Tag("slow", "JOB_TEMPLATE", {"why": "charts"}))
    assert found.inherit_from == {"base_report": "v1"}
    assert found.extra == {"status": "beta"}
    assert found.params["title"].internal_mode is InternalMode.REQUIRED
    assert found.params["notebook"].value["input_path"].value == "s3://bucket/report.ipynb"
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


def test_all_problems_at_once() -> None:
    with pytest.raises(InvalidWorkflow) as refused:
        read(TEMPLATE.replace("step_type: notebook", "step_type: notbook").replace("version", "versoin"), file="t.yaml")
    assert str(refused.value).splitlines() == [
        "t.yaml:6:14: there is no step type 'notbook'; did you mean 'Notebook'?",
        "t.yaml:7:3: the definition of a job template has no field 'versoin'; did you mean 'version'?",
        "t.yaml:17:5: '10' cannot be the name of a parameter: a name is made of letters, digits, '.', '-' and '_', "
        "and begins with a letter or '_'",
        "t.yaml:17:11: '10' needs one of 'value', 'expression' and 'secret', found none",
    ]


@pytest.mark.parametrize("text", ["", "[1]", "a: 1", "definition: x", "definition: {}"])
def test_what_is_no_template(text: str) -> None:
    with pytest.raises(InvalidWorkflow):
        read(text)
