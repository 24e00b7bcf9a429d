"""One job per attempt, which ends when it must and leaves nothing behind, whoever dies."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.settings import Settings
from dalsegno.steps import supervision, supervisor
from dalsegno.steps.contract import Running
from dalsegno.steps.processes import failure_of
from dalsegno.steps.supervision import Job
from tests.services.disks import small_disk
from tests.steps.dying import STAGES, start_and_die, starting
from tests.steps.support import attempt, commands_with, ended, log_text, script_job, until

linux = pytest.mark.skipif(not supervisor.LINUX, reason="needs /proc and subreapers")

#: A name for `sleep` that only this test uses, so that its processes can be told from all others.
NAP = f"600.{os.getpid()}"
#: Three ways out of a process group: a child in the background, a session of its own, and a grandchild of init's.
RUNAWAYS = f"sleep {NAP} & setsid sleep {NAP} & (setsid bash -c 'sleep {NAP} & disown' &) ; sleep 0.2; echo ready; "


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    until(lambda: not commands_with(NAP), 5)


def test_output_and_exit_code(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "echo out; echo err >&2; exit 3"))
    end = ended(work)
    assert (end.reason, end.code, end.signal) == ("exited", 3, None)
    assert log_text(work) == "out\nerr\n"


def test_a_signal_is_told(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "kill -SEGV $$"))
    assert (ended(work).code, ended(work).signal) == (None, signal.SIGSEGV)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, Job(["no-such-command"], {}, tmp_path))
    assert ended(work).reason == "not_started"
    assert ended(work).error == "No such file or directory: no-such-command"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, Job(["true"], {"PATH": os.environ["PATH"]}, tmp_path / "gone"))
    assert ended(work).error == f"No such file or directory: {tmp_path / 'gone'}"


def test_the_job_gets_what_it_was_given_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "hidden")
    work = attempt(tmp_path)
    before = os.umask(0o027)
    job = Job(["bash", "-c", "cat; pwd; umask; cat extra; env"], {"PATH": os.environ["PATH"], "X": "a\nb"}, work.folder)
    try:
        supervision.start(work, replace(job, input="given\n", files={"extra": "more\n"}))
    finally:
        os.umask(before)
    assert ended(work).code == 0
    printed = log_text(work)
    assert printed.startswith(f"given\n{work.folder}\n0027\nmore\n")
    assert "\nX=a\nb\n" in printed
    assert "hidden" not in printed
    assert not (work.folder / "extra").exists()


def test_files_of_the_job_are_private(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "stat -c %a secret || stat -f %Lp secret", files={"secret": "x"}))
    assert ended(work).code == 0
    assert log_text(work) == "600\n"


def test_the_log_can_be_read_while_it_grows(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "echo first; until [ -e go ]; do sleep 0.01; done; echo second"))
    until(lambda: log_text(work) == "first\n")
    assert isinstance(supervision.poll(work, 0), Running)
    (work.folder / "go").touch()
    assert ended(work).code == 0
    assert log_text(work) == "first\nsecond\n"


def test_waiting_ends_with_the_job_and_costs_nothing(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, "sleep 1"))
    before = time.thread_time()
    end = ended(work)
    assert end.seconds < 30
    assert time.thread_time() - before < 0.1
    late = time.time() - json.loads((work.folder / "exit").read_bytes())["ended"]
    assert late < 5


def test_poll_gives_up_after_its_patience(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, f"sleep {NAP}"))
    before = time.monotonic()
    assert isinstance(supervision.poll(work, 0.3), Running)
    assert 0.3 <= time.monotonic() - before < 10
    supervision.cancel(work)


# The end of a job.


def test_the_deadline_ends_the_job(tmp_path: Path) -> None:
    work = attempt(tmp_path, deadline=utc_now() + timedelta(seconds=5))
    supervision.start(work, script_job(work, f"trap 'echo cleaning; exit 1' TERM; sleep {NAP} & wait"))
    end = ended(work)
    assert end.reason == "timed_out"
    assert end.seconds < 20
    assert "cleaning" in log_text(work)


def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    work = attempt(tmp_path, deadline=utc_now() + timedelta(seconds=5))
    supervision.start(work, script_job(work, f"trap '' TERM; while true; do sleep {NAP}; done", grace=0.5))
    end = ended(work)
    assert (end.reason, end.signal) == ("timed_out", signal.SIGKILL)


def test_the_deadline_holds_without_us(tmp_path: Path) -> None:
    work = attempt(tmp_path, deadline=utc_now() + timedelta(seconds=1))
    start_and_die(work, script_job(work, f"sleep {NAP}"), "before the answer")
    until((work.folder / "exit").exists)
    assert ended(work).reason == "timed_out"


@linux
def test_cancel_ends_everything(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, f"{RUNAWAYS} sleep {NAP}"))
    until(lambda: "ready" in log_text(work))
    assert len(commands_with(f"sleep {NAP}")) >= 4
    supervision.cancel(work)
    assert not commands_with(NAP)
    assert ended(work).reason == "cancelled"
    supervision.cancel(work)


@linux
def test_what_a_job_leaves_running_is_ended(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, f"{RUNAWAYS} exit 0"))
    assert (ended(work).reason, ended(work).code) == ("exited", 0)
    assert not commands_with(NAP)


@linux
def test_one_that_ignores_everything_but_kill(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    stubborn = f"trap '' TERM HUP INT; echo ready; while true; do sleep {NAP}; done"
    supervision.start(work, script_job(work, f'setsid bash -c "{stubborn}" & sleep {NAP}', grace=0.3))
    until(lambda: "ready" in log_text(work))
    supervision.cancel(work)
    assert not commands_with(NAP)


def test_cancelled_before_it_began(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    supervision.cancel(work)
    supervision.start(work, script_job(work, "touch ran"))
    assert ended(work).reason == "cancelled"
    assert not (work.folder / "ran").exists()


def test_a_cancel_file_is_enough(tmp_path: Path) -> None:
    """From another container, say, the supervisor's number means nothing."""
    work = attempt(tmp_path)
    supervision.start(work, script_job(work, f"sleep {NAP}"))
    (work.folder / "cancel").touch()
    assert ended(work).reason == "cancelled"


