"""Whether a folder can be written now: free space alone says nothing of quotas, of inodes or of broken disks."""

from __future__ import annotations

import os
from pathlib import Path

#: About what an attempt writes before its job begins.
_BYTES = 64 * 1024


def write_failure(folder: Path) -> str | None:
    """Write a small file and wait until it is on the disk: why that failed, or None."""
    draft = folder / f".check-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Without a name nothing is left behind, whenever this process is killed.
            draft.unlink()
            left = bytes(_BYTES)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        return error.strerror or type(error).__name__
    return None
