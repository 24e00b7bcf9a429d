"""A cache on local disk of files that never change: manifest lists and manifests.

Any number of processes may share it: a file appears complete, under a name that follows from its location. What is
read back is compared with its checksum, and counts as missing if it differs. The cache never fails a capture: where
it cannot be written, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from dalsegno.private_files import make_private_folder

#: Larger files are not kept: few tables have any, and one would push many others out.
LARGEST = 8 << 20
#: The cache is measured once per process and whenever so much more was written.
_MEASURE_EVERY = 16 << 20
#: What is left after the files that were not used for longest were removed, as a share of the limit.
_LEFT = 0.75
_DIGEST = hashlib.sha256
_DIGEST_SIZE = 32


@dataclass
class MetadataCache:
    """Files by what identifies them, at most ``limit`` bytes of them."""

    folder: Path
    limit: int

    def __post_init__(self) -> None:
        self._lock = Lock()
        #: Bytes written since the cache was measured; None: it was not measured yet.
        self._written: int | None = None

    def get(self, identity: str, length: int | None = None) -> bytes | None:
        """The content; None if it is not there, was damaged, or hasn't the length that a table says."""
        path = self._path(identity)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        content = stored[_DIGEST_SIZE:]
        if stored[:_DIGEST_SIZE] != _checksum(identity, content) or length not in (None, len(content)):
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def put(self, identity: str, content: bytes) -> None:
        """Keep a file's content, if there is room for it."""
        if len(content) > min(LARGEST, self.limit // 2):
            return
        path = self._path(identity)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            make_private_folder(path.parent)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writer:
                writer.write(_checksum(identity, content) + content)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            return
        self._bound(len(content) + _DIGEST_SIZE)

    def _path(self, identity: str) -> Path:
        name = hashlib.sha256(identity.encode()).hexdigest()
        return self.folder / name[:2] / name

    def _bound(self, written: int) -> None:
        """Remove the files that were not used for longest, if there are too many."""
        with self._lock:
            is_due = self._written is None or self._written + written > min(_MEASURE_EVERY, self.limit // 8)
            self._written = 0 if is_due else (self._written or 0) + written
        if not is_due:
            return
        found = sorted(_entries(self.folder))
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, path in found:
            if total <= self.limit * _LEFT:
                break
            # Another process may be at it as well.
            with suppress(OSError):
                Path(path).unlink()
            total -= size


def _checksum(identity: str, content: bytes) -> bytes:
    return _DIGEST(identity.encode() + b"\0" + content).digest()


def _entries(folder: Path) -> list[tuple[float, int, str]]:
    """When each file was last used, its size, and its path."""
    found = []
    with suppress(OSError):
        for shard in os.scandir(folder):
            for entry in os.scandir(shard.path) if shard.is_dir() else ():
                with suppress(OSError):
                    said = entry.stat()
                    found.append((said.st_mtime, said.st_size, entry.path))
    return found
