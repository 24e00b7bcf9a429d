"""The folder for what can be fetched or made again, and a lock for those who write there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dalsegno.errors import PlatformError


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/dalsegno`, by default `~/.cache/dalsegno`; made if missing."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "dalsegno"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlatformError(
            f"The cache folder {folder} cannot be made: {error.strerror}.",
            hint="Set XDG_CACHE_HOME to a folder that you may write to.",
        ) from error
    return folder


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock between processes; `on_wait` is told when somebody else holds it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        # Closing the file releases the lock, also when the process dies.
        yield
