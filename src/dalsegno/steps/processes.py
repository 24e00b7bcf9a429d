"""Step types that run a command: how they start, how they are followed, and what their end means.

A type of this kind says which command it is (``job``), and everything else is here.
"""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError, UserError
from dalsegno.job.step import FAILURE
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.steps import supervision
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.disks import write_failure
from dalsegno.steps.environment import OUTPUT_FILE, job_environment, job_files, refuse_impossible
from dalsegno.steps.outputs import SIZE_LIMIT, read_outputs
from dalsegno.steps.supervision import Ended, Job

#: What ``sysexits.h`` calls a temporary failure: trying again may help.
TEMPORARY_FAILURE = 75
#: There: something is not configured as it must be. Our own jobs say so when trying again cannot help.
WRONG_CONFIGURATION = 78

#: How much of a log is told in the message of a failure.
_LAST_LINES, _LINE_CHARACTERS, _LAST_BYTES = 5, 400, 64 * 1024
#: Where Java was when it failed comes after why it did, and is long.
_JAVA_STACK = re.compile(r"\s+(at \S+\(.*\)|\.\.\. \d+ (more|common frames omitted))")
#: What the kernel says when it cannot start a process now, but perhaps later.
_PASSING_ERRORS = frozenset(
    {
        *(errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY),
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE),
    }
)


class ProcessRunner:
    """A type whose steps are a command each."""

    name: ClassVar[str]
    raw: ClassVar[frozenset[str]] = frozenset()
    #: Exit codes that say whose fault it was; any other is the user's.
    exit_codes: ClassVar[Mapping[int, FailureKind]] = {TEMPORARY_FAILURE: FailureKind.PLATFORM}
    #: Where its outputs are, in the attempt's folder.
    output_file: ClassVar[str] = OUTPUT_FILE
    #: How much a job may hand on.
    output_limit: ClassVar[int] = SIZE_LIMIT

    def job(self, work: Work) -> Job:
        """The command, or an error about what the step says."""
        raise NotImplementedError

    def start(self, work: Work) -> Started | Finished:
        if supervision.is_claimed(work):
            # An earlier call got this far. What it made of the step's parameters is what runs.
            return supervision.resumed(work)
        if work.deadline is not None and work.deadline <= utc_now():
            return Finished(Failed(FailureKind.TIMEOUT, "The time was up before the job began."))
        try:
            job = self.job(work)
            refuse_impossible({f"the command's word {n}": word for n, word in enumerate(job.command, 1)})
            refuse_impossible({f"the variable {name}": value for name, value in job.environment.items()})
            refuse_impossible(job.files)
        except UserError as error:
            return Finished(Failed(FailureKind.FATAL, error.message, error.hint))
        except DalsegnoError as error:
            return Finished(Failed(FailureKind.PLATFORM, error.message, error.hint))
        return supervision.start(work, job)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        match supervision.poll(work, patience):
            case Running() as running:
                return running
            case Ended() as ended:
                return Finished(self.outcome(work, ended))

    def cancel(self, work: Work) -> None:
        supervision.cancel(work)

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        """What the end of the job means for the step."""
        failure = failure_of(work, ended, self.exit_codes)
        try:
            outputs = read_outputs(work.folder / self.output_file, work.secrets, limit=self.output_limit)
        except UserError as error:
            return failure or Failed(FailureKind.USER, error.message, error.hint)
        if (message := outputs.pop(FAILURE, None)) is not None and not isinstance(failure, Stopped):
            return Failed(FailureKind.FATAL, str(message), outputs=outputs)
        match failure:
            case None:
                return Succeeded(outputs)
            case Stopped():
                return failure
            case Failed():
                return replace(failure, outputs=outputs)


def command_job(work: Work, block: str, command: list[str], **details: Any) -> Job:
    """A job with the usual environment and parameters; ``variables`` come on top, other details go to ``Job``."""
    files = {**job_files(work, block), **details.pop("files", {})}
    environment = job_environment(work, details.pop("variables", {}))
    return Job(command, environment, details.pop("folder", work.settings.root), files, **details)


def failure_of(work: Work, ended: Ended, exit_codes: Mapping[int, FailureKind]) -> Failed | Stopped | None:
    """What went wrong, if anything did."""
    return _exit_failure(work, ended, exit_codes) if ended.reason == "exited" else _interruption(ended)


def _interruption(ended: Ended) -> Failed | Stopped:
    """What it means that a job did not come to its own end."""
    match ended:
        case Ended(reason="timed_out"):
            message = f"The job was ended after {ended.seconds:.1f} s, because its time was up.{_not_killed(ended)}"
            return Failed(FailureKind.TIMEOUT, message)
        case Ended(reason="cancelled"):
            return Stopped(f"The job was cancelled.{_not_killed(ended)}")
        case Ended(reason="terminated"):
            return Failed(
                FailureKind.PLATFORM,
                "The job's supervisor received a signal to end, as when a machine shuts down, and ended the job.",
            )
        case Ended(reason="abandoned"):
            message = (
                "The process that followed the job died, or was cut off from the store, and no other on this machine "
                f"took over in time: the job was ended, so that another machine may run it.{_not_killed(ended)}"
            )
            return Failed(FailureKind.PLATFORM, message, at_once=True)
        case Ended(reason="not_started"):
            kind = FailureKind.PLATFORM if ended.errno in {None, *_PASSING_ERRORS} else FailureKind.FATAL
            return Failed(kind, f"The job could not be started: {ended.error}.")
        case _:
            message = (
                f"The job's supervisor vanished ({ended.error}) without saying how the job ended, as after a restart "
                f"of the machine. Nothing of the job runs any more, but it may have done its work, or part of it."
                f"{_not_killed(ended)}"
            )
            # The machine that is gone is not the one that tries next.
            return Failed(FailureKind.PLATFORM, message, at_once=ended.is_elsewhere)


def _exit_failure(work: Work, ended: Ended, exit_codes: Mapping[int, FailureKind]) -> Failed | None:
    if ended.code == 0:
        return None
    lines = last_lines(work.log)
    if ended.signal is None:
        kind = exit_codes.get(ended.code or 0, FailureKind.USER)
        message = f"The job ended with exit code {ended.code}.{lines}"
        if kind is FailureKind.USER and (failed := ended.log_error or write_failure(work.folder)):
            hint = f"Perhaps that is why it failed: its folder, {work.folder}, could not be written: {failed}."
            return Failed(FailureKind.PLATFORM, message, hint)
        return Failed(kind, message)
    known = {number.value: number.name for number in signal.Signals}
    message = f"The job was killed by signal {ended.signal} ({known.get(ended.signal, 'unknown')}).{lines}"
    if ended.signal == signal.SIGKILL:
        return Failed(FailureKind.PLATFORM, message, hint="Perhaps the machine ran out of memory.")
    return Failed(FailureKind.PLATFORM if ended.signal == signal.SIGTERM else FailureKind.USER, message)


def _not_killed(ended: Ended) -> str:
    if not ended.not_killed:
        return ""
    return f" These processes could not be killed: {', '.join(map(str, ended.not_killed))}."


def last_lines(log: Path) -> str:
    """The end of a log as part of a sentence; empty if nothing was printed."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    told = [line.rstrip() for line in text.splitlines() if line.strip() and not _JAVA_STACK.match(line)]
    lines = [line[:_LINE_CHARACTERS] for line in told[-_LAST_LINES:]]
    return " It last said:\n" + "\n".join(lines) if lines else ""
