"""Locks on files: the kernel frees one when the process that holds it is gone, however it went."""

from __future__ import annotations

import fcntl
from pathlib import Path


def is_held(lock: Path) -> bool:
    """Whether a process holds a lock; False if there is no such file."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
