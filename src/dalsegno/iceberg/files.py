"""Files of metadata, through a FileIO: on this machine by ``local_files``, on S3 by ``object_files``, elsewhere by
PyIceberg's own, which use PyArrow or fsspec.

Every path goes through ``new_input`` or ``new_output``, so that a FileIO that records paths sees all that is touched.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, OutputFile, load_file_io

from dalsegno.iceberg import local_files, s3_access
from dalsegno.iceberg.local_files import LocalFile, LocalFileIO
from dalsegno.iceberg.metadata_cache import MetadataCache
from dalsegno.iceberg.object_files import ObjectFile, ObjectFileIO

_COPY_CHUNK = 1 << 20
_LOCAL_FILE_IO = "dalsegno.iceberg.local_files.LocalFileIO"
_OBJECT_FILE_IO = "dalsegno.iceberg.object_files.ObjectFileIO"
#: What PyArrow and fsspec call the filesystem of this machine.
_LOCAL = ("local", "py::local", "file")
#: How large a file may be that is read before it is asked for, and how large all of them together.
_SMALL, _AHEAD_BYTES = 1 << 20, 64 << 20


@dataclass(frozen=True)
class FileOptions:
    """How files that are not on this machine are read."""

    #: How many are read at once.
    threads: int = 32
    #: Of files that never change; None: each is read anew.
    cache: MetadataCache | None = None


@dataclass(frozen=True)
class Files:
    """Read, write, copy, list and delete by location."""

    io: FileIO
    options: FileOptions = field(default_factory=FileOptions, compare=False)
    #: What is being read because it will be asked for soon.
    _ahead: dict[str, Future[bytes]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def at(cls, location: str, properties: Mapping[str, str], options: FileOptions | None = None) -> Files:
        """Access by the properties of a catalog, for a table or a folder."""
        default = _default_file_io(location, properties)
        chosen = {PY_IO_IMPL: default} if default else {}
        return cls(load_file_io({**chosen, **properties}, location), options or FileOptions())

    @property
    def is_local(self) -> bool:
        return isinstance(self.io, LocalFileIO)

    def read(self, location: str) -> bytes:
        with closing(self.io.new_input(location).open()) as stream:
            return stream.read()

    @contextmanager
    def reading(self, location: str, length: int | None = None) -> Iterator[BinaryIO]:
        """A buffered stream of a file that never changes, and that need not fit in memory.

        ``length``: as a table says; what is cached must have it.
        """
        if (ahead := self._ahead.pop(location, None)) is not None:
            yield io.BytesIO(ahead.result())
            return
        file = self.io.new_input(location)
        if (known := self._cached(file, length)) is not None:
            yield io.BytesIO(known)
            return
        with closing(file.open(seekable=False)) as stream:
            if isinstance(stream, io.BytesIO):
                self._keep(file, stream.getvalue())
                yield stream
            elif isinstance(stream, io.BufferedReader):
                yield cast(BinaryIO, stream)
            else:
                yield cast(BinaryIO, io.BufferedReader(cast(Any, stream), _COPY_CHUNK))

    def prefetch(self, wanted: Iterable[tuple[str, int | None]]) -> None:
        """Begin to read files that never change and are asked for next, many at once: each is a round trip.

        Each with its length, if that is known. Large ones are left to be read when they are asked for.
        """
        room = 0 if self.is_local else _AHEAD_BYTES
        for location, length in wanted:
            if location in self._ahead or (length or 0) > min(room, _SMALL):
                continue
            room -= length or 0
            self._ahead[location] = _pool(self.options.threads).submit(self._content, location, length)

    def _content(self, location: str, length: int | None) -> bytes:
        file = self.io.new_input(location)
        if (known := self._cached(file, length)) is not None:
            return known
        with closing(file.open()) as stream:
            content = stream.read()
        self._keep(file, content)
        return content

    def write(self, location: str, content: bytes, *, is_read_next: bool = False) -> None:
        """Write a file that was not there before; its name is never used twice, so nobody can see half of it.

        ``is_read_next``: what is written is cached, because this process is about to read it.
        """
        file = self.io.new_output(location)
        with closing(file.create(overwrite=True)) as stream:
            stream.write(content)
        if is_read_next:
            self._keep(file, content)

    def copy(self, source: str, target: str, *, into: Files) -> None:
        """Copy one file; inside one object store the bytes never pass through this machine.

        Both sides have their own access: a catalog may hand out credentials for one table's files only.
        """
        origin, copy = self.io.new_input(source), into.io.new_output(target)
        if isinstance(origin, LocalFile) and isinstance(copy, LocalFile):
            local_files.copy(origin, copy)
            return
        if isinstance(origin, ObjectFile) and isinstance(copy, ObjectFile):
            origin.copy_to(copy)
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
        if hasattr(place, "_filesystem") and place._filesystem.type_name in _LOCAL:
            place._filesystem.create_dir(place._path, recursive=True)

    def list(self, folder: str) -> list[str]:
        """The locations of all files below a folder; none if there is no such folder."""
        if isinstance(self.io, ObjectFileIO):
            return self.io.list(folder)
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

    def delete(self, *locations: str) -> None:
        """Delete files; one that is gone already is fine."""
        if isinstance(self.io, ObjectFileIO):
            self.io.delete_all(locations)
        elif self.is_local or len(locations) == 1:
            for location in locations:
                self._delete_one(location)
        else:
            for _ in _pool(self.options.threads).map(self._delete_one, locations):
                pass

    def _delete_one(self, location: str) -> None:
        try:
            self.io.delete(location)
        except FileNotFoundError:
            return

    def delete_markers(self, folder: str) -> None:
        """Delete empty objects that stand for the folder or for folders in it, where the files are in S3."""
        if isinstance(self.io, ObjectFileIO):
            self.io.delete_markers(folder)

    def remove_empty_folder(self, folder: str) -> None:
        """Remove a local folder, and the folders in it, if no file is left in any of them."""
        if isinstance(self.io, ObjectFileIO):
            return
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

    def _cached(self, file: InputFile, length: int | None) -> bytes | None:
        cache = None if self.is_local else self.options.cache
        return None if cache is None else cache.get(_identity(file), length)

    def _keep(self, file: InputFile | OutputFile, content: bytes) -> None:
        if self.options.cache is not None and not self.is_local:
            self.options.cache.put(_identity(file), content)


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "metadata")


def _identity(file: InputFile | OutputFile) -> str:
    return file.identity if isinstance(file, ObjectFile) else file.location


def _default_file_io(location: str, properties: Mapping[str, str]) -> str | None:
    """The FileIO of a location, unless the properties name one; None: PyIceberg chooses.

    PyIceberg prefers PyArrow, which takes half a second and 100 MB to load: local files need nothing of the kind.
    """
    scheme = urlsplit(location).scheme
    if scheme in ("", "file"):
        return _LOCAL_FILE_IO
    # No client can name an empty part of a key but PyArrow's.
    has_empty_part = "//" in location.partition("://")[2]
    if scheme in s3_access.SCHEMES and not has_empty_part and s3_access.is_understood(properties):
        return _OBJECT_FILE_IO
    return None
