"""Files in an object store, by obstore: a read is one GET, a write one PUT, and a thousand deletes are one request.

PyIceberg's own FileIOs ask for a file's size before they read it, write in parts, make objects that stand for folders,
and take seconds to load. Objects have no folders here: none is made, and none is left behind.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, cast

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from dalsegno.iceberg.s3_access import S3Access

if TYPE_CHECKING:
    from obstore.store import S3Store

#: Up to this size a file is read at once; beyond, piece by piece.
_AT_ONCE = 8 << 20
_CHUNK = 1 << 20
_DELETE_ATTEMPTS, _DELETE_PAUSE = 4, 0.2
#: What a server says of a request that failed: its status, and the code and message in its XML.
_STATUS = re.compile(r"status code: (\d{3}[^:<\n]*)")
_CODE, _MESSAGE = re.compile(r"<Code>([^<]+)"), re.compile(r"<Message>([^<]+)")


class ObjectFileIO(FileIO):
    """Files in the buckets of one account, by their locations, such as ``s3://bucket/folder/file``."""

    @cached_property
    def access(self) -> S3Access:
        return S3Access.of(self.properties)

    def new_input(self, location: str) -> ObjectFile:
        return ObjectFile(location, self)

    def new_output(self, location: str) -> ObjectFile:
        return ObjectFile(location, self)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self.delete_all([location if isinstance(location, str) else location.location])

    def delete_all(self, locations: Iterable[str]) -> None:
        """Delete files, a thousand with each request; one that is gone already is fine."""
        by_bucket: dict[str, list[str]] = {}
        for location in locations:
            bucket, key = split(location)
            by_bucket.setdefault(bucket, []).append(key)
        for bucket, keys in by_bucket.items():
            self._delete_in(bucket, keys)

    def _delete_in(self, bucket: str, keys: Sequence[str]) -> None:
        for attempt in range(_DELETE_ATTEMPTS):
            try:
                with _as_os_errors(f"s3://{bucket}"):
                    self.access.bucket(bucket).delete(keys)
            except PermissionError:
                raise
            except OSError:
                # obstore does not send it twice, because it is a POST; but what is gone can be deleted again.
                if attempt == _DELETE_ATTEMPTS - 1:
                    raise
                time.sleep(_DELETE_PAUSE * 2**attempt)
            else:
                return

    def list(self, folder: str) -> list[str]:
        """The locations of all files below a folder."""
        bucket, key = split(folder)
        with _as_os_errors(folder):
            pages = self.access.bucket(bucket).list(key)
            return [f"{folder}{found['path'].removeprefix(key)}" for page in pages for found in page]

    def delete_markers(self, folder: str) -> None:
        """Delete empty objects that stand for folders: PyArrow and Hadoop make them, and leave them behind."""
        bucket, key = split(folder)
        with _as_os_errors(folder):
            pages = self.access.bucket(bucket).list(key)
            empty = [found["path"] for page in pages for found in page if found["size"] == 0]
            for path in empty:
                # Listed without its slash. An empty file of that name is another object, and stays.
                self.access.marker(bucket, path).delete([""])


class ObjectFile(InputFile, OutputFile):
    """One object, there or not."""

    def __init__(self, location: str, files: ObjectFileIO) -> None:
        super().__init__(location)
        self._access = files.access
        self._bucket, self._key = split(location)

    @property
    def identity(self) -> str:
        """What distinguishes it from all other objects, of other stores as well."""
        return f"{self._access.endpoint or ''} {self.location}"

    def __len__(self) -> int:
        with _as_os_errors(self.location):
            return self._store.head(self._key)["size"]

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except FileNotFoundError:
            return False

    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, io.BytesIO(self.read()) if seekable else self.stream())

    def read(self) -> bytes:
        with _as_os_errors(self.location):
            return self._store.get(self._key).bytes().to_bytes()

    def stream(self) -> BinaryIO:
        """The content; a small file is read before this returns, a large one in pieces as it is looked at."""
        content, size = self.piece(0)
        if size <= len(content):
            return io.BytesIO(content)
        return cast(BinaryIO, io.BufferedReader(_Stream(self, content, size), _CHUNK))

    def piece(self, start: int) -> tuple[bytes, int]:
        """The bytes from a place on, up to a limit, and the size of the whole file."""
        with _as_os_errors(self.location):
            found = self._store.get(self._key, options={"range": (start, start + _AT_ONCE)})
            return found.bytes().to_bytes(), found.meta["size"]

    def write(self, content: bytes) -> None:
        """One request. A retry of it writes the same again, so an answer that got lost does no harm."""
        with _as_os_errors(self.location):
            self._store.put(self._key, content, use_multipart=False)

    def create(self, overwrite: bool = False) -> OutputStream:
        return cast(OutputStream, _Draft(self))

    def copy_to(self, target: ObjectFile) -> None:
        """Inside a bucket the bytes never pass through this machine."""
        if self._access == target._access and self._bucket == target._bucket:
            with _as_os_errors(self.location):
                self._store.copy(self._key, target._key)
            return
        with closing(self.stream()) as reader:
            target.write(reader.read())

    def to_input_file(self) -> InputFile:
        return self

    @property
    def _store(self) -> S3Store:
        return self._access.bucket(self._bucket)


def split(location: str) -> tuple[str, str]:
    """The bucket and the key of a location. A key is taken as it is: nothing in it is a query, or quoted."""
    _, _, path = location.partition("://")
    bucket, _, key = path.partition("/")
    return bucket, key


class _Draft(io.BytesIO):
    """What was written so far; the object appears, complete, when it is closed."""

    def __init__(self, file: ObjectFile) -> None:
        super().__init__()
        self._file = file

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self._file.write(content)

    def __exit__(self, kind: object, *_: object) -> None:
        # What a writer left half done never appears.
        if kind is None:
            self.close()
        else:
            super().close()


class _Stream(io.RawIOBase):
    """A large file, read piece by piece: one answer would have to stay open for as long as somebody looks at it."""

    def __init__(self, file: ObjectFile, first: bytes, size: int) -> None:
        self._file, self._rest, self._read, self._size = file, memoryview(first), len(first), size

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._rest and self._read < self._size:
            content, _ = self._file.piece(self._read)
            self._rest = memoryview(content)
            self._read += len(content)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@contextmanager
def _as_os_errors(location: str) -> Iterator[None]:
    """Raise what callers expect of files; in one line, without the server's XML."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError  # noqa: PLC0415 - not for all

    try:
        yield
    except FileNotFoundError as error:
        if "<Code>NoSuchBucket" in str(error):
            raise OSError(f"{location}: {_said(error)}") from None
        raise FileNotFoundError(f"{location}: {_said(error)}") from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise PermissionError(f"{location}: {_said(error)}") from None
    except (BaseError, ValueError) as error:
        raise OSError(f"{location}: {_said(error)}") from None


def _said(error: Exception) -> str:
    """What a server answered, or else the first line of an error."""
    text = str(error)
    found = [match[1].strip() for each in (_STATUS, _CODE, _MESSAGE) if (match := each.search(text))]
    return ", ".join(found) or text.partition("\n")[0]
