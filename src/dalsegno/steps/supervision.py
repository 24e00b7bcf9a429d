"""Jobs that are processes of this machine: start one under a supervisor, follow it, end it.

A step type that runs a command asks ``start``, ``poll`` and ``cancel`` here, or takes them from
``processes.ProcessRunner``. Everything is in the attempt's folder (see ``supervisor``), so any process that knows the
folder can go on, and a call may be repeated:

- Died before the supervisor was told all: it ends without a trace, and the next ``start`` begins.
- Died afterwards: the next ``start`` finds the claim, or loses it to the first supervisor; either way one job runs.
- The supervisor itself was killed: the lock on its claim is free and there is no record of an ending. Whatever is left
  of the job is killed, and the attempt failed. It is not started again: nobody knows how far it came.
"""

from __future__ import annotations

import json
import marshal
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dalsegno.clock import utc_now
from dalsegno.errors import PlatformError
from dalsegno.file_locks import is_held
from dalsegno.steps import supervisor
from dalsegno.steps.contract import Running, Started, Work
from dalsegno.steps.secret_values import without_secrets

#: How long a supervisor may take to begin, on a machine that is busy.
START_SECONDS = 60.0
#: How long a cancelled job may take beyond its own grace before its supervisor is killed as well.
CANCEL_SECONDS = 30.0
#: After how long without a sign of life of whoever follows the job it is asked to end, and killed. Before another
#: machine may start it: see ``plan.liveness``.
ABANDONED_SECONDS = (8.0, 11.0)
#: The variable by which the processes of a job are known.
MARK = "DALSEGNO_JOB"
#: Imported rather than run as a file, so that it need not be compiled each time; after all else that could be meant.
_PROGRAM = (
    f"import sys; sys.path.append({str(Path(supervisor.__file__).parent)!r}); import supervisor; supervisor.main()"
)
#: The shortest line of a secret that is masked by itself.
MASKED_LINE_LENGTH = 8


@dataclass(frozen=True)
class Job:
    """A command, and what it needs."""

    command: Sequence[str]
    #: The whole environment; nothing of dalsegno's own is added.
    environment: Mapping[str, str]
    #: Where it runs.
    folder: Path
    #: Files by name that are in the attempt's folder while it runs.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Who may read them: the owner, unless told otherwise.
    file_mode: int = 0o600
    #: What it can read from its standard input; never seen on disk or in a list of processes.
    input: str | None = None
    #: How long it has between being asked to end and being killed.
    grace: float = 10.0
    #: What the log must not show, beyond the secrets of the step.
    secrets: Sequence[str] = ()
    #: What the log says before the job says anything.
    notes: Sequence[str] = ()
    #: A command that removes what the job made outside of its own processes; run when it is over, however it ended.
    cleanup: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    #: exited | timed_out | cancelled | terminated | abandoned | not_started | vanished
    reason: str
    #: The exit code, if it exited.
    code: int | None = None
    #: The signal that killed it, if one did.
    signal: int | None = None
    #: Why it could not be started.
    error: str | None = None
    errno: int | None = None
    seconds: float = 0.0
    #: Processes that could not be killed, for want of permission.
    not_killed: tuple[int, ...] = ()
    #: Whether it ran on another machine, as far as can be seen.
    is_elsewhere: bool = False
    #: Why some of the log could not be written, if so.
    log_error: str = ""


def is_claimed(work: Work) -> bool:
    """Whether the attempt's job was started, or ended before it could start."""
    return (work.folder / supervisor.CLAIM).exists()


def entrust(folder: Path, number: int, sign_file: Path) -> None:
    """Let the attempt's job go on as long as this file is renewed, unless somebody with a higher number says so too."""
    draft = folder / f".{supervisor.NODE}{number}-{secrets.token_hex(4)}"
    draft.write_text(str(sign_file))
    draft.replace(folder / f"{supervisor.NODE}{number}")


def start(work: Work, job: Job) -> Started:
    """Begin the job, unless an earlier call did."""
    if not is_claimed(work):
        _launch(work, job)
    return resumed(work)


def resumed(work: Work) -> Started:
    """The job that an earlier call began."""
    return Started(_claim(work))


