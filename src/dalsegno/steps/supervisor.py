"""Looks after one job, alone: a program, which ``supervision`` starts with ``python -I -S``.

It outlives the dalsegno that started it, so a job goes on, keeps its log and meets its deadline while nobody watches.
Only the standard library is imported, and little of that: a job should not wait for its supervisor to start. Python
itself takes 10 ms, ``json`` and the enumerations of ``signal`` as long again each; so the first is imported while the
job runs, and of the second only what it is made of.

What it is to do comes on standard input, because arguments and environment can be read by others. In the folder of the
attempt it leaves:

- ``claim``: who looks after the job. It is made complete and locked elsewhere, and then linked to its name, which
  succeeds once: there is never a second job of an attempt, and whoever finds the lock free knows that the supervisor is
  gone.
- ``group``: the numbers of the job's process group and session.
- ``log``: what the job printed, with secrets masked and no longer than agreed.
- ``exit``: how it ended, written when nothing of the job is left.

A file ``cancel``, made by ``supervision``, asks it to end the job. Files ``node.N`` say who follows the attempt, the
highest number now: each names a file in which that process puts the time of its last sign of life. When there is none
for too long, another machine may start the job: then it is ended here. Without such a file it is not.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal

CLAIM, GROUP, EXIT, CANCEL, LOG = "claim", "group", "exit", "cancel", "log"
#: Begins the name of a file that says who looks after the attempt.
NODE = "node."

LINUX = os.uname().sysname == "Linux"
#: How much is read at once.
CHUNK = 1 << 16
#: How much of the end is kept of a log that became too long.
TAIL = 1 << 16
#: How long what the job left running has to end by itself.
LEFTOVER_GRACE = 2.0
#: How long the last resort is tried; what is left then cannot be killed.
KILL_SECONDS = 10.0
#: How long the command that cleans up may take.
CLEANUP_SECONDS = 60.0
#: Larger than any record of an ending. So much of the disk is taken before the job starts, so that a full disk cannot
#: make a finished job look like a vanished one.
EXIT_RECORD_SIZE = 4096
#: Larger than what else is written before the job starts.
CLAIM_SIZE = 16384
#: Larger than two numbers of processes.
GROUP_SIZE = 64
#: How long to try to write down how a job ended, on a disk that fails.
RECORD_SECONDS = 60.0

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def elapsing_clock() -> float:
    """Seconds that also pass while the machine sleeps, and never jump."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Mask:
    """Replaces secrets by ``***`` in a stream, wherever its chunks happen to be cut.

    Where secrets overlap, all that they cover is masked. Only text that may turn out to be a secret is held back.
    """

    def __init__(self, secrets: list[bytes]) -> None:
        self.secrets = [secret for secret in secrets if secret]
        self.held = b""
        #: How much of the held text is known to be part of a secret, whose mask is written already.
        self.covered = 0

    def feed(self, chunk: bytes, *, last: bool = False) -> bytes:
        text = self.held + chunk
        settled = len(text) if last else self._settled(text)
        shown: list[bytes] = []
        position = 0
        for start, end in self._spans(text):
            is_begun = self.covered > 0 and start == 0
            if start >= settled and not is_begun:
                break
            shown.append(text[position:start])
            if not is_begun:
                shown.append(b"***")
            position = end
        if position < settled:
            shown.append(text[position:settled])
        self.held = text[settled:]
        self.covered = max(0, position - settled)
        return b"".join(shown)

    def _settled(self, text: bytes) -> int:
        """Up to where no more text can make a secret of what is there."""
        longest = 0
        for secret in self.secrets:
            for length in range(min(len(secret) - 1, len(text)), longest, -1):
                if text.endswith(secret[:length]):
                    longest = length
                    break
        return len(text) - longest

    def _spans(self, text: bytes) -> list[tuple[int, int]]:
        """The stretches that secrets cover, in order and apart from each other."""
        found = [(0, self.covered)] if self.covered else []
        for secret in self.secrets:
            at = text.find(secret)
            while at >= 0:
                found.append((at, at + len(secret)))
                at = text.find(secret, at + 1)
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


