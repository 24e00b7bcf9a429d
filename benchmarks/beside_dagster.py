"""Dagster, to compare with: in an environment of its own, since nothing else here needs it.

``.cache/dagster-venv`` is made from ``requirements/dagster.txt`` the first time, and whenever that file has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts import setup

VENV = setup.ROOT / ".cache" / "dagster-venv"
_PYTHON = VENV / "bin" / "python"
_STAMP = VENV / "dalsegno-setup.txt"
_CHAIN = Path(__file__).with_name("dagster_chain.py")

#: Runs the chain once, ``in_process`` or by ``default``; the seconds that it took.
Chain = Callable[[str], float]


def ensure() -> None:
    """Make the environment, unless it is there as the lock file wants it."""
    wanted = hashlib.sha256(Path(setup.lock("dagster")).read_bytes()).hexdigest()
    if _STAMP.exists() and _STAMP.read_text() == wanted:
        return
    setup.say("Fetching Dagster into .cache/dagster-venv, once")
    uv = str(setup.VENV / "bin" / "uv")
    setup.run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV))
    hint = "To do without it: make bench-engine ARGS=--without-dagster"
    setup.uv("sync", "--quiet", "--require-hashes", setup.lock("dagster"), python=_PYTHON, hint=hint)
    _STAMP.write_text(wanted)


@contextmanager
def opened(folder: Path) -> Iterator[Chain]:
    """A warm process of Dagster's, which keeps its runs in the folder."""
    ensure()
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [str(_PYTHON), str(_CHAIN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "DAGSTER_HOME": str(folder)},
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        asked, answered = process.stdin, process.stdout

        def run(way: str) -> float:
            print(way, file=asked, flush=True)
            seconds, has_succeeded = json.loads(answered.readline() or "[0, false]")
            if not has_succeeded:
                raise RuntimeError(f"Dagster's chain failed:\n{log.read_text()[-2000:]}")
            return float(seconds)

        try:
            yield run
        finally:
            asked.close()
