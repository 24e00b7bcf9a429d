"""Shell steps: what runs, with what, and that no value becomes code."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import FailureKind, Stopped
from dalsegno.settings import Settings
from dalsegno.steps.contract import Running
from dalsegno.steps.references import as_variables
from dalsegno.steps.shell import ShellRunner
from tests.steps.support import attempt, failure, finished, log_text, outputs

SHELL = ShellRunner()


def test_a_script(tmp_path: Path) -> None:
    script = 'echo "hello $1"; echo rows=42 >> "$DALSEGNO_OUTPUT"; echo \'{"days": ["a", "b"]}\' >> "$DALSEGNO_OUTPUT"'
    work = attempt(tmp_path, {"shell": {"script": script, "args": ["you"]}})
    assert outputs(SHELL, work) == {"rows": "42", "days": ["a", "b"]}
    assert log_text(work) == "hello you\n"


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "load.sh").write_text("pwd; echo $#")
    work = attempt(tmp_path, {"shell": {"file": "jobs/load.sh", "folder": "jobs", "args": ["a b", "*"]}})
    outputs(SHELL, work)
    assert log_text(work) == f"{tmp_path}/jobs\n2\n"


def test_a_command(tmp_path: Path) -> None:
    work = attempt(tmp_path, {"shell": {"command": ["printf", "%s|", "$HOME", "; ls", "*"]}})
    outputs(SHELL, work)
    assert log_text(work) == "$HOME|; ls|*|"


def test_another_interpreter(tmp_path: Path) -> None:
    work = attempt(tmp_path, {"shell": {"script": "echo $0 ${BASH_VERSION:-none}", "interpreter": "/bin/sh -e"}})
    outputs(SHELL, work)
    assert log_text(work).startswith(str(work.folder))


@pytest.mark.parametrize("script", ["false; echo on", "false | cat; echo on"])
def test_the_first_error_ends_a_script(tmp_path: Path, script: str) -> None:
    failed = failure(SHELL, attempt(tmp_path, {"shell": {"script": script}}))
    assert (failed.kind, failed.message) == (FailureKind.USER, "The job ended with exit code 1.")


def test_a_failure_says_what_was_said_last(tmp_path: Path) -> None:
    failed = failure(
        SHELL, attempt(tmp_path, {"shell": {"script": 'echo a=1 >> "$DALSEGNO_OUTPUT"; echo oops; exit 4'}})
    )
    assert failed.message == "The job ended with exit code 4. It last said:\noops"
    assert failed.outputs == {"a": "1"}


def test_where_java_was_when_it_failed_is_left_out(tmp_path: Path) -> None:
    stack = "Caused by: x.NoSuchThing: at home\n" + "\tat a.b.C.d(C.java:3)\n" * 9 + "\t... 31 more\n"
    failed = failure(SHELL, attempt(tmp_path, {"shell": {"script": f"printf %s '{stack}'; exit 1"}}))
    assert failed.message == "The job ended with exit code 1. It last said:\nCaused by: x.NoSuchThing: at home"


@pytest.mark.parametrize(
    ("script", "kind"),
    [("exit 75", FailureKind.PLATFORM), ("kill -KILL $$", FailureKind.PLATFORM), ("kill -SEGV $$", FailureKind.USER)],
)
def test_whose_fault_it_was(tmp_path: Path, script: str, kind: FailureKind) -> None:
    assert failure(SHELL, attempt(tmp_path, {"shell": {"script": script}})).kind is kind


def test_bad_outputs_fail_a_step(tmp_path: Path) -> None:
    failed = failure(SHELL, attempt(tmp_path, {"shell": {"script": 'echo what >> "$DALSEGNO_OUTPUT"'}}))
    assert "Line 1 of the job's output parameters" in failed.message


def test_time_is_up(tmp_path: Path) -> None:
    late = attempt(tmp_path, {"shell": {"script": "touch ran"}}, deadline=utc_now() - timedelta(seconds=1))
    assert failure(SHELL, late).kind is FailureKind.TIMEOUT
    assert not (tmp_path / "ran").exists()
    slow = attempt(tmp_path, {"shell": {"script": "sleep 600"}}, deadline=utc_now() + timedelta(seconds=1))
    assert failure(SHELL, slow).kind is FailureKind.TIMEOUT


def test_cancel(tmp_path: Path) -> None:
    work = attempt(tmp_path, {"shell": {"script": "sleep 600"}})
    SHELL.start(work)
    assert isinstance(SHELL.poll(work, 0), Running)
    SHELL.cancel(work)
    assert isinstance(finished(SHELL, work), Stopped)


# Environment.


def test_the_environment_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setenv("CLOUD_REGION", "north")
    monkeypatch.setenv("CLOUD_ZONE", "1")
    some = Settings(root=tmp_path, pass_environment=("CLOUD_*",))
    work = attempt(tmp_path, {"shell": {"script": "env", "env": {"MINE": 3}}}, settings=some)
    outputs(SHELL, work)
    variables = dict(line.split("=", 1) for line in log_text(work).splitlines() if "=" in line)
    assert variables["PATH"] == os.environ["PATH"]
    assert (variables["CLOUD_REGION"], variables["CLOUD_ZONE"], variables["MINE"]) == ("north", "1", "3")
    assert variables["DALSEGNO_KEY"] == work.key
    assert "DATABASE_PASSWORD" not in variables
    assert "hunter2" not in log_text(work)


@pytest.mark.parametrize("name", ["A B", "1A", "", "A=B", "DALSEGNO_OUTPUT", "A\nB"])
def test_names_that_no_variable_has(tmp_path: Path, name: str) -> None:
    failed = failure(SHELL, attempt(tmp_path, {"shell": {"script": "true", "env": {name: "x"}}}))
    assert failed.kind is FailureKind.FATAL
    assert "cannot be set" in failed.message


# Values do not become code.

HOSTILE = [
    "'; touch hacked; '",
    '"; touch hacked; "',
    "$(touch hacked)",
    "`touch hacked`",
    "a\ntouch hacked\n",
    "*",
    "${PATH}",
    "-rf /",
    "\\",
    "a; touch hacked",
    "| touch hacked",
    "> hacked",
    "é\u202e",
    " two  spaces ",
    "",
]
#: The two names of which only one is a name to a shell.
PRINTING = 'printf "%s" "${day}" > day; printf "%s" "${capture.table}" > table; printf "%s" "$day" > again'


def given_back(root: Path, day: str, table: str) -> tuple[str, str, str]:
    work = attempt(root, {"shell": {"script": PRINTING}}, references={"day": day, "capture.table": table})
    outputs(SHELL, work)
    assert not (root / "hacked").exists()
    day, table, again = ((root / name).read_bytes().decode() for name in ("day", "table", "again"))
    return day, table, again


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_arrive_as_they_are(tmp_path: Path, value: str) -> None:
    assert given_back(tmp_path, value, value[::-1]) == (value, value[::-1], value)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50), st.sampled_from(HOSTILE)
)
@example("$" * 10, "`" * 10)
def test_any_value_arrives_as_it_is(tmp_path: Path, day: str, table: str) -> None:
    assert given_back(tmp_path, day, table) == (day, table, day)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_values_that_no_process_can_have(tmp_path: Path, value: str) -> None:
    failed = failure(SHELL, attempt(tmp_path, {"shell": {"script": "true"}}, references={"day": value}))
    assert failed.kind is FailureKind.FATAL


@pytest.mark.parametrize("name", ["PATH", "BASH_ENV", "LD_PRELOAD", "IFS", "UID", "PS4", "DALSEGNO_OUTPUT", "a-b"])
def test_names_that_mean_something_are_not_changed(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil").write_text("touch hacked")
    script = f'printf "%s" "${{{name}}}" > value; ls > /dev/null'
    work = attempt(tmp_path, {"shell": {"script": script}}, references={name: str(tmp_path / "evil")})
    outputs(SHELL, work)
    assert (tmp_path / "value").read_text() == str(tmp_path / "evil")
    assert not (tmp_path / "hacked").exists()


def test_a_reference_is_a_variable_like_any_other() -> None:
    script = r"for day in a b; do echo $day ${day:-x} \${a.b} $$ $1 ${a.b}; done"
    rewritten, variables = as_variables(script, {"day": "1", "a.b": "2"})
    assert rewritten == r"for day in a b; do echo $day ${day:-x} \${a.b} $$ $1 ${DALSEGNO_REFERENCE_0}; done"
    assert variables == {"day": "1", "DALSEGNO_REFERENCE_0": "2"}


def test_single_quotes_are_pointed_out(tmp_path: Path) -> None:
    script = """echo '${day}' "it's ${day}" # don't '${day}'\n"""
    work = attempt(tmp_path, {"shell": {"script": script}}, references={"day": "monday"})
    outputs(SHELL, work)
    note = "[dalsegno] ${day} stands in single quotes, where the shell leaves it as it is: use double quotes\n"
    assert log_text(work) == f"{note}${{day}} it's monday\n"


