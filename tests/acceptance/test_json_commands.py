"""Commands that only changed something, or printed text, print JSON, too."""

from __future__ import annotations

import io
import json
import sys

import pytest
from pyiceberg.table import Table

from tests.acceptance.conftest import Commands

WORKFLOW = """\
Workflow:
  id: w
  jobs:
    - job: {id: say, type: Shell, shell: {file: say.sh}}
  dag: sequential
"""


@pytest.fixture
def pushed(run: Commands) -> Commands:
    (run.folder / "say.sh").write_text("printf 'one\\ntwo \\377'\n")
    (run.folder / "w.yaml").write_text(WORKFLOW)
    assert run("push", "w.yaml").code == 0
    return run


def test_breakpoints_and_limits(pushed: Commands) -> None:
    place = {"workflow_id": "w", "step_id": "say"}
    assert pushed.json("breakpoints", "set", "w", "say") == {**place, "is_set": True}
    assert pushed.json("breakpoints", "list", "w") == ["say"]
    assert pushed.json("breakpoints", "clear", "w", "say") == {**place, "is_set": False}
    assert pushed("breakpoints", "clear", "w", "say", "--json").json()["error"]["code"] == "UnknownName"
    assert pushed.json("limits", "set", "warehouse", "2") == {"tag": "warehouse", "most": 2}
    assert pushed.json("limits", "clear", "warehouse") == {"tag": "warehouse", "most": None}


def test_runs_and_their_logs(pushed: Commands) -> None:
    assert pushed.json("work") == []
    pushed("run", "w", "--no-wait")
    [ended] = pushed.json("work")
    assert (ended["workflow_id"], ended["number"], ended["status"]) == ("w", 1, "SUCCEEDED")
    assert pushed.json("logs", "w", "say") == {"run": "w/1", "step": "say", "log": "one\ntwo \\xff"}
    assert pushed.json("logs", "w", "say", "--follow")["log"] == "one\ntwo \\xff"
    missing = pushed("logs", "w", "no", "--json")
    assert (missing.code, missing.json()["error"]["code"]) == (2, "UnknownName")


def test_definitions_and_files(pushed: Commands) -> None:
    printed = pushed("cat", "w", "--json").out
    assert printed.count("\n") == 1
    assert json.loads(printed) == json.loads(pushed("cat", "w").out)
    assert pushed.json("cat", "w", "--file", "say.sh") == {"name": "say.sh", "text": "printf 'one\\ntwo \\377'\n"}


def test_formatting(pushed: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    (pushed.folder / "odd.yaml").write_text(WORKFLOW.replace("  id: w", "  'id':    w"))
    found = pushed("format", "odd.yaml", "--check", "--json")
    assert (found.code, found.json()) == (2, {"changed": ["odd.yaml"], "is_written": False, "text": None})
    assert pushed.json("format", "odd.yaml") == {"changed": ["odd.yaml"], "is_written": True, "text": None}
    assert pushed.json("format", "odd.yaml")["changed"] == []
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WORKFLOW.encode())))
    assert pushed.json("format", "-")["text"].startswith("Workflow:")


def test_templates(pushed: Commands) -> None:
    (pushed.folder / "t.yaml").write_text("definition: {job_type: greet, step_type: NoOp, description: Says it.}\n")
    made = pushed.json("templates", "push", "t.yaml")
    assert (made["template"]["job_type"], made["warnings"]) == ("greet", [])
    header, *listed = pushed("templates", "list").out.splitlines()
    assert header.split() == ["TYPE", "VERSION", "RUNS", "AS", "DESCRIPTION"]
    assert ["greet", "default", "NoOp", "Says", "it."] in [line.split() for line in listed]
    assert pushed.json("templates", "delete", "greet") == {"deleted": "greet", "version": None}
    ours = {"IncrementalAppend", "IncrementalMerge", "IncrementalRange", "IncrementalRowFilter"}
    assert {each["job_type"] for each in pushed.json("templates", "list")} == ours


def test_the_sql_of_a_capture(run: Commands, table: Table) -> None:
    capture = run.json("capture", "db.t", "--consumer", "daily", "--changes", "before_after")["capture"]
    found = run.json("query", capture, "--engine", "duckdb")
    assert found["engine"] == "duckdb"
    assert f"{found['sql']}\n" == run("query", capture, "--engine", "duckdb").out


def test_a_token(run: Commands) -> None:
    assert run.json("server", "token")["token"].startswith("dalsegno_")
