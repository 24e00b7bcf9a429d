"""Files of metadata, through a FileIO of PyIceberg's: by PyArrow, by fsspec or, on this machine, by ``local_files``.

Every path goes through ``new_input`` or ``new_output``, so that a FileIO that records paths sees all that is touched.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from pyiceberg.io import PY_IO_IMPL, FileIO, load_file_io

from dalsegno.iceberg import local_files
from dalsegno.iceberg.local_files import LocalFile

_COPY_CHUNK = 1 << 20
_LOCAL_FILE_IO = "dalsegno.iceberg.local_files.LocalFileIO"
#: What PyArrow and fsspec call the filesystem of this machine.
_LOCAL = ("local", "py::local", "file")


@dataclass(frozen=True)
class Files:
    """Read, write, copy, list and delete by location."""

    io: FileIO

    @classmethod
    def at(cls, location: str, properties: Mapping[str, str]) -> Files:
        """Access by the properties of a catalog, for a table or a folder.

        PyIceberg prefers PyArrow, which takes half a second and 100 MB to load: local files need nothing of the kind.
        """
        is_local = urlsplit(location).scheme in ("", "file")
        default = {PY_IO_IMPL: _LOCAL_FILE_IO} if is_local else {}
        return cls(load_file_io({**default, **properties}, location))

    def read(self, location: str) -> bytes:
        with closing(self.io.new_input(location).open()) as stream:
            return stream.read()

    @contextmanager
    def reading(self, location: str) -> Iterator[BinaryIO]:
        """A buffered stream, for files that need not fit in memory."""
        with closing(self.io.new_input(location).open(seekable=False)) as stream:
            yield cast(BinaryIO, io.BufferedReader(cast(Any, stream), _COPY_CHUNK))

    def write(self, location: str, content: bytes) -> None:
        """Write a file that was not there before; its name is never used twice, so nobody can see half of it."""
        with closing(self.io.new_output(location).create(overwrite=True)) as stream:
            stream.write(content)

    def copy(self, source: str, target: str, *, into: Files) -> None:
        """Copy one file; inside one object store the bytes never pass through this machine.

        Both sides have their own access: a catalog may hand out credentials for one table's files only.
        """
        origin, copy = self.io.new_input(source), into.io.new_output(target)
        if isinstance(origin, LocalFile) and isinstance(copy, LocalFile):
            local_files.copy(origin, copy)
            return
        filesystem = getattr(origin, "_filesystem", None)
        if filesystem is not None and filesystem == getattr(copy, "_filesystem", None):
            filesystem.copy_file(cast(Any, origin)._path, cast(Any, copy)._path)
            return
        filesystem = getattr(origin, "_fs", None)
        if filesystem is not None and filesystem == getattr(copy, "_fs", None):
            filesystem.cp_file(source, target)
            return
        with closing(origin.open(seekable=False)) as reader, closing(copy.create(overwrite=True)) as writer:
            while chunk := reader.read(_COPY_CHUNK):
                writer.write(chunk)

    def make_folder(self, location: str) -> None:
        """Object stores have no folders; a local copy by PyArrow needs its target's to be there."""
        place = cast(Any, self.io.new_output(location))
        if hasattr(place, "_filesystem"):
            place._filesystem.create_dir(place._path, recursive=True)

    def list(self, folder: str) -> list[str]:
        """The locations of all files below a folder; none if there is no such folder."""
        place = cast(Any, self.io.new_input(folder))
        if isinstance(place, LocalFile):
            root = str(place.path)
            found = local_files.files_below(place.path)
        elif hasattr(place, "_filesystem"):
            from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - only where PyArrow is the FileIO

            selector = FileSelector(place._path, recursive=True, allow_not_found=True)
            found = [info.path for info in place._filesystem.get_file_info(selector) if info.type == FileType.File]
            root = place._path
        else:
            root = place._fs._strip_protocol(folder)
            found = place._fs.find(root) if place._fs.exists(root) else []
        return [f"{folder}{path.removeprefix(root)}" for path in found]

    def delete(self, location: str) -> None:
        """Delete one file; one that is gone already is fine."""
        try:
            self.io.delete(location)
        except FileNotFoundError:
            return

    def remove_empty_folder(self, folder: str) -> None:
        """Remove a local folder, and the folders in it, if no file is left in any of them."""
        place = cast(Any, self.io.new_input(folder))
        if isinstance(place, LocalFile):
            if place.path.is_dir() and not self.list(folder):
                shutil.rmtree(place.path)
        elif hasattr(place, "_filesystem"):
            from pyarrow.fs import FileType  # noqa: PLC0415 - only where PyArrow is the FileIO

            filesystem, path = place._filesystem, place._path
            if filesystem.type_name not in _LOCAL or self.list(folder):
                return
            if filesystem.get_file_info(path).type == FileType.Directory:
                filesystem.delete_dir(path)
        elif place._fs.protocol[0] in _LOCAL and not self.list(folder) and place._fs.isdir(folder):
            place._fs.rm(folder, recursive=True)
