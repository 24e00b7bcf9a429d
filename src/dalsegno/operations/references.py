"""Reads the files that a workflow refers to when it is pushed: local ones, and those in S3 and Google Cloud."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.model.stored_text import fault_of_text
from dalsegno.settings import Settings
from dalsegno.spec.documents import BYTES
from dalsegno.spec.files import Reference
from dalsegno.steps.own_files import refuse_own

#: Left to itself, PyArrow tries for a quarter of an hour to find somebody's credentials for Google Cloud.
_PATIENCE = "retry_limit_seconds=30"
_SCHEMES = {"S3": ("s3", "s3a", "s3n"), "GS": ("gs", "gcs"), "FILE": ("file",)}


@dataclass(frozen=True)
class ReferencedFiles:
    """Calls with a reference give what the file holds.

    A relative name stays inside of ``location``: a folder, or an address such as ``s3://bucket/sql``. Local files are
    read from there only, because who may push a workflow to a server need not be allowed to read the server's files.
    """

    location: str
    settings: Settings

    @classmethod
    def beside(cls, folder: Path, settings: Settings) -> ReferencedFiles:
        """As the setting ``files_location`` says; it may be relative to the folder of the workflow's file."""
        location = settings.files_location
        if location.startswith("file:"):
            location = url2pathname(urlsplit(location).path)
        return cls(location if "://" in location else str((folder / location).resolve()), settings)

    def __call__(self, reference: Reference) -> str:
        written = f"${reference.kind}{{{reference.name}}}"
        scheme, has_scheme, _ = reference.name.partition("://")
        if has_scheme and scheme not in _SCHEMES[reference.kind]:
            raise UserError(
                f"{written} names a file of {scheme}, expected {_SCHEMES[reference.kind][0]}://….",
                hint="Correct the address, or use $S3{…}, $GS{…} or $FILE{…} as it fits.",
            )
        if has_scheme and scheme != "file":
            return _read_address(_plain_address(reference.name, written), written)
        name = reference.name.removeprefix("file://")
        if "://" in self.location and not has_scheme:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(unquote(name)).parts:
                raise _outside(written, self.location)
            # The settings may name another server behind a question mark; a workflow may not.
            place, _, query = self.location.partition("?")
            address = f"{place.rstrip('/')}/{_plain_address(name, written)}"
            return _read_address(f"{address}?{query}" if query else address, written)
        return self._read_local(name, written)

    def _read_local(self, name: str, written: str) -> str:
        root = Path(self.location).resolve()
        # Links are followed before the comparison.
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise _outside(written, str(root))
        refuse_own(path, self.settings, written)
        if not path.is_file():
            raise _missing(written, str(path))
        if path.stat().st_size > BYTES:
            raise _too_large(written)
        return _decoded(path.read_bytes(), written)


def _plain_address(address: str, written: str) -> str:
    """Refuse what says more than where a file is: a query can name another server, which would get a signed request."""
    parts = urlsplit(address)
    if parts.query or parts.fragment or "@" in parts.netloc or any(mark in address for mark in ("?", "#", "::")):
        raise UserError(
            f"{written} holds more than the place of a file.",
            hint="Write it without user, query (?) and fragment (#), such as $S3{s3://bucket/folder/file.sql}.",
        )
    return address


def _read_address(address: str, written: str) -> str:
    # Both take long to import, and most workflows refer to no file.
    from pyarrow import ArrowInvalid, ArrowNotImplementedError  # noqa: PLC0415
    from pyarrow.fs import FileSystem  # noqa: PLC0415

    try:
        try:
            system, path = FileSystem.from_uri(_impatient(address))
        except (ArrowInvalid, ArrowNotImplementedError):
            data = _read_with_fsspec(address)
        else:
            with system.open_input_stream(path) as stream:
                data = bytes(stream.read(BYTES + 1))
    except FileNotFoundError:
        raise _missing(written, address) from None
    except (OSError, ImportError, ValueError) as error:
        raise PlatformError(f"{address}, which {written} stands for, cannot be read: {error}") from error
    if len(data) > BYTES:
        raise _too_large(written)
    return _decoded(data, written)


def _impatient(address: str) -> str:
    if not address.startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}{_PATIENCE}"


def _read_with_fsspec(address: str) -> bytes:
    """For the address of a store that PyArrow does not know."""
    import fsspec  # noqa: PLC0415

    with fsspec.open(address, "rb") as stream:
        return bytes(stream.read(BYTES + 1))


def _decoded(data: bytes, written: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"The file of {written} is not UTF-8: {error}.") from error
    if fault := fault_of_text(text):
        raise UserError(f"The file of {written} holds {fault}.")
    return text


def _missing(written: str, path: str) -> UnknownName:
    hint = "Correct the name, or set files_location to where the files are."
    return UnknownName(f"{written} stands for {path}, which is not there.", hint=hint)


def _outside(written: str, location: str) -> UserError:
    return UserError(f"{written} leads out of {location}.", hint="Keep the file there, or give an address.")


def _too_large(written: str) -> UserError:
    return UserError(f"The file of {written} is larger than {BYTES:,} bytes.")
