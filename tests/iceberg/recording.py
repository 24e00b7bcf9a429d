"""A FileIO that remembers what was touched through it."""

from __future__ import annotations

from typing import ClassVar

from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO


class RecordingFileIO(PyArrowFileIO):
    """Named by the property `py-io-impl`, so it is made anew for every table: what it saw is kept beside it."""

    read: ClassVar[list[str]] = []
    written: ClassVar[list[str]] = []
    deleted: ClassVar[list[str]] = []

    @classmethod
    def forget(cls) -> None:
        for seen in (cls.read, cls.written, cls.deleted):
            seen.clear()

    def new_input(self, location: str) -> PyArrowFile:
        self.read.append(location)
        return super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        self.written.append(location)
        return super().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self.deleted.append(location if isinstance(location, str) else location.location)
        super().delete(location)
