"""Who changed what, as commands show it."""

from __future__ import annotations

import getpass
import socket

from tests.acceptance.conftest import Commands

GREET = """
Workflow:
  id: greet
  jobs:
    - job: {id: hello, type: Shell, shell: {script: sleep 60}}
"""


def test_a_killed_run_says_who_and_why(run: Commands) -> None:
    (run.folder / "greet.yaml").write_text(GREET)
    me = f"{getpass.getuser()}@{socket.gethostname()}"
    assert run("push", "greet.yaml").code == 0
    assert run("run", "greet", "--no-wait").code == 0
    killed = run.json("kill", "greet", "--reason", "wrong day")
    assert (killed["status"], killed["ended_by"]) == ("FAILED", me)
    assert f"because killed by {me}: wrong day" in run("show", "greet").out
    assert run("versions", "greet", "--deactivate", "--reason", "until it is mended").code == 0
    found = run.json("history", "greet")
    assert [(each["verb"], each["subject"], each["reason"]) for each in found] == [
        ("workflows.deactivate", "greet", "until it is mended"),
        ("runs.kill", "greet/1", "wrong day"),
        ("runs.start", "greet/1", None),
        ("workflows.push", "greet", None),
    ]
    assert {each["caller"] for each in found} == {me}
    assert run.json("history", "--by", "eve") == []
    assert "There are no changes." in run("history", "nothing").out


def test_pages(run: Commands) -> None:
    for tag in ("a", "b", "c"):
        assert run("limits", "set", tag, "1").code == 0
    first = run("history", "--limit", "2")
    assert [line.split()[5] for line in first.out.splitlines()[1:]] == ["c", "b"]
    cursor = first.err.split("--after ")[1].split(",")[0]
    second = run("history", "--limit", "2", "--after", cursor)
    assert [line.split()[5] for line in second.out.splitlines()[1:]] == ["a"]
    assert not second.err
    wrong = run("history", "--after", "nowhere")
    assert (wrong.code, "does not belong to this list" in wrong.err) == (2, True)