class Log:
    """The beginning of what the job prints, as it comes, and its end; what is too much in between is counted."""

    def __init__(self, path: str, limit: int, secrets: list[bytes]) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.mask = Mask(secrets)
        self.limit = limit
        self.tail_size = min(TAIL, limit // 4)
        self.room = limit - self.tail_size
        self.tail = bytearray()
        self.left_out = 0
        #: Why some of it could not be written, if so.
        self.error = ""

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        text = self.mask.feed(chunk, last=last)
        fitting, rest = text[: self.room], text[self.room :]
        self.room -= len(fitting)
        self._write(fitting)
        if not rest:
            return
        if not self.left_out and not self.tail:
            self.note(f"the log is nearly at its limit of {self.limit:,} bytes: of what follows, only the end is kept")
        self.tail += rest
        if len(self.tail) > 2 * self.tail_size or last:
            self._shorten_tail()

    def note(self, text: str) -> None:
        """Something that dalsegno itself has to say."""
        self._write(f"[dalsegno] {text}\n".encode())

    def close(self) -> None:
        self.feed(b"", last=True)
        self._shorten_tail()
        if self.left_out:
            self.note(f"{self.left_out:,} bytes are left out here")
        self._write(bytes(self.tail))
        try:
            os.close(self.file)
        except OSError as error:  # a network disk tells it late
            self.error = os.strerror(error.errno or 0)

    def _shorten_tail(self) -> None:
        surplus = len(self.tail) - self.tail_size
        if surplus > 0:
            self.left_out += surplus
            del self.tail[:surplus]

    def _write(self, text: bytes) -> None:
        while text:
            try:
                text = text[os.write(self.file, text) :]
            except OSError as error:  # a full disk must not end the job
                self.left_out += len(text)
                self.error = os.strerror(error.errno or 0)
                return


class Job:
    """The job's processes."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.status: int | None = None
        #: Why the command could not be started, if so.
        self.error: OSError | None = None
        self.output, ours = os.pipe()
        os.set_blocking(self.output, False)
        supervisor = os.getpid()
        failure, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(ours, told, supervisor)
        os.close(ours)
        os.close(told)
        text = os.read(failure, CHUNK)
        os.close(failure)
        if text:
            number, _, name = text.decode().partition(" ")
            self.error = OSError(int(number), os.strerror(int(number)), name)

    def _become(self, output: int, told: int, supervisor: int) -> None:
        """In the new process: be the job, or say why not."""
        name = self.order["folder"]
        try:
            os.setpgid(0, 0)
            # If the supervisor is killed, so is what it watched.
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                return
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(given_input(self.order["input"]), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.umask(self.order["umask"])
            os.chdir(name)
            name = self.order["command"][0]
            os.execvpe(name, self.order["command"], self.order["environment"])  # noqa: S606 - running it is the task
        except OSError as error:
            os.write(told, f"{error.errno} {name}".encode())
        finally:
            os._exit(127)

    def reap(self) -> bool:
        """Take note of every process that ended; whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = os.waitstatus_to_exitcode(status)

    def processes(self) -> list[int]:
        """All that descends from here and still runs; without ``/proc``, the first process of the group."""
        if LINUX:
            return descendants(os.getpid())
        return [self.pid] if group_exists(self.pid) else []

    def is_gone(self) -> bool:
        """Whether nothing is left. A subreaper inherits whatever lost its parent, so it need not look further."""
        return not self.reap() and (LINUX or not group_exists(self.pid))

    def kill(self) -> None:
        # The group at once, so that none forks away in between; then whoever left it. Once the first process is
        # reaped, its number may be somebody else's.
        if self.status is None or not LINUX:
            send(os.killpg, self.pid, signal.SIGKILL)
        for pid in self.processes():
            send(os.kill, pid, signal.SIGKILL)


def send(by: Callable[[int, int], None], pid: int, number: int) -> None:
    """Send a signal to whoever is still there and may be signalled."""
    try:
        by(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def given_input(text: str | None) -> int:
    """What the job reads: nothing, or a file without a name."""
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    draft = f".input-{os.getpid()}"
    file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(draft)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(text.encode())
    os.lseek(file, 0, os.SEEK_SET)
    return file


def prctl(option: int, value: int) -> None:
    """Linux only. Elsewhere what a job started in a group of its own is not found again."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def hide_process() -> None:
    """Keep other processes of this user, such as jobs, from reading our environment and memory in ``/proc``.

    It does not hold for root, nor for what this process starts. There is no core dump either.
    """
    prctl(_PR_SET_DUMPABLE, 0)


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def descendants(ancestor: int) -> list[int]:
    """The processes below one, zombies left out; needs ``/proc``."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for pid, state, parent, _, _ in process_table():
        children.setdefault(parent, []).append(pid)
        if state == "Z":
            zombies.add(pid)
    found, open_ends = [], [ancestor]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return [pid for pid in found if pid not in zombies]


def process_table() -> list[tuple[int, str, int, int, int]]:
    """(pid, state, parent, group, session) of every process."""
    table = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        fields = stat_fields(name) if name.isdecimal() else []
        if fields:
            table.append((int(name), fields[0], int(fields[1]), int(fields[2]), int(fields[3])))
    return table


def stat_fields(pid: int | str) -> list[str]:
    """``/proc/PID/stat`` from the state on, which is after a name that may hold anything; empty if it is not there."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> str:
    """Tells a process from a later one with the same number, within one boot; empty if it is not there."""
    fields = stat_fields(pid)
    return fields[19] if fields else ""


def claimed(order: dict[str, Any]) -> int | None:
    """The locked claim; None if another supervisor has it, or had it."""
    pid = os.getpid()
    draft = f".claim-{order['token']}"
    file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        # The last two fields of an object that was begun where there was time to import json.
        write_all(file, f'{order["claim"]}, "pid": {pid}, "start_time": "{start_time(pid)}"}}'.encode())
        os.fsync(file)
        os.link(draft, CLAIM)
    except FileExistsError:
        return None
    finally:
        os.unlink(draft)
    sync_folder()
    return file


def write_all(file: int, text: bytes) -> None:
    """A disk that is nearly full takes a part at first, and then complains."""
    while text:
        text = text[os.write(file, text) :]


def reserved(order: dict[str, Any]) -> None:
    """Take the space that is needed later, while nothing has happened yet: an attempt that cannot begin here has no
    claim, so it can begin elsewhere.
    """
    needed = sum(len(text.encode()) for text in (*order["files"].values(), order["input"] or ""))
    file = os.open(reserve_of(order), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(file, b" " * (EXIT_RECORD_SIZE + needed + CLAIM_SIZE))
        os.ftruncate(file, EXIT_RECORD_SIZE)
    finally:
        os.close(file)


def reserve_of(order: dict[str, Any]) -> str:
    return f".{EXIT}-{order['token']}"


def sync_folder() -> None:
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def write_files(files: dict[str, str], mode: int = 0o600) -> None:
    for name, text in files.items():
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(file, mode)
        with os.fdopen(file, "w", encoding="utf-8", newline="") as writer:
            writer.write(text)


def remove_files(files: dict[str, str]) -> None:
    for name in files:
        try:
            os.unlink(name)
        except FileNotFoundError:
            continue


class Guardian:
    """Whoever follows the job, as far as it can be seen from here."""

    def __init__(self) -> None:
        #: The last sign of life that was seen.
        self.seen = elapsing_clock()
        self.is_known = False

    def silent_seconds(self) -> float:
        """For how long there was no sign of life; 0 if there need not be any."""
        sign = self._sign()
        if sign is not None:
            self.seen, self.is_known = sign, True
        return elapsing_clock() - self.seen if self.is_known else 0.0

    def _sign(self) -> float | None:
        try:
            numbers = [name[len(NODE) :] for name in os.listdir(".") if name.startswith(NODE)]
        except OSError:
            return None
        newest = max((int(number) for number in numbers if number.isdecimal()), default=None)
        if newest is None:
            return None
        # From now on it matters, even if the file it names is gone.
        self.is_known = True
        try:
            with open(f"{NODE}{newest}", encoding="utf-8") as pointer, open(pointer.read(), encoding="ascii") as file:
                return float(file.read())
        except (OSError, ValueError):
            return None


class Supervisor:
    """Watches the job from its first process to its last."""

    def __init__(self, order: dict[str, Any], guardian: Guardian) -> None:
        self.order = order
        self.guardian = guardian
        self.began = time.time()
        self.start = elapsing_clock()
        self.log = Log(LOG, order["log_limit"], [secret.encode() for secret in order["secrets"]])
        self.woken, waker = os.pipe()
        for end in (self.woken, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self.asked_to_end = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_end)

    def _ask_to_end(self, *_: object) -> None:
        self.asked_to_end = True

    def begin(self) -> None:
        """Start the job; an error says that it was not."""
        write_files(self.order["files"], self.order["file_mode"])
        # Filled in place once the job runs, which a full disk allows.
        write_files({GROUP: " " * GROUP_SIZE})
        for text in self.order["notes"]:
            self.log.note(text)
        self.job = Job(self.order)

    def run(self) -> None:
        try:
            with open(GROUP, "r+b") as group:
                group.write(f"{self.job.pid} {os.getsid(0)}".encode())
        except OSError as error:  # it is needed only if we are killed
            self.log.error = os.strerror(error.errno or 0)
        tell("started")
        self.has_output = True
        self.poller = select.poll()
        self.poller.register(self.job.output, select.POLLIN)
        self.poller.register(self.woken, select.POLLIN)
        reason = self._watch() if self.job.error is None else "not_started"
        left = self._end(self._grace(reason))
        self._drain()
        self._clean_up()
        self.log.close()
        remove_files(self.order["files"])
        self._record(reason, left)

    def _grace(self, reason: str) -> float:
        """How long what is left of the job has to end by itself."""
        grace: float = self.order["grace"]
        if reason in ("exited", "not_started"):
            return LEFTOVER_GRACE
        if reason == "abandoned":
            killed_after: float = self.order["abandoned_after"][1]
            return max(0.0, min(grace, killed_after - self.guardian.silent_seconds()))
        return grace

    def _watch(self) -> str:
        """Until the job ends, or must: why."""
        seconds = self.order["seconds_left"]
        while True:
            self.job.reap()
            if self.job.status is not None:
                return "exited"
            if os.path.exists(CANCEL):
                self.log.note("cancelled: ending the job")
                return "cancelled"
            if self.asked_to_end:
                self.log.note("the supervisor received a signal to end, not from dalsegno: ending the job")
                return "terminated"
            if self.guardian.silent_seconds() >= self.order["abandoned_after"][0]:
                self.log.note("the process that followed the job gives no sign of life: ending the job")
                return "abandoned"
            if seconds is not None and elapsing_clock() - self.start >= seconds:
                self.log.note(f"the time is up after {seconds:.1f} s: ending the job")
                return "timed_out"
            left = None if seconds is None else self.start + seconds - elapsing_clock()
            # Files are looked for every second: a signal may not reach us from another machine or container.
            self._wait(1.0 if left is None else min(1.0, left))

    def _end(self, grace: float) -> list[int]:
        """Ask what is left to end, then make it; what cannot be killed."""
        asked: set[int] = set()
        until = elapsing_clock() + grace
        pause = 0.002
        while not self.job.is_gone() and elapsing_clock() < until:
            for pid in set(self.job.processes()) - asked:
                send(os.kill if LINUX else os.killpg, pid, signal.SIGTERM)
                asked.add(pid)
            self._wait(pause)
            pause = min(2 * pause, 0.1)
        until = elapsing_clock() + KILL_SECONDS
        while not self.job.is_gone() and elapsing_clock() < until:
            self.job.kill()
            self._wait(0.01)
        return self.job.processes()

    def _wait(self, seconds: float) -> None:
        """Until a process ends, the job prints something, or the time is over."""
        for file, _ in self.poller.poll(max(0.0, seconds) * 1000):
            if file == self.woken:
                os.read(self.woken, CHUNK)
            else:
                self._read()

    def _read(self) -> bool:
        """Whether there was something to read."""
        if not self.has_output:
            return False
        try:
            chunk = os.read(self.job.output, CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self.log.feed(chunk)
        else:
            self.has_output = False
            self.poller.unregister(self.job.output)
        return self.has_output

    def _drain(self) -> None:
        # What could not be killed may print for ever.
        until = elapsing_clock() + KILL_SECONDS
        while self._read() and elapsing_clock() < until:
            pass

    def _clean_up(self) -> None:
        """Run the command that removes what is not a process of ours, such as a container."""
        if not self.order["cleanup"]:
            return
        cleaning = Job({**self.order, "command": self.order["cleanup"], "input": None})
        until = elapsing_clock() + CLEANUP_SECONDS
        while not cleaning.is_gone() and elapsing_clock() < until:
            self._wait(0.1)
        cleaning.kill()

    def _record(self, reason: str, left: list[int]) -> None:
        import json  # noqa: PLC0415 - it would keep the job waiting

        status, error = self.job.status, self.job.error
        record = {
            "reason": reason,
            "code": status if status is not None and status >= 0 else None,
            "signal": -status if status is not None and status < 0 else None,
            "error": None if error is None else f"{error.strerror}: {error.filename}",
            "errno": None if error is None else error.errno,
            "began": self.began,
            "ended": time.time(),
            "seconds": round(elapsing_clock() - self.start, 3),
            "log_left_out": self.log.left_out,
            "log_error": self.log.error,
            "not_killed": left[:100],
        }
        write_record(self.order, json.dumps(record).encode())


def write_record(order: dict[str, Any], record: bytes) -> None:
    """How it ended, for good. While the disk does not take it, the job is neither done nor failed."""
    until = elapsing_clock() + RECORD_SECONDS
    while True:
        try:
            with open(reserve_of(order), "r+b") as file:
                file.write(record.ljust(EXIT_RECORD_SIZE))
                file.flush()
                os.fsync(file.fileno())
            os.rename(reserve_of(order), EXIT)
            return sync_folder()
        except FileNotFoundError:
            # The folder was emptied, or is gone.
            return None
        except OSError:
            if elapsing_clock() > until:
                raise
            time.sleep(1.0)


def tell(word: str) -> None:
    """Answer whoever started us, if they are still there, and let go of them."""
    try:
        os.write(1, word.encode())
    except BrokenPipeError:
        pass
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def main() -> None:
    try:
        # From the very same Python that runs this, and from nobody else.
        order = marshal.load(sys.stdin.buffer)  # noqa: S302
    except (EOFError, ValueError, TypeError):
        # Whoever started us died before we were told all: nothing has happened yet.
        sys.exit("the order was incomplete")
    # The order holds secrets.
    hide_process()
    # Whoever started us waits for this process, not for the job: an end without a child to reap.
    if os.fork():
        os._exit(0)
    os.chdir(sys.argv[1])
    order["umask"] = os.umask(0o077)
    guardian = Guardian()
    if guardian.silent_seconds() >= order["abandoned_after"][0]:
        # Whoever wants it started slept for so long that another machine may have started it by now.
        tell("abandoned")
        return
    try:
        reserved(order)
        claim = claimed(order)
    except OSError as error:
        remove_files({reserve_of(order): ""})
        tell(f"failed {error.errno}")
        return
    if claim is None:
        remove_files({reserve_of(order): ""})
        tell("taken")
        return
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        supervisor = Supervisor(order, guardian)
        supervisor.begin()
    except OSError as error:
        remove_files(order["files"])
        import json  # noqa: PLC0415 - it would keep a job waiting

        record = {"reason": "not_started", "error": f"{error.strerror}: {error.filename}", "errno": error.errno}
        write_record(order, json.dumps(record).encode())
        tell("started")
        return
    supervisor.run()


if __name__ == "__main__":
    main()
