"""workflows, cat and sql."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dalsegno.errors import UserError
from dalsegno.operations.querying import query
from dalsegno.settings import Settings
from tests.acceptance.conftest import Commands

NIGHTLY = """
Workflow:
  id: nightly
  jobs:
    - job: {id: say, type: Shell, shell: {file: say.sh}}
  dag: sequential
Trigger:
  cron: "0 3 * * *"
  timezone: UTC
"""


def pushed(run: Commands) -> None:
    (run.folder / "say.sh").write_text("echo hello\n")
    (run.folder / "nightly.yaml").write_text(NIGHTLY)
    assert run("push", "nightly.yaml").code == 0


def test_workflows_with_their_last_and_next_run(run: Commands) -> None:
    assert "dalsegno push FILE" in run("workflows").out
    pushed(run)
    [before] = run.json("workflows")
    assert (before["id"], before["active_version"], before["last_run"]) == ("nightly", 1, None)
    assert before["next_due_at"].endswith("03:00:00+00:00")
    assert run("run", "nightly").code == 0
    [after] = run.json("workflows")
    assert (after["last_run"]["number"], after["last_run"]["status"]) == (1, "SUCCEEDED")
    shown = run("workflows").out.splitlines()
    assert shown[0].split() == ["WORKFLOW", "VERSION", "LAST", "RUN", "STARTED", "NEXT", "BEHIND"]
    assert "✔ nightly/1 SUCCEEDED" in shown[1] and "03:00 UTC" in shown[1]


def test_a_stored_definition_can_be_pushed_back(run: Commands, tmp_path: Path) -> None:
    pushed(run)
    text = run("cat", "nightly").out
    assert json.loads(text)["workflow"]["id"] == "nightly"
    (run.folder / "again.json").write_text(text)
    assert "at version 1 already" in run("push", "again.json").out
    (run.folder / "say.sh").write_text("echo other\n")
    assert run("cat", "nightly", "--file", "say.sh").out == "echo hello\n"
    missing = run("cat", "nightly", "--file", "no.sh")
    assert missing.code == 2
    assert "it has say.sh" in missing.err
    assert run("cat", "nightly", "--version", "7").code == 2


@pytest.mark.parametrize(
    ("sql", "because"),
    [
        ("DROP TABLE lake.db.t", "DROP TABLE is not one"),
        ("INSERT INTO lake.db.t VALUES (1)", "INSERT INTO is not one"),
        ("SELECT 1; SELECT 2", "expected one query"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", "may call anything"),
        ("", "is not one"),
    ],
)
def test_nothing_but_a_query_is_executed(settings: Settings, sql: str, because: str) -> None:
    with pytest.raises(UserError, match=because):
        query(settings, sql, limit=1, say=print)


@pytest.mark.spark
def test_the_rows_of_a_query(settings: Settings) -> None:
    found = query(settings, "SELECT id, NULL AS n, array(1, 2) AS a FROM range(5)", limit=3, say=print)
    assert found.columns == ("id", "n", "a")
    assert found.rows == ((0, None, [1, 2]), (1, None, [1, 2]), (2, None, [1, 2]))
    assert found.has_more
    with pytest.raises(UserError, match="nothing"):
        query(settings, "SELECT nothing", limit=1, say=print)