def poll(work: Work, patience: float) -> Running | Ended:
    """Wait for the end."""
    until = time.monotonic() + patience
    pause = 0.01
    while True:
        if ended := _recorded(work):
            return ended
        claim = _claim(work)
        if not _is_locked(work):
            return _recorded(work) or _vanished(work, claim)
        left = until - time.monotonic()
        if left <= 0:
            return Running()
        if not _wait_for(work, claim, left):
            time.sleep(min(left, pause))
            pause = min(2 * pause, 0.5)


def cancel(work: Work) -> None:
    """End the job; returns when nothing of it is left. One that was not started never will be."""
    # Where the disk is full, the signal below reaches a supervisor of this machine.
    with suppress(OSError):
        (work.folder / supervisor.CANCEL).touch(mode=0o600)
    # With a handle there was a job, even if its folder was emptied since.
    if work.handle is None and _bury(work, {"reason": "cancelled"}):
        return
    claim = _claim(work)
    _signal(work, claim, signal.SIGTERM)
    grace = float(claim.get("grace", 0))
    if isinstance(poll(work, grace + CANCEL_SECONDS), Ended):
        return
    _signal(work, claim, signal.SIGKILL)
    if isinstance(poll(work, CANCEL_SECONDS), Running):
        raise PlatformError(
            f"The job of {work.key} does not end: its supervisor, process {claim.get('pid')} on {claim.get('host')}, "
            "still runs.",
            hint="End it there by hand.",
        )


