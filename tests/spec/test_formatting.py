"""A text in the documented style says the same as before."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from dalsegno.errors import InvalidWorkflow, UserError
from dalsegno.spec.formatting import formatted
from dalsegno.spec.workflows import read
from tests.spec.texts import SAMPLES, sample


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.name)
def test_the_meaning_stays_and_so_does_the_result(file: Path) -> None:
    once = formatted(file.read_bytes(), file=file.name)
    assert read(once).definition == read(file.read_bytes()).definition
    assert formatted(once) == once


def test_style() -> None:
    before = textwrap.dedent("""\
        # Who asks for it: the media team.


        Workflow:   # the only one
            dag: sequential
            jobs:
            -   job:
                    type: "NoOp"   # does nothing
                    id: 'a'
                    # Values that look like others stay texts.
                    code: "012"
                    answer: 'yes'
                    flag: "true"
                    at: '12:30'
                    tables: ["x", y]   # two
                    note: "it's: #1"
                    script: "line one\\nline two\\n"

            # The second.
            - job: {id: b, type: NoOp, empty: {}, none: [], 'typed<long>': 5, list: [a b, "c, d"]}
            id: w
            long: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen 17
        # The end.
        """)
    after = textwrap.dedent("""\
        # Who asks for it: the media team.
        Workflow:  # the only one
          id: w
          long: >-
            one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
            17
          jobs:
            - job:
                id: a
                type: NoOp  # does nothing
                # Values that look like others stay texts.
                code: '012'
                answer: yes
                flag: 'true'
                at: 12:30
                tables: [x, y]  # two
                note: 'it''s: #1'
                script: |
                  line one
                  line two

            # The second.
            - job:
                id: b
                type: NoOp
                empty: {}
                none: []
                typed<long>: 5
                list:
                  - a b
                  - c, d
          dag: sequential
        # The end.
        """)
    assert formatted(before) == after
    assert formatted(after) == after


def test_the_order_of_parameters_stays() -> None:
    text = textwrap.dedent("""\
        Workflow:
          id: w
          jobs:
            - foreach:
                id: f
                loop_params:
                  type: [1]
                  id: [2]
                jobs:
                  - job:
                      id: a
                      type: NoOp
        """)
    assert formatted(text) == text


def test_json_stays_json() -> None:
    found = formatted('{"workflow":{"steps":[{"step":{"type":"NoOp","id":"a"}}],"id":"w","name":"ä"}}')
    assert found.startswith('{\n  "workflow": {\n    "id": "w",\n    "name": "ä",\n    "steps": [')


def test_wrapped_conditions_become_one_line() -> None:
    assert (
        "        IF params.getFromStep('nightly', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR': "
        "repair -> again -> end\n"
    ) in formatted(sample("remediation.yaml"))


def test_anchors_are_not_written_out_unasked() -> None:
    text = "Workflow:\n  id: w\n  a: &x {k: 1}\n  b: *x\n  jobs: [{job: {id: a, type: NoOp}}]\n"
    with pytest.raises(UserError, match="'force'"):
        formatted(text)
    assert formatted(text, force=True).count("k: 1") == 2


def test_a_comment_without_a_place_is_not_lost() -> None:
    text = "Workflow:\n  id: w\n  jobs: [  # here\n    # and here\n    {job: {id: a, type: NoOp}}\n    # there\n  ]\n"
    found = formatted(text)
    assert [found.count(comment) for comment in ("# here", "# and here", "# there")] == [1, 1, 1]


def test_what_is_not_valid_is_left_alone() -> None:
    with pytest.raises(InvalidWorkflow):
        formatted("Workflow: {id: w}")


def test_templates_need_not_be_known() -> None:
    text = "Workflow:\n  id: w\n  jobs:\n    - job:\n        id: a\n        type: my_template\n"
    assert formatted(text) == text
