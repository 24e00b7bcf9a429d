"""Starting a server that tests talk to, and waiting until it listens."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.services.ports import LOOPBACK

_PATIENCE_SECONDS = 60


@contextmanager
def running(command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """A server process, for as long as the block runs; what it prints is in ``log``."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=dict(environment), stdout=output, stderr=output)
    try:
        _wait(process, port, log)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    patience = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < patience:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended:\n{log.read_text(errors='replace')[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"{process.args!r} did not listen on port {port}; see {log}")
