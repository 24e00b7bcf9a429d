"""push, run, validate and versions with files that steps name."""

from __future__ import annotations

import re

from tests.acceptance.conftest import Commands

WORKFLOW = """Workflow:
  id: w
  jobs:
    - job:
        id: a
        type: Shell
        shell: {file: say.sh}
    - job:
        id: b
        type: Shell
        shell: {file: '${word}.sh'}
  params: {word: say}
  dag: parallel
"""
WARNING = (
    "w.yaml:11:23: warning: shell.file is only known at run time: the file is read then, "
    "and is not part of the version; write its name without parameters\n"
)


def test_versions_show_their_files_and_what_differs(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(WORKFLOW)
    (run.folder / "say.sh").write_text("echo one\necho two\n")
    pushed = run("push", "w.yaml")
    assert (pushed.code, pushed.err) == (0, WARNING)
    assert run("push", "w.yaml").out == "w is at version 1 already: nothing changed.\n"
    (run.folder / "say.sh").write_text("echo one\necho three")
    ran = run("run", "w.yaml")
    assert ran.code == 0
    assert WARNING in ran.err

    shown = run("versions", "w").out
    without_times = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ +\S+", "", shown)
    assert [line.split() for line in re.sub(r"[0-9a-f]{12}", "HASH", without_times).splitlines()] == [
        ["VERSION", "ACTIVE", "PUSHED", "BY", "FILE", "CONTENT"],
        ["2", "active", "say.sh", "HASH"],
        ["${word}.sh", "read", "at", "run", "time"],
        ["1", "say.sh", "HASH"],
        ["${word}.sh", "read", "at", "run", "time"],
    ]
    [stored, _] = run.json("versions", "w")[0]["files"]
    assert stored["digest"][:12] in shown
    assert (stored["step_id"], stored["field"], stored["name"], stored["size"]) == ("a", "shell.file", "say.sh", 19)

    assert run("versions", "w", "--diff", "1", "latest").out == (
        "--- version 1/say.sh\n+++ version 2/say.sh\n@@ -1,2 +1,2 @@\n"
        " echo one\n-echo two\n+echo three\n\\ No newline at end of file\n"
    )
    assert run("versions", "w", "--diff", "1", "1").out == "Versions 1 and 1 are the same.\n"
    assert run("versions", "w", "--diff", "1", "9").code == 2

    (run.folder / "w.yaml").write_text(WORKFLOW.replace("id: a", "id: c"))
    run("push", "w.yaml")
    found = run.json("versions", "w", "--diff", "2", "3")
    assert (found["first"], found["second"]) == (2, 3)
    assert "--- version 2/definition" in found["diff"]
    assert '-          "id": "a"' in found["diff"]


def test_a_line_ending_is_a_difference(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(WORKFLOW)
    for text in (b"echo one\n", b"echo one\r\n"):
        (run.folder / "say.sh").write_bytes(text)
        run("push", "w.yaml")
    assert "-echo one\n+echo one" in run("versions", "w", "--diff", "1", "2").out


def test_validate_looks_for_files(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(WORKFLOW)
    missing = f"w.yaml:7:23: shell.file: there is no file {run.folder}/say.sh; paths start from {run.folder}\n"
    done = run("validate", "w.yaml")
    assert (done.code, done.err) == (2, missing + WARNING)
    assert run("push", "w.yaml").err == missing + WARNING
    (run.folder / "say.sh").write_text("true")
    done = run("validate", "w.yaml")
    assert (done.code, done.err) == (0, WARNING)


def test_validate_without_settings_that_can_be_read(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(WORKFLOW)
    (run.folder / "dalsegno.toml").write_text("nonsense = 1\n")
    done = run("validate", "w.yaml")
    assert done.code == 0
    assert "w.yaml:1:1: warning: files of steps and channels of alerts are not checked: " in done.err
