"""Small disks that can be filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SmallDisk:
    """A disk of its own in memory; where none may be mounted, a folder that a file takes the place of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
        try:
            self.is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            self.is_mounted = False

    def fill(self) -> None:
        if not self.is_mounted:
            self.folder.rename(f"{self.folder}.away")
            self.folder.touch()
            return
        try:
            with (self.folder / "filler").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        except OSError:
            return

    def free(self) -> None:
        if self.is_mounted:
            (self.folder / "filler").unlink()
            return
        self.folder.unlink()
        Path(f"{self.folder}.away").rename(self.folder)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir(parents=True)
    disk = SmallDisk(folder)
    try:
        yield disk
    finally:
        if disk.is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
