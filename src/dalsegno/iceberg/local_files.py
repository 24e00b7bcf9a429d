"""A FileIO of PyIceberg's for the files of this machine. PyIceberg's own take longer to load than a capture takes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream


def local_path(location: str) -> Path:
    """Of a path, or of an address such as ``file:///folder/file``."""
    return Path(location.removeprefix("file:") if not location.startswith("file://") else location[len("file://") :])


class LocalFile(InputFile, OutputFile):
    """One file, there or not."""

    @property
    def path(self) -> Path:
        return local_path(self.location)

    def __len__(self) -> int:
        return self.path.stat().st_size

    def exists(self) -> bool:
        return self.path.exists()

    def open(self, seekable: bool = True) -> InputStream:
        return self.path.open("rb")

    def create(self, overwrite: bool = False) -> OutputStream:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.path.open("wb" if overwrite else "xb")

    def to_input_file(self) -> InputFile:
        return self


class LocalFileIO(FileIO):
    """Files of this machine, by path."""

    def new_input(self, location: str) -> LocalFile:
        return LocalFile(location)

    def new_output(self, location: str) -> LocalFile:
        return LocalFile(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        local_path(location if isinstance(location, str) else location.location).unlink()


def copy(source: LocalFile, target: LocalFile) -> None:
    target.path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.path, target.path)


def files_below(folder: Path) -> list[str]:
    """The paths of all files, in order; none if there is no such folder."""
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)  # noqa: PTH118