@linux
def test_cleaning_up_comes_last_and_always(tmp_path: Path) -> None:
    for script, reason in ("true", "exited"), (f"sleep {NAP}", "cancelled"), ("no-such-command", "exited"):
        work = attempt(tmp_path)
        cleanup = ["bash", "-c", f"echo $PPID > {work.folder}/cleaned"]
        supervision.start(work, script_job(work, script, cleanup=cleanup))
        if reason == "cancelled":
            supervision.cancel(work)
        assert ended(work).reason == reason
        assert (work.folder / "cleaned").exists()


@linux
def test_who_cleans_up_after_a_dead_supervisor_gets_no_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DALSEGNO_SECRET_A", "hunter1")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/docker.sock")
    work = attempt(tmp_path)
    cleanup = ["bash", "-c", f"env > {work.folder}/seen"]
    handle = supervision.start(work, script_job(work, f"sleep {NAP}", cleanup=cleanup)).handle
    os.kill(handle["pid"], signal.SIGKILL)
    assert ended(work).reason == "vanished"
    seen = (work.folder / "seen").read_text()
    assert "DOCKER_HOST=unix" in seen
    assert "hunter" not in seen


# One job per attempt.


def test_a_second_start_finds_the_first_job(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    job = script_job(work, f"echo x >> ran; sleep {NAP}")
    first = supervision.start(work, job)
    assert supervision.start(work, job) == first
    supervision.cancel(work)
    assert supervision.start(work, job) == first
    assert (work.folder / "ran").read_text() == "x\n"


def test_many_starts_at_once_are_one(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    job = script_job(work, "echo x >> ran; sleep 0.2")
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda _: supervision.start(work, job).handle, range(8)))
    assert ended(work).code == 0
    assert all(handle == handles[0] for handle in handles)
    assert (work.folder / "ran").read_text() == "x\n"


