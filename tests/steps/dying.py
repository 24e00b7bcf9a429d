"""Processes that start a job and die by ``kill -9`` on the way.

Run by ``multiprocessing``'s fork server, since the test's own process has threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import Any

from dalsegno.steps import supervision
from dalsegno.steps.contract import Work
from dalsegno.steps.supervision import Job
from tests.processes import PROCESSES

#: Where a process can die while it starts a job, in order.
STAGES = ("before the supervisor", "before the order", "half the order", "before the answer", "after the answer")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _DyingPopen(subprocess.Popen[bytes]):
    stage = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        if self.stage == "before the supervisor":
            _die()
        super().__init__(*args, **options)
        if self.stage == "before the order":
            _die()

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        assert self.stdin is not None
        if self.stage == "half the order":
            os.write(self.stdin.fileno(), input[: len(input) // 2])
            _die()
        if self.stage == "before the answer":
            os.write(self.stdin.fileno(), input)
            _die()
        answer = super().communicate(input, timeout)
        _die()
        return answer


def start_and_die(work: Work, job: Job, stage: str) -> None:
    """Start a job up to a stage, in a process that is gone when this returns."""
    process = PROCESSES.Process(target=_start, args=(work, job, stage))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    process.close()


def starting(work: Work, job: Job) -> tuple[BaseProcess, Event]:
    """A process that starts a job when the event is set."""
    begin = PROCESSES.Event()
    process = PROCESSES.Process(target=_start, args=(work, job, "", begin))
    process.start()
    return process, begin


def _start(work: Work, job: Job, stage: str, begin: Event | None = None) -> None:
    if begin is not None:
        begin.wait()
    else:
        _DyingPopen.stage = stage
        supervision.subprocess.Popen = _DyingPopen  # type: ignore[attr-defined]
    supervision.start(work, job)
