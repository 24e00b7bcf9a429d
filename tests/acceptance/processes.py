"""The installed command in processes of its own: what only shows there is signals, terminals and sudden deaths."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_SECONDS = 120
#: A process that is started in the background ignores Ctrl-C, and so does what it starts; what this starts does not.
_HEEDING_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


def command(name: str = "dalsegno") -> str:
    return str(Path(sys.executable).with_name(name))


def done(folder: Path, *arguments: str, name: str = "dalsegno") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [command(name), *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
    )


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on meanwhile. It is killed if it has not ended by the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HEEDING_CTRL_C, command(), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """What a process has written until its end; one that does not end fails the test."""
    return process.communicate(timeout=_PATIENCE_SECONDS)[0]


def wait_for(condition: Callable[[], object]) -> None:
    """Until it holds; what never comes fails the test."""
    patience = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < patience, "it did not come"
        time.sleep(0.02)
