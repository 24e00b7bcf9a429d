"""The installed command in processes of its own: what only shows there is signals, terminals and sudden deaths."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
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


def on_a_terminal(
    rows: int,
    columns: int,
    folder: Path,
    *arguments: str,
    interrupted_at: str | None = None,
    ends_with: int = 0,
    environment: Mapping[str, str] | None = None,
) -> str:
    """What a command prints on a terminal; Ctrl-C is pressed as soon as it has printed something."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        # Readline puts the size of another terminal there, and processes started by the test runner inherit it.
        others = ("LINES", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
        inherited = {name: value for name, value in os.environ.items() if name not in others}
        os.execve(command(), [command(), *arguments], {**inherited, "TERM": "xterm", **(environment or {})})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    printed = b""
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:
            # That is how Linux says that the other side has closed the terminal.
            break
        if not chunk:
            break
        printed += chunk
        if interrupted_at is not None and interrupted_at.encode() in printed:
            interrupted_at = None
            os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == ends_with
    return printed.decode().replace("\r\n", "\n")


def without_colours(printed: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", printed)
