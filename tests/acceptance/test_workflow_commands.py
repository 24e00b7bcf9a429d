"""validate, format and schema, as people call them."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from tests.acceptance.conftest import Commands

GOOD = "Workflow:\n  id: my.flow\n  jobs:\n    - job:\n        id: a\n        type: NoOp\n"
BAD = GOOD.replace("NoOp", "NoOpp") + "        transition: [b]\n"


def test_validate(run: Commands) -> None:
    (run.folder / "good.yaml").write_text(GOOD)
    done = run("validate", "good.yaml")
    assert (done.code, done.out, done.err) == (0, "good.yaml: my.flow is valid, 1 step\n", "")


def test_validate_tells_all_problems_of_all_files(run: Commands) -> None:
    (run.folder / "good.yaml").write_text(GOOD)
    (run.folder / "bad.yaml").write_text(BAD)
    (run.folder / "worse.json").write_text('{"workflow": 1}')
    done = run("validate", "bad.yaml", "good.yaml", "worse.json")
    assert done.code == 2
    assert done.out == "good.yaml: my.flow is valid, 1 step\n"
    assert done.err.splitlines() == [
        "bad.yaml:6:15: there is no step type or job template 'NoOpp'; did you mean 'NoOp'?",
        "bad.yaml:7:22: there is no step 'b'",
        "worse.json:1:14: 'workflow' must be a mapping, found 1",
    ]


def test_validate_for_machines(run: Commands) -> None:
    (run.folder / "bad.yaml").write_text(BAD)
    (run.folder / "good.yaml").write_text(GOOD.replace("        type", "        timeut: 5\n        type"))
    done = run("validate", "bad.yaml", "good.yaml", "--json")
    assert done.code == 2
    bad, good = done.json()["files"]
    assert (bad["valid"], len(bad["problems"])) == (False, 2)
    assert bad["problems"][0] == {
        "severity": "error",
        "message": "there is no step type or job template 'NoOpp'",
        "hint": "did you mean 'NoOp'?",
        "line": 6,
        "column": 15,
        "path": "Workflow.jobs[0].job.type",
    }
    assert (good["valid"], good["workflow_id"], good["steps"]) == (True, "my.flow", 1)
    assert [each["severity"] for each in good["problems"]] == ["warning"]


def test_validate_knows_templates_by_name(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(GOOD.replace("NoOp", "papermill"))
    assert run("validate", "w.yaml").code == 2
    assert run("validate", "w.yaml", "--template", "papermill").code == 0


def test_a_file_that_is_not_there(run: Commands) -> None:
    done = run("validate", "none.yaml")
    assert (done.code, done.err) == (2, "UnknownName: The file none.yaml cannot be read: No such file or directory.\n")


def test_the_standard_input(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert run("validate", "-").out == "-: my.flow is valid, 1 step\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.replace("NoOp", '"NoOp"').encode())))
    assert run("format", "-").out == GOOD


def test_format(run: Commands) -> None:
    file = run.folder / "w.yaml"
    file.write_text(GOOD.replace("NoOp", '"NoOp"'))
    done = run("format", "--check", "w.yaml")
    assert (done.code, done.out) == (2, "would change w.yaml\n")
    assert '"NoOp"' in file.read_text()
    assert run("format", "w.yaml").out == "changed w.yaml\n"
    assert file.read_text() == GOOD
    assert run("format", "w.yaml").out == ""
    assert run("format", "--check", "w.yaml").code == 0


def test_format_leaves_what_is_not_valid(run: Commands) -> None:
    file = run.folder / "w.yaml"
    file.write_text(BAD)
    done = run("format", "w.yaml")
    assert done.code == 2
    assert "w.yaml:7:22: there is no step 'b'" in done.err
    assert file.read_text() == BAD


def test_format_writes_anchors_out_when_told(run: Commands) -> None:
    file = run.folder / "w.yaml"
    file.write_text(GOOD.replace("  jobs", "  a: &x {k: 1}\n  b: *x\n  jobs"))
    assert run("format", "w.yaml").code == 2
    assert run("format", "w.yaml", "--force").code == 0
    assert file.read_text().count("k: 1") == 2


def test_schema(run: Commands) -> None:
    assert json.loads(run("schema").out)["title"] == "A dalsegno workflow"


def test_validating_waits_for_nothing_slow(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(GOOD)
    code = (
        "import sys; sys.argv = ['dalsegno', 'validate', 'w.yaml']\n"
        "from dalsegno.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('SLOW', sorted({m.split('.')[0] for m in sys.modules} "
        "& {'pyiceberg', 'pyarrow', 'sqlalchemy', 'alembic', 'pyspark', 'fastavro', 'rich', 'fsspec'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["w.yaml: my.flow is valid, 1 step", "SLOW []"]