def test_a_secret_in_a_script_is_masked_and_gone(tmp_path: Path) -> None:
    references = {"password": "hunter2 &c"}
    work = attempt(
        tmp_path, {"shell": {"script": 'echo "${password}"'}}, references=references, secrets=("hunter2 &c",)
    )
    outputs(SHELL, work)
    assert log_text(work) == "***\n"
    for file in work.folder.iterdir():
        assert b"hunter2" not in file.read_bytes()


# What a step may say.


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({}, "needs one of script, file, command; found none of them"),
        ({"script": "true", "file": "x"}, "found script and file"),
        ({"scirpt": "true"}, "There is no field shell.scirpt"),
        ({"script": ["a"]}, "must be a text or a number"),
        ("echo", "must hold fields"),
        ({"file": "missing.sh"}, "there is no file"),
        ({"script": "true", "folder": "missing"}, "there is no folder"),
        ({"script": "true", "interpreter": "'"}, "No closing quotation"),
        ({"command": ["no-such-command"]}, "could not be started: No such file or directory: no-such-command"),
        ({"command": ["a\0b"]}, "NUL character"),
    ],
)
def test_refusals(tmp_path: Path, block: object, says: str) -> None:
    failed = failure(SHELL, attempt(tmp_path, {"shell": block}))
    assert failed.kind is FailureKind.FATAL
    assert says in failed.message


@pytest.mark.parametrize(
    "path", ["../outside.sh", "/etc/hostname", "jobs/../../outside.sh", "link.sh", "a\0b", "folder/x"]
)
def test_files_stay_inside(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "jobs").mkdir(parents=True)
    (tmp_path / "outside.sh").write_text("touch hacked")
    (tmp_path / "x").write_text("touch hacked")
    (root / "link.sh").symlink_to(tmp_path / "outside.sh")
    (root / "folder").symlink_to(tmp_path)
    failed = failure(SHELL, attempt(root, {"shell": {"file": path}}))
    assert failed.kind is FailureKind.FATAL
    assert "is outside of" in failed.message or "NUL" in failed.message


def test_other_folders_can_be_allowed(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "job.sh").write_text("true")
    allowed = Settings(root=root, job_folders=(str(other),))
    outputs(SHELL, attempt(root, {"shell": {"file": "../other/job.sh"}}, settings=allowed))
    assert failure(SHELL, attempt(root, {"shell": {"file": "../other/job.sh"}})).kind is FailureKind.FATAL