def _launch(work: Work, job: Job) -> None:
    token = secrets.token_hex(16)
    claim = {
        "token": token,
        "host": os.uname().nodename,
        "boot_id": _boot_id(),
        "files": sorted(job.files),
        "cleanup": [str(word) for word in job.cleanup],
        "grace": job.grace,
    }
    order = {
        "token": token,
        "claim": json.dumps(claim).removesuffix("}"),
        "command": [str(word) for word in job.command],
        "environment": {**job.environment, MARK: token},
        "folder": str(job.folder),
        "files": dict(job.files),
        "file_mode": job.file_mode,
        "input": job.input,
        "notes": list(job.notes),
        "grace": job.grace,
        "abandoned_after": ABANDONED_SECONDS,
        "cleanup": [str(word) for word in job.cleanup],
        "log_limit": work.log_limit,
        "secrets": sorted({form for secret in (*work.secrets, *job.secrets) for form in shown_forms(secret)}),
        "seconds_left": None if work.deadline is None else (work.deadline - utc_now()).total_seconds(),
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, str(work.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        answer, complaint = process.communicate(marshal.dumps(order), timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        answer, complaint = b"", b"it did not answer"
    finally:
        # Not by ``with``, which would wait for whatever keeps the other ends.
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if answer.startswith(b"failed "):
        # It had no claim, so it can begin elsewhere.
        number = int(answer.split()[1])
        raise OSError(number, os.strerror(number), str(work.folder))
    # Whatever went wrong: if nobody has the claim now, nobody ever will, and no job runs.
    if answer not in (b"started", b"taken"):
        last_line = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        error = f"the supervisor did not begin: {last_line or f'exit code {process.returncode}'}"
        if answer == b"abandoned":
            error = "the process that wanted it gave no sign of life for so long that another may have started it"
        _bury(work, {"reason": "not_started", "error": error})


def _bury(work: Work, record: Mapping[str, Any]) -> bool:
    """Take the claim of a job that was not started, so that it never is; false if it was."""
    name = f"-{os.getpid()}-{time.monotonic_ns()}"
    claim, ended = work.folder / f".claim{name}", work.folder / f".exit{name}"
    try:
        # Both are there before either counts: a full disk must not leave the one without the other.
        ended.write_text(json.dumps(record))
        claim.write_text(json.dumps({"files": [], "cleanup": []}))
        os.link(claim, work.folder / supervisor.CLAIM)
        ended.replace(work.folder / supervisor.EXIT)
    except FileExistsError:
        return False
    finally:
        claim.unlink(missing_ok=True)
        ended.unlink(missing_ok=True)
    return True


def _claim(work: Work) -> dict[str, Any]:
    """Who looks after the job."""
    try:
        claim: dict[str, Any] = json.loads((work.folder / supervisor.CLAIM).read_bytes())
    except FileNotFoundError:
        # The folder was emptied. What started the job is still known by its handle.
        return dict(work.handle or {})
    return claim


def _recorded(work: Work) -> Ended | None:
    try:
        record = json.loads((work.folder / supervisor.EXIT).read_bytes())
    except FileNotFoundError:
        return None
    return Ended(
        record["reason"],
        record.get("code"),
        record.get("signal"),
        record.get("error"),
        record.get("errno"),
        record.get("seconds", 0.0),
        tuple(record.get("not_killed", ())),
        log_error=record.get("log_error", ""),
    )


def _is_locked(work: Work) -> bool:
    """Whether the supervisor lives: the lock is its own from before its claim was there, and goes with it."""
    return is_held(work.folder / supervisor.CLAIM)


def _wait_for(work: Work, claim: Mapping[str, Any], seconds: float) -> bool:
    """Wait for the supervisor's end; false at once where only looking again and again helps."""
    if not hasattr(os, "pidfd_open") or not _is_here(claim):
        return False
    try:
        process = os.pidfd_open(claim["pid"])
    except OSError:
        return False
    try:
        # It had the lock before and has it after: so the number is still its own.
        if _is_locked(work):
            poller = select.poll()
            poller.register(process, select.POLLIN)
            poller.poll(seconds * 1000)
    finally:
        os.close(process)
    return True


def _is_here(claim: Mapping[str, Any]) -> bool:
    """Whether the supervisor's number means the same process to us: not after a restart, nor in another container."""
    pid = claim.get("pid")
    return (
        isinstance(pid, int)
        and claim.get("boot_id") == _boot_id()
        and claim.get("start_time") == supervisor.start_time(pid)
    )


def _signal(work: Work, claim: Mapping[str, Any], number: int) -> None:
    if _is_here(claim) and _is_locked(work):
        supervisor.send(os.kill, claim["pid"], number)


def _vanished(work: Work, claim: Mapping[str, Any]) -> Ended:
    """Nobody looks after the job any more: end what is left of it."""
    left: list[int] = []
    if "token" in claim and claim["boot_id"] == _boot_id():
        until = time.monotonic() + supervisor.KILL_SECONDS
        while (left := _left_behind(work, claim["token"])) and time.monotonic() < until:
            for pid in left:
                supervisor.send(os.kill, pid, signal.SIGKILL)
            time.sleep(0.01)
    if cleanup := claim.get("cleanup"):
        environment = without_secrets(os.environ, work.settings)
        seconds = supervisor.CLEANUP_SECONDS
        subprocess.run(cleanup, env=environment, capture_output=True, check=False, timeout=seconds)
    for name in claim.get("files", ()):
        (work.folder / name).unlink(missing_ok=True)
    if (work.folder / supervisor.CANCEL).exists():
        return Ended("cancelled", not_killed=tuple(left))
    host = claim.get("host", "an unknown machine")
    is_elsewhere = not is_claimed(work) or host != os.uname().nodename
    error = f"process {claim.get('pid')} on {host}"
    return Ended("vanished", error=error, not_killed=tuple(left), is_elsewhere=is_elsewhere)


def _left_behind(work: Work, token: str) -> list[int]:
    """What still runs of a job without a supervisor: what carries its mark or is in its group, and all below."""
    mark = f"{MARK}={token}".encode()
    try:
        group, session = map(int, (work.folder / supervisor.GROUP).read_text().split())
    except (FileNotFoundError, ValueError):
        group = session = -1
    found: set[int] = set()
    for pid, state, _, its_group, its_session in supervisor.process_table():
        if state == "Z":
            continue
        # Numbers are given again one day, but hardly both of them to a pair that belongs together.
        if (its_group, its_session) == (group, session) or mark in _environment(pid):
            found |= {pid, *supervisor.descendants(pid)}
    return sorted(found)


def _boot_id() -> str:
    """Changes whenever the machine starts; empty where there is no such thing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def shown_forms(secret: str) -> set[str]:
    """A secret as it may appear in a log: itself, its lines, and as part of JSON or of an address."""
    lines = [line for line in secret.splitlines() if len(line) >= MASKED_LINE_LENGTH]
    forms = {secret, *lines, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, "")}
    return forms - {""}