@pytest.mark.parametrize("stage", STAGES)
def test_killed_while_starting(tmp_path: Path, stage: str) -> None:
    """Whoever starts may die at any point: the next finds the job, or starts it; it runs once."""
    work = attempt(tmp_path)
    job = script_job(work, "echo x >> ran; sleep 0.3; echo done")
    start_and_die(work, job, stage)
    supervision.start(work, job)
    assert ended(work).code == 0
    assert (work.folder / "ran").read_text() == "x\n"
    assert log_text(work) == "done\n"
    until(lambda: not commands_with(str(work.folder)), 10)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """The same without knowing the moments: whatever state is left, the next start makes one run of it."""
    dice = random.Random(7)
    for _ in range(15):
        work = attempt(tmp_path)
        job = script_job(work, "echo x >> ran")
        process, begin = starting(work, job)
        begin.set()
        time.sleep(dice.uniform(0, 0.15))
        process.kill()
        process.join()
        supervision.start(work, job)
        assert ended(work).code == 0
        assert (work.folder / "ran").read_text() == "x\n"


# A supervisor that dies.


@linux
def test_a_vanished_supervisor(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    # The last one has dropped the mark, and is known by its group.
    job = script_job(work, f"{RUNAWAYS} env -i $(type -P sleep) {NAP}", files={"secret": "x"})
    handle = supervision.start(work, job).handle
    until(lambda: "ready" in log_text(work))
    os.kill(handle["pid"], signal.SIGKILL)
    end = ended(work)
    assert end.reason == "vanished"
    assert not commands_with(NAP)
    assert not (work.folder / "secret").exists()
    # It is not started again: nobody knows how far it came.
    supervision.start(work, job)
    assert ended(work).reason == "vanished"


@linux
def test_the_job_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    """Without anybody looking."""
    work = attempt(tmp_path)
    handle = supervision.start(work, Job(["sleep", NAP], {"PATH": os.environ["PATH"]}, tmp_path)).handle
    until(lambda: commands_with(NAP))
    os.kill(handle["pid"], signal.SIGKILL)
    until(lambda: not commands_with(NAP))


@linux
def test_supervisors_killed_at_any_moment(tmp_path: Path) -> None:
    """The job ran once, or not, and nothing of it is left; it is never called a success that it was not."""
    dice = random.Random(11)
    for _ in range(15):
        work = attempt(tmp_path)
        job = script_job(work, f"echo x >> ran; setsid sleep {NAP} & sleep 0.05")
        process, begin = starting(work, job)
        begin.set()
        time.sleep(dice.uniform(0, 0.3))
        for pid in commands_with(f"supervisor.main() {work.folder}"):
            supervisor.send(os.kill, pid, signal.SIGKILL)
        process.join()
        process.close()
        supervision.start(work, job)
        end = ended(work)
        ran = (work.folder / "ran").read_text() if (work.folder / "ran").exists() else ""
        assert (end.reason, ran) in {("exited", "x\n"), ("vanished", "x\n"), ("vanished", ""), ("not_started", "")}
        assert not commands_with(NAP)


def test_somebody_else_ends_the_supervisor(tmp_path: Path) -> None:
    """As when a machine shuts down: not what a user asked for."""
    work = attempt(tmp_path)
    handle = supervision.start(work, script_job(work, f"sleep {NAP}")).handle
    os.kill(handle["pid"], signal.SIGTERM)
    assert ended(work).reason == "terminated"


@linux
def test_a_number_that_was_given_again(tmp_path: Path) -> None:
    """The claim names a process that is not the supervisor any more: it is neither waited for nor killed."""
    bystander = subprocess.Popen(["sleep", NAP])
    try:
        work = attempt(tmp_path)
        claim = {
            "pid": bystander.pid,
            "start_time": "1",
            "boot_id": supervision._boot_id(),
            "token": "gone",
            "grace": 0,
        }
        (work.folder / "claim").write_text(json.dumps(claim))
        before = time.monotonic()
        assert ended(work).reason == "vanished"
        supervision.cancel(work)
        assert time.monotonic() - before < 10
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_folder_is_gone(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    handle = supervision.start(work, script_job(work, "true")).handle
    ended(work)
    for file in work.folder.iterdir():
        file.unlink()
    assert ended(replace(work, handle=handle)).reason == "vanished"


@linux
def test_the_folder_is_gone_while_the_job_runs(tmp_path: Path) -> None:
    work = attempt(tmp_path)
    handle = supervision.start(work, script_job(work, f"setsid sleep {NAP} & echo ready; sleep {NAP}")).handle
    until(lambda: "ready" in log_text(work))
    for file in work.folder.iterdir():
        file.unlink()
    supervision.cancel(replace(work, handle=handle))
    assert not commands_with(NAP)


# Logs.


@linux
def test_a_storm_of_output(tmp_path: Path) -> None:
    """200 MB: the log keeps its size, its beginning and its end, and the supervisor keeps its memory."""
    work = attempt(tmp_path, settings=Settings(root=tmp_path, log_limit_mb=2), secrets=("hunter2",))
    job = script_job(work, "echo begin; yes 'hunter2 is a secret' | head -c 200000000; echo; echo end; sleep 1")
    handle = supervision.start(work, job).handle
    peak = 0
    while isinstance(supervision.poll(work, 0.05), Running):
        status = Path(f"/proc/{handle['pid']}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
    assert ended(work).code == 0
    text = log_text(work)
    assert text.startswith("begin\n*** is a secret\n")
    assert text.endswith("\nend\n")
    assert "hunter2" not in text
    assert text.count("bytes are left out here") == 1
    assert work.log.stat().st_size < 2 * 1024 * 1024 + 1000
    assert 0 < peak < 30_000


@linux
def test_a_full_disk(tmp_path: Path) -> None:
    """The log is cut short; that the job succeeded is still written down."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mount.stderr.decode().strip()}")
    try:
        work = attempt(disk)
        supervision.start(work, script_job(work, "head -c 1000000 /dev/zero; exit 0"))
        assert (ended(work).reason, ended(work).code) == ("exited", 0)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@linux
def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path) -> None:
    """Nothing has begun, so it can begin elsewhere, or here when there is room: once."""
    with small_disk(tmp_path / "disk") as disk:
        work = attempt(disk.folder)
        disk.fill()
        job = script_job(work, f"echo x >> {tmp_path}/out")
        with pytest.raises(OSError, match=r"No space left|Not a directory"):
            supervision.start(work, job)
        disk.free()
        assert not supervision.is_claimed(work)
        assert {path.name for path in work.folder.iterdir()} <= {"filler"}
        supervision.start(work, job)
        supervision.start(work, job)
        assert ended(work).code == 0
    assert (tmp_path / "out").read_text() == "x\n"


@linux
@pytest.mark.parametrize("left", [0, 1, 2, 3, 4, 5, 6, 7, 8])
def test_a_disk_with_little_room(tmp_path: Path, left: int) -> None:
    """However far it gets: it runs once, or is not claimed, or says that it was the machine."""
    with small_disk(tmp_path / "disk") as disk:
        if not disk.is_mounted:
            pytest.skip("no disk can be mounted here")
        work = attempt(disk.folder)
        disk.fill()
        filler = disk.folder / "filler"
        os.truncate(filler, filler.stat().st_size - 4096 * left)
        job = script_job(work, f"echo x >> {tmp_path}/out", files={"params.json": "{}"}, input="given")
        try:
            supervision.start(work, job)
        except OSError:
            assert not supervision.is_claimed(work)
            return
        end = ended(work)
        has_run = (tmp_path / "out").exists()
        if end.reason == "exited":
            assert (end.code, has_run) == (0, True)
        else:
            assert (end.reason, end.errno, has_run) == ("not_started", errno.ENOSPC, False)
            failed = failure_of(work, end, {})
            assert isinstance(failed, Failed)
            assert failed.kind is FailureKind.PLATFORM


# Secrets.


@linux
def test_secrets_are_nowhere_but_where_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "correct horse/battery\nstaple & more"
    monkeypatch.setenv("OUR_PASSWORD", secret)
    work = attempt(tmp_path, secrets=(secret,))
    job = Job(
        ["bash", "-c", 'echo "$PASSWORD"; echo ready; until [ -e go ]; do sleep 0.01; done; cat'],
        {"PATH": os.environ["PATH"], "PASSWORD": secret},
        work.folder,
        input=f"{secret}\n",
    )
    handle = supervision.start(work, job).handle
    until(lambda: "ready" in log_text(work))
    for pid in commands_with(str(work.folder)):
        assert b"horse" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"horse" not in Path(f"/proc/{handle['pid']}/environ").read_bytes()
    assert "horse" not in json.dumps(handle)
    (work.folder / "go").touch()
    assert ended(work).code == 0
    assert log_text(work) == "***\nready\n***\n"
    for file in work.folder.iterdir():
        assert b"horse" not in file.read_bytes(), file
