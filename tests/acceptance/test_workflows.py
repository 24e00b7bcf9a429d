"""Workflows from the command line, as people run them."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dalsegno.settings import load
from dalsegno.spark.server import running_servers, stop
from dalsegno.steps.spark.sessions import local_server
from tests.acceptance.conftest import Commands
from tests.acceptance.processes import done, ended, on_a_terminal, running, wait_for, without_colours
from tests.conftest import uncaptured

DEMO_PIPELINE = """\
Description:
  This is a sample description to [a Maestro workflow](https://github.com/Netflix/maestro)
Trigger:
  cron: '@daily'
Workflow:
  id: demo.pipeline
  my_query: INSERT OVERWRITE TABLE
    ${TARGET_TABLE} SELECT USER_ID, DATE_INT,
    SUM(watch_time) FROM ${SOURCE_TABLE} WHERE
    is_active=true AND DATE_INT > DATE_MINUS_7
    group by USER_ID, DATE_INT;
  jobs:
    - job:
        id: job.1
        type: Spark
        spark:
          script: ${my_query}
"""

REMEDIATION = """\
Workflow:
  id: auto.remediation.pipeline
  jobs:
    - subworkflow:
        id: normal_workflow
        workflow_id: demo.pipeline
        failure_mode: IGNORE_FAILURE
    - job:
        id: check_status
        type: NoOp
    - subworkflow:
        id: recovery
        workflow_id: example.recovery.wf
    - subworkflow:
        id: re_run
        workflow_id: demo.pipeline
    - job:
        id: end
        type: NoOp
  dag:
    - normal_workflow -> check_status
    - check_status:
        IF params.getFromStep('normal_workflow',
        'MAESTRO_STEP_STATUS') ==
        'COMPLETED_WITH_ERROR': recovery -> re_run ->
        end
        OTHERWISE: end
"""

#: It succeeds once there is a file called "repaired".
FRAGILE = """\
Workflow:
  id: demo.pipeline
  jobs:
    - job:
        id: prepare
        type: Shell
        shell: {script: echo prepared >> out}
    - job:
        id: load
        type: Shell
        retry_policy: {error_retry_limit: 0}
        shell:
          script: |
            echo "looking for it, attempt $DALSEGNO_ATTEMPT"
            cat repaired >> out
  dag: sequential
"""

#: The second step goes on until there is a file called "go".
SLOW = """\
workflow:
  name: slow
  steps:
    - name: wait
      type: shell
      script: |
        echo $$ > began
        echo began >> out
        until test -e go; do sleep 0.05; done
        echo waited >> out
    - name: after
      type: shell
      script: echo after >> out
      dependsOn: [wait]
"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def lines(folder: Path) -> list[str]:
    file = folder / "out"
    return file.read_text().splitlines() if file.exists() else []


def statuses(run: Commands, name: str) -> dict[str, str]:
    return {step["id"]: step["status"] for step in run.json("show", name)["steps"]}


# The seeds' own examples.


@pytest.fixture
def spark_folder(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Path]:
    with uncaptured(pytestconfig):
        local_server(load(working_folder=tmp_path, environment={})).ensure()
    yield tmp_path
    for folder, _ in list(running_servers(tmp_path)):
        stop(folder)


@pytest.mark.spark
def test_the_first_example(spark_folder: Path) -> None:
    write(spark_folder, "workflow.yaml", DEMO_PIPELINE)
    pushed = done(spark_folder, "push", "workflow.yaml", name="scheduler")
    assert (pushed.returncode, pushed.stdout.splitlines()[0]) == (0, "Pushed demo.pipeline as version 1, active.")
    ran = done(spark_folder, "run", "demo.pipeline", "my_query=SELECT 1", name="scheduler")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("Workflow run demo.pipeline/1 has been successfully submitted.\n")
    log = done(spark_folder, "logs", "demo.pipeline", "job.1", name="scheduler").stdout
    assert "SELECT 1" in log


def test_remediation_of_what_failed(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE)
    repair = FRAGILE.replace("demo.pipeline", "example.recovery.wf").replace("cat repaired >> out", "touch repaired")
    write(run.folder, "recovery.yaml", repair)
    write(run.folder, "remediation.yaml", REMEDIATION)
    assert run("push", "pipeline.yaml", "recovery.yaml", "remediation.yaml").code == 0
    assert run("run", "auto.remediation.pipeline").code == 0
    assert statuses(run, "auto.remediation.pipeline") == {
        "normal_workflow": "COMPLETED_WITH_ERROR",
        "check_status": "SUCCEEDED",
        "recovery": "SUCCEEDED",
        "re_run": "SUCCEEDED",
        "end": "SUCCEEDED",
    }
    assert {each["workflow_id"]: each["status"] for each in run.json("runs", "--status", "failed")} == {
        "demo.pipeline": "FAILED"
    }


def test_remediation_of_what_succeeded(run: Commands) -> None:
    (run.folder / "repaired").touch()
    write(run.folder, "pipeline.yaml", FRAGILE)
    write(run.folder, "recovery.yaml", FRAGILE.replace("demo.pipeline", "example.recovery.wf"))
    write(run.folder, "remediation.yaml", REMEDIATION)
    run("push", "pipeline.yaml", "recovery.yaml", "remediation.yaml")
    assert run("run", "auto.remediation.pipeline").code == 0
    assert statuses(run, "auto.remediation.pipeline") == {
        "normal_workflow": "SUCCEEDED",
        "check_status": "SUCCEEDED",
        "recovery": "UNSATISFIED",
        "re_run": "UNSATISFIED",
        "end": "SUCCEEDED",
    }
    assert len(run.json("runs")) == 2


# Processes that die, and others that meddle.


def test_a_killed_run_is_finished_by_the_next_process(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        process.kill()
    watched = done(tmp_path, "runs", "slow")
    assert "slow/1  IN_PROGRESS" in watched.stdout
    (tmp_path / "go").touch()
    worked = done(tmp_path, "work")
    assert (worked.returncode, worked.stderr) == (0, "")
    assert worked.stdout.splitlines()[-1].startswith("✔ slow/1 (version 1)  SUCCEEDED")
    assert lines(tmp_path) == ["began", "waited", "after"], "the step that ran when its process died ran once"
    assert done(tmp_path, "work").stdout == "There are no open runs.\n"


def test_stop_from_another_process(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        job = int((tmp_path / "began").read_text())
        assert done(tmp_path, "stop", "slow").returncode == 0
        told = ended(process)
    assert process.returncode == 11
    assert "step wait  STOPPED" in told
    wait_for(lambda: not Path(f"/proc/{job}").exists())
    assert lines(tmp_path) == ["began"]
    again = done(tmp_path, "stop", "slow/1")
    assert (again.returncode, again.stderr.splitlines()) == (
        2,
        ["Conflict: slow/1 has ended: it is STOPPED.", "  → To run it again: dalsegno restart slow/1"],
    )


def test_stop_when_nobody_works_on_it(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        process.kill()
    job = int((tmp_path / "began").read_text())
    stopped = done(tmp_path, "stop", "slow")
    assert stopped.stdout.startswith("■ slow/1 (version 1)  STOPPED")
    wait_for(lambda: not Path(f"/proc/{job}").exists())


def test_ctrl_c_stops_the_run(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        process.send_signal(signal.SIGINT)
        told = ended(process)
    assert process.returncode == 11
    assert "Stopping the run; Ctrl-C once more does not wait for its end." in told
    assert "■ slow/1 (version 1)  STOPPED" in told


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW.replace("echo $$", "trap '' TERM; echo $$"))
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        job = int((tmp_path / "began").read_text())
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Stopping the run"):
                break
        process.send_signal(signal.SIGINT)
        told = ended(process)
    assert process.returncode == 130
    assert told.endswith("slow/1 is left to the next process that works on runs: dalsegno work\n")
    assert done(tmp_path, "work").stdout.splitlines()[-1].startswith("■ slow/1 (version 1)  STOPPED")
    assert not Path(f"/proc/{job}").exists()


def test_pause_and_resume_from_another_process(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        assert "paused" in done(tmp_path, "pause", "slow").stdout
        (tmp_path / "go").touch()
        assert process.stdout is not None
        for line in process.stdout:
            if "step after  PAUSED" in line:
                break
        assert lines(tmp_path) == ["began", "waited"]
        done(tmp_path, "resume", "slow")
        ended(process)
    assert process.returncode == 0
    assert lines(tmp_path) == ["began", "waited", "after"]


def test_following_a_log_and_a_run(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW.replace("echo began >> out", "echo here I am"))
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        with running(tmp_path, "logs", "slow", "wait", "--follow") as log, running(tmp_path, "watch", "slow") as watch:
            assert log.stdout is not None and watch.stdout is not None
            assert log.stdout.readline() == "here I am\n"
            assert watch.stdout.readline().endswith("run  IN_PROGRESS\n")
            (tmp_path / "go").touch()
            ended(log)
            rest = ended(watch)
        ended(process)
    assert (process.returncode, log.returncode, watch.returncode) == (0, 0, 0)
    assert "step after  SUCCEEDED" in rest


def test_a_run_says_what_it_waits_for(tmp_path: Path) -> None:
    write(tmp_path, "slow.yaml", SLOW)
    with running(tmp_path, "run", "slow.yaml") as process:
        wait_for((tmp_path / "began").exists)
        process.kill()
    with running(tmp_path, "run", "slow") as second:
        assert second.stdout is not None
        assert second.stdout.readline() == "Workflow run slow/2 has been successfully submitted.\n"
        waits = "slow/2 waits for slow/1, which is IN_PROGRESS. No process works on that one: dalsegno work\n"
        assert second.stdout.readline() == waits
        (tmp_path / "go").touch()
        assert done(tmp_path, "work").returncode == 0
        ended(second)
    assert second.returncode == 0


# On a terminal.

WIDE = """\
Workflow:
  id: wide
  jobs:
    - foreach:
        id: each
        ranges: {i: {from: 0, to: 8}}
        jobs:
          - job: {id: first, type: NoOp}
          - job: {id: second, type: Shell, shell: {script: "echo %s; sleep 0.1"}}
        dag: sequential
"""


def test_the_tree_fits_the_terminal(tmp_path: Path) -> None:
    """What is higher or wider than a terminal scrolls or wraps, and could not be drawn over."""
    rows, columns = 9, 60
    write(tmp_path, "wide.yaml", WIDE % ("x" * 100))
    printed = without_colours(on_a_terminal(rows, columns, tmp_path, "run", "wide.yaml"))
    frames = re.split(r"\x1b\[\d+F\x1b\[J", printed)
    heights = [int(height) for height in re.findall(r"\x1b\[(\d+)F\x1b\[J", printed)]
    assert len(frames) > 2
    for frame, height in zip(frames[1:-1], heights[1:], strict=True):
        assert frame.count("\n") == height < rows
        assert all(len(line) < columns for line in frame.splitlines())
    assert any("more lines" in frame for frame in frames[:-1])
    assert re.search(r"✔ each  foreach  SUCCEEDED .* 8 iterations: 8 SUCCEEDED", frames[-1])


RETRIED = """\
workflow:
  name: retried
  steps:
    - name: load
      type: shell
      retry_policy: {error_retry_limit: 2}
      script: echo no luck; exit 3
"""


def test_a_retry_is_counted_down_and_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    write(tmp_path, "retried.yaml", RETRIED)
    began = time.monotonic()
    asked = ("run", "retried.yaml")
    drawn = on_a_terminal(20, 200, tmp_path, *asked, interrupted_at="retries in 58 s", ends_with=11)
    printed = without_colours(drawn)
    assert time.monotonic() - began < 30
    said = r"↻ load  Shell  USER_FAILED .* retries in %d s \(step attempt 2 of 3\): The job ended .* code 3.* no luck"
    for seconds in (60, 59, 58):
        assert re.search(said % seconds, printed), printed
    assert "■ retried/1 (version 1)  STOPPED" in printed
    assert "retries" not in printed.rpartition("\x1b[J")[2]


def test_a_retry_is_one_line_in_a_pipe(tmp_path: Path) -> None:
    write(tmp_path, "retried.yaml", RETRIED)
    with running(tmp_path, "run", "retried.yaml") as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "FAILED" in line)
        waiting = "step load  USER_FAILED  retries in 60 s (step attempt 2 of 3): The job ended with exit code 3."
        assert line.partition("  ")[2].startswith(waiting)
        process.send_signal(signal.SIGINT)
        rest = ended(process)
    assert process.returncode == 11
    assert "retries" not in rest


# One process.


def test_failing_and_restarting(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE)
    failed = run("run", "pipeline.yaml")
    assert failed.code == 10
    assert "✘ load  Shell  FATALLY_FAILED" in failed.out
    assert "because load: The job ended with exit code 1. It last said:\n" in failed.out
    assert "  → After you fix it: dalsegno restart demo.pipeline/1\n" in failed.out
    assert (
        "  → If you edit the file: dalsegno push pipeline.yaml && dalsegno restart demo.pipeline/1 --latest\n"
        in failed.out
    )
    assert run("logs", "demo.pipeline", "load").out.splitlines()[0] == "looking for it, attempt 1"
    (run.folder / "repaired").write_text("repaired\n")
    again = run("restart", "demo.pipeline")
    assert again.code == 0
    assert "step prepare" not in again.out, "what happened before the restart is no news"
    assert "✔ demo.pipeline/1 (version 1, run attempt 2)  SUCCEEDED" in again.out
    assert lines(run.folder) == ["prepared", "repaired"]
    assert run("logs", "demo.pipeline", "load", "--attempt", "1").out.splitlines()[0].endswith("attempt 1")
    assert run("logs", "demo.pipeline", "load").out.splitlines()[0].endswith("attempt 2")
    nothing = run("restart", "demo.pipeline")
    assert (nothing.code, "dalsegno restart demo.pipeline/1 --from beginning" in nothing.err) == (2, True)
    assert run("restart", "demo.pipeline", "--from", "load").code == 0
    assert run("restart", "demo.pipeline", "--from", "beginning", "--skip", "prepare").code == 0
    assert statuses(run, "demo.pipeline") == {"prepare": "SKIPPED", "load": "SUCCEEDED"}


def test_restarting_with_the_fixed_file(run: Commands) -> None:
    write(run.folder, "pipe line.yaml", FRAGILE)
    failed = run("run", "pipe line.yaml")
    fixed = "dalsegno push 'pipe line.yaml' && dalsegno restart demo.pipeline/1 --latest"
    assert f"  → If you edit the file: {fixed}\n" in failed.out
    write(run.folder, "pipe line.yaml", FRAGILE.replace("cat repaired >> out", "true"))
    assert run("push", "pipe line.yaml").code == 0
    assert (
        "→ With version 2, the newest: dalsegno restart demo.pipeline/1 --latest\n" in run("show", "demo.pipeline").out
    )
    same = run("restart", "demo.pipeline", "--version", "1")
    assert (same.code, "newest" in same.err) == (10, False), "it was meant so"
    as_before = run("restart", "demo.pipeline")
    assert as_before.code == 10
    assert as_before.err == (
        "demo.pipeline/1 resumes with version 1; the newest is version 2. "
        "To resume with that one: dalsegno restart demo.pipeline/1 --latest\n"
    )
    both = run("restart", "demo.pipeline", "--latest", "--version", "1")
    assert (both.code, "name two versions" in both.err) == (2, True)
    again = run("restart", "demo.pipeline", "--latest")
    assert (again.code, again.err) == (0, "")
    assert "✔ demo.pipeline/1 (version 2, run attempt 4)  SUCCEEDED" in again.out
    assert lines(run.folder) == ["prepared"]


def test_a_run_for_machines(run: Commands) -> None:
    (run.folder / "repaired").touch()
    write(run.folder, "pipeline.yaml", FRAGILE)
    pushed = run.json("push", "pipeline.yaml")
    assert pushed == {"workflow_id": "demo.pipeline", "version": 1, "is_new": True, "is_active": True, "warnings": []}
    ended = run("run", "demo.pipeline", "day=20260101", 'regions=["eu", "us"]', "--json").json()
    assert (ended["run"]["workflow_id"], ended["run"]["number"], ended["run"]["status"]) == (
        "demo.pipeline",
        1,
        "SUCCEEDED",
    )
    assert ended["run"]["params"]["day"] == {
        "type": "STRING",
        "value": "20260101",
        "mode": "MUTABLE",
        "source": "LAUNCH",
    }
    assert ended["run"]["params"]["regions"]["value"] == ["eu", "us"]
    assert [(step["id"], step["status"], step["attempt"]) for step in ended["steps"]] == [
        ("prepare", "SUCCEEDED", 1),
        ("load", "SUCCEEDED", 1),
    ]
    assert run.json("show", "demo.pipeline/1") == ended
    [listed] = run.json("runs")
    assert listed == {name: value for name, value in ended["run"].items() if name != "params"}
    assert run.json("runs", "--params") == [ended["run"]]
    failed = run("show", "nothing", "--json")
    assert (failed.code, failed.json()["error"]["code"]) == (2, "UnknownName")


def test_text_that_cannot_be_stored(run: Commands) -> None:
    """Bytes that are not UTF-8 reach us as halves of surrogate pairs."""
    (run.folder / "repaired").touch()
    write(run.folder, "pipeline.yaml", FRAGILE)
    run("push", "pipeline.yaml")
    refused = run("run", "demo.pipeline", "day=\udcff")
    assert (refused.code, "'day' cannot be set: it holds half of a surrogate pair (\\udcff)" in refused.err) == (
        2,
        True,
    )
    refused = run("run", "demo.pipeline", 'load={"shell": {"script": "exit 1"}}')
    assert (refused.code, "'shell.script' decides what step 'load' executes" in refused.err) == (2, True)
    assert run.json("runs") == []


def test_asking_twice_with_the_same_key(run: Commands) -> None:
    (run.folder / "repaired").touch()
    write(run.folder, "pipeline.yaml", FRAGILE)
    run("push", "pipeline.yaml")
    first = run("run", "demo.pipeline", "--key", "today", "day=1")
    second = run("run", "demo.pipeline", "--key", "today", "day=1")
    assert (first.code, second.code) == (0, 0)
    assert second.out.startswith("Workflow run demo.pipeline/1 was submitted before with the same key.")
    assert len(run.json("runs")) == 1
    assert lines(run.folder) == ["prepared"]
    other = run("run", "demo.pipeline", "--key", "today", "day=2")
    assert (other.code, "with other parameters" in other.err) == (2, True)


def test_a_run_that_others_are_to_do(run: Commands) -> None:
    (run.folder / "repaired").touch()
    write(run.folder, "pipeline.yaml", FRAGILE)
    left = run("run", "pipeline.yaml", "--no-wait")
    assert left.out.splitlines() == [
        "Workflow run demo.pipeline/1 has been successfully submitted.",
        "Watch it: dalsegno watch demo.pipeline/1",
        "No process works on runs now: dalsegno work",
    ]
    assert run("work").code == 0
    assert run("watch", "demo.pipeline").code == 0


def test_nothing_is_stored_of_a_file_with_problems(run: Commands) -> None:
    wrong = FRAGILE.replace("type: Shell", "type: Shel", 1).replace("dag: sequential", "dag: [prepare -> lod]")
    write(run.folder, "wrong.yaml", wrong)
    expected = [
        "wrong.yaml:6:15: there is no step type or job template 'Shel'; did you mean 'Shell'?",
        "wrong.yaml:16:9: there is no step 'lod'; did you mean 'load'?",
    ]
    for verb in ("validate", "push", "run"):
        refused = run(verb, "wrong.yaml")
        assert (refused.code, refused.err.splitlines()) == (2, expected), verb
    assert run("versions", "demo.pipeline").code == 2


def test_output_parameters_and_loops(run: Commands) -> None:
    text = """\
Workflow:
  id: greetings
  jobs:
    - job:
        id: find
        type: Shell
        shell: {script: 'echo ''{"names":["Ada","Grace"]}'' >> "$DALSEGNO_OUTPUT"'}
    - foreach:
        id: each
        loop_params:
          '!name<array<string>>': params.getFromStep('find', 'names')
        jobs:
          - job: {id: greet, type: Shell, shell: {script: 'echo "hello ${name}"'}}
  dag: sequential
"""
    write(run.folder, "greetings.yaml", text)
    done_ = run("run", "greetings.yaml")
    assert done_.code == 0, done_.out + done_.err
    assert run("logs", "greetings", "greet", "--iteration", "each/1").out == "hello Grace\n"
    where = run("logs", "greetings", "greet")
    assert (where.code, where.err.splitlines()) == (
        2,
        ["UserError: Step 'greet' is inside of the loop 'each': say in which iteration.",
         "  → The first 'iteration' is each/0."],
    )  # fmt: skip


def test_steps_that_are_held_up(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE.replace("type: Shell", "type: Shell\n        tags: [warehouse]"))
    (run.folder / "repaired").touch()
    run("push", "pipeline.yaml")
    assert run("breakpoints", "set", "demo.pipeline", "lod").code == 2
    assert run("breakpoints", "set", "demo.pipeline", "load").code == 0
    assert run("breakpoints", "list", "demo.pipeline").out == "STEP\nload\n"
    assert run("limits", "set", "warehouse", "1").code == 0
    assert run.json("limits", "list") == [{"tag": "warehouse", "most": 1, "running": 0}]
    with running(run.folder, "run", "demo.pipeline") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "step load  PAUSED" in line:
                break
        assert run("resume", "demo.pipeline", "--step", "load").code == 0
        ended(process)
    assert process.returncode == 0
    assert run("breakpoints", "clear", "demo.pipeline", "load").code == 0
    assert run("breakpoints", "clear", "demo.pipeline", "load").code == 2
    assert run("limits", "clear", "warehouse").code == 0
    assert run.json("limits", "list") == []


def test_versions(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE)
    run("push", "pipeline.yaml")
    assert "is at version 1 already: nothing changed." in run("push", "pipeline.yaml").out
    write(run.folder, "pipeline.yaml", FRAGILE.replace("cat repaired", "echo version two"))
    run("push", "pipeline.yaml")
    assert run("run", "demo.pipeline", "--version", "1").code == 10
    assert run("run", "demo.pipeline").code == 0
    assert [(each["version"], each["is_active"]) for each in run.json("versions", "demo.pipeline")] == [
        (2, True),
        (1, False),
    ]
    assert run("versions", "demo.pipeline", "--activate", "1").code == 0
    assert run("run", "demo.pipeline").code == 10
    assert run("versions", "demo.pipeline", "--deactivate").code == 0
    assert run("run", "demo.pipeline", "--version", "active").code == 2
    assert run("delete", "demo.pipeline").out == "Deleted demo.pipeline.\n"
    gone = run("run", "demo.pipeline")
    assert (gone.code, "There is no workflow 'demo.pipeline'" in gone.err) == (2, True)


def test_nothing_yet(run: Commands) -> None:
    assert run("runs").out == "There are no runs.\n"
    assert run.json("runs") == []
    assert run("work").out == "There are no open runs.\n"
    assert run("limits", "list").out == "There are no limits.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "demo.pipline"), "Did you mean 'demo.pipeline'?"),
        (("run", "none.yaml"), "none.yaml cannot be read: No such file or directory."),
        (("run", "demo.pipeline", "day"), "'day' is not a parameter: expected NAME=VALUE."),
        (("run", "demo.pipeline", "=1"), "'=1' is not a parameter: expected NAME=VALUE."),
        (("run", "demo.pipeline", "a b=1"), "'a b' cannot be the name of a parameter"),
        (("run", "demo.pipeline", "rows=many"), "The parameter 'rows' is a LONG: "),
        (("run", "demo.pipeline", "--version", "7"), "demo.pipeline has no version 7."),
        (("run", "demo.pipeline", "--version", "newest"), "expected active, latest, default or a number"),
        (("show", "demo.pipeline"), "expected a run's id, WORKFLOW/NUMBER, or a workflow that has run"),
        (("runs", "demo.pipelin"), "Did you mean 'demo.pipeline'?"),
        (("runs", "--status", "failing"), "Did you mean FAILED?"),
        (("stop", "demo.pipeline/3"), "There is no run 'demo.pipeline/3'"),
        (("logs", "demo.pipeline", "load"), "There is no run 'demo.pipeline'"),
        (("breakpoints", "set", "demo.pipeline", "lod"), "Did you mean 'load'?"),
        (("delete", "nothing"), "There is no workflow 'nothing'."),
    ],
)
def test_wrong_input_is_explained(run: Commands, arguments: tuple[str, ...], words: str) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE.replace("  jobs:", "  rows: 5\n  jobs:"))
    run("push", "pipeline.yaml")
    refused = run(*arguments)
    assert (refused.code, words in refused.err) == (2, True), refused.err
    assert run.json("runs") == [], "nothing may be left behind"


def test_a_parameter_that_nobody_knows_is_pointed_out(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE.replace("  jobs:", "  rows: 5\n  jobs:"))
    (run.folder / "repaired").touch()
    told = run("run", "pipeline.yaml", "row=6")
    assert told.code == 0
    assert told.err == "demo.pipeline has no parameter 'row'; did you mean 'rows'? It is set all the same.\n"


def test_logs_of_what_wrote_nothing(run: Commands) -> None:
    write(run.folder, "pipeline.yaml", FRAGILE)
    run("run", "pipeline.yaml")
    quiet = run("logs", "demo.pipeline", "prepare")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "prepare has written nothing.\n")
    assert "the last was 1" in run("logs", "demo.pipeline", "load", "--attempt", "9").err
    assert "demo.pipeline has no step 'lod'" in run("logs", "demo.pipeline", "lod").err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Commands, shell: str) -> None:
    assert "_DALSEGNO_COMPLETE=complete_" in run("completion", shell).out


def test_a_shell_is_told_how_a_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_DALSEGNO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "dalsegno breakpoints c")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert done(tmp_path).stdout.split() == ["clear"]
