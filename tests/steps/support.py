"""Attempts of steps, run for real."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dalsegno.model.outcomes import Failed, Outcome, Succeeded
from dalsegno.settings import Settings
from dalsegno.steps import supervision, supervisor
from dalsegno.steps.contract import Finished, Runner, Work
from dalsegno.steps.supervision import Ended, Job

#: Longer than anything here takes, on a machine that is busy with other things.
PATIENCE = 60.0


def attempt(root: Path, params: dict[str, Any] | None = None, *, settings: Settings | None = None, **more: Any) -> Work:
    """The attempt of a step whose project is in ``root``."""
    number = 1 + len(list(root.glob(".attempts/*")))
    folder = root / ".attempts" / str(number)
    folder.mkdir(parents=True)
    settings = settings or Settings(root=root)
    return Work("demo", 1, "step", number, f"demo.1.step.{number}", params or {}, folder, settings, **more)


def finished(runner: Runner, work: Work) -> Outcome:
    """Start the step and wait for its end."""
    match runner.start(work):
        case Finished(outcome):
            return outcome
        case started:
            polled = runner.poll(replace(work, handle=started.handle), PATIENCE)
    assert isinstance(polled, Finished), work.log.read_text()
    return polled.outcome


def outputs(runner: Runner, work: Work) -> dict[str, Any]:
    """What a step that must succeed hands on."""
    outcome = finished(runner, work)
    assert isinstance(outcome, Succeeded), outcome
    return dict(outcome.outputs)


def failure(runner: Runner, work: Work) -> Failed:
    """How a step that must fail fails."""
    outcome = finished(runner, work)
    assert isinstance(outcome, Failed), outcome
    return outcome


def script_job(work: Work, script: str, **more: Any) -> Job:
    return Job(["bash", "-c", script], {"PATH": os.environ["PATH"]}, work.folder, **more)


def ended(work: Work) -> Ended:
    end = supervision.poll(work, PATIENCE)
    assert isinstance(end, Ended), work.log.read_text()
    return end


def log_text(work: Work) -> str:
    return work.log.read_text() if work.log.exists() else ""


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def commands_with(text: str) -> dict[int, str]:
    """The running processes whose command line has a text, other than this one."""
    found = {}
    for pid, state, *_ in supervisor.process_table():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command and state != "Z" and pid != os.getpid():
            found[pid] = command
    return found


def seconds_since(moment: datetime) -> float:
    return (datetime.now(moment.tzinfo) - moment).total_seconds()
