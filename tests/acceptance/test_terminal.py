"""What a terminal shows: our colours, local times, lines that fit; and a pipe: none of that."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.processes import command, done, on_a_terminal, without_colours

HOSTILE = """
Workflow:
  id: hostile
  dag: sequential
  jobs:
    - job: {id: lure, type: Shell, shell: {script: "printf '\\\\033[32mSUCCEEDED\\\\033]0;owned\\\\007'; exit 1"}, retry_policy: {error_retry_limit: 0}}
"""  # noqa: E501 - one line, as people write it


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow whose step failed, and printed escape sequences before."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "w.yaml").write_text(HOSTILE)
    assert done(folder, "run", "w.yaml").returncode == 10
    return folder


def test_only_our_colours_reach_a_terminal(project: Path) -> None:
    printed = on_a_terminal(30, 200, project, "show", "hostile")
    assert "\x1b[31m✘\x1b[0m hostile/1 (version 1)  \x1b[31mFAILED\x1b[0m" in printed
    assert "\\u001b[32mSUCCEEDED\\u001b]0;owned\\u0007" in printed
    assert set(re.findall(r"\x1b[^m]*m", printed)) == {"\x1b[31m", "\x1b[0m", "\x1b[2m"}
    assert "⟦" not in printed


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours(project: Path, environment: dict[str, str]) -> None:
    for arguments, code in ((("show", "hostile"), 0), (("runs",), 0), (("show", "none"), 2)):
        assert "\x1b" not in on_a_terminal(30, 200, project, *arguments, environment=environment, ends_with=code)


def test_lists_fit_a_terminal_and_are_whole_in_a_pipe(project: Path) -> None:
    shown = without_colours(on_a_terminal(30, 60, project, "runs")).splitlines()
    assert shown[0].split() == ["RUN", "STATUS", "CREATED", "TOOK", "ATTEMPT", "REASON"]
    assert shown[1].endswith("…") and " ago  " in shown[1]
    assert all(len(line) <= 60 for line in shown)
    whole = done(project, "runs").stdout
    assert "exit code 1" in whole and "…" not in whole and " ago" not in whole


def test_errors_have_colours_on_a_terminal_only(project: Path) -> None:
    printed = on_a_terminal(30, 200, project, "show", "none", ends_with=2)
    assert printed.startswith("\x1b[31mUnknownName\x1b[0m: There is no run 'none'")
    assert "\x1b[2m  → " in printed
    assert done(project, "show", "none").stderr.startswith("UnknownName: There is no run")


def with_environment(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(
        [command(), *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_forced_colours_change_nothing_else(project: Path) -> None:
    forced = with_environment(project, {"FORCE_COLOR": "1"}, "runs")
    plain = done(project, "runs").stdout
    assert forced != plain and without_colours(forced) == plain
    as_json = with_environment(project, {"FORCE_COLOR": "1"}, "show", "hostile", "--json")
    assert as_json == done(project, "show", "hostile", "--json").stdout
    log = with_environment(project, {"FORCE_COLOR": "1"}, "logs", "hostile", "lure")
    assert log == "\x1b[32mSUCCEEDED\x1b]0;owned\x07", "a log is the step's, byte for byte"


def test_times_are_local_for_people_and_utc_for_programs(project: Path) -> None:
    there = with_environment(project, {"TZ": "America/Sao_Paulo"}, "runs")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d -03 ", there)
    listed = json.loads(with_environment(project, {"TZ": "America/Sao_Paulo"}, "runs", "--json"))
    assert listed[0]["created_at"].endswith("+00:00")
