"""Files that are reached with credentials that a REST catalog vends for each table, and that expire."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock

from dalsegno.iceberg.files import FileOptions, Files
from dalsegno.iceberg.object_files import ObjectFileIO
from dalsegno.iceberg.s3_access import S3Access

Properties = Mapping[str, str]

_EXPIRES_AT_MS = "s3.session-token-expires-at-ms"
#: Beginnings of the properties that hold a credential.
_SECRETS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "gcs.oauth2.token", "adls.sas-token")
#: Credentials are renewed when so much of their life is over, and without a known end after so many seconds: the
#: shortest that AWS gives out live for 15 minutes.
_SHARE_OF_LIFE, _LIFE_SECONDS = 0.8, 600.0


def secrets_in(properties: Properties) -> dict[str, str]:
    return {name: str(value) for name, value in properties.items() if name.startswith(_SECRETS)}


def vended_files(location: str, properties: Properties, options: FileOptions, renew: Callable[[], Properties]) -> Files:
    """Access with the properties that a catalog sent; on S3 they are asked for again before they expire."""
    files = Files.at(location, properties, options)
    if isinstance(files.io, ObjectFileIO):
        return Files(VendedFileIO(properties, renew), options)
    return files


class VendedFileIO(ObjectFileIO):
    def __init__(self, properties: Properties, renew: Callable[[], Properties]) -> None:
        super().__init__(dict(properties))
        self._renew, self._guard = renew, Lock()
        self._current = S3Access.of(self.properties)
        self._renew_at = _renew_at(self.properties)

    @property
    def access(self) -> S3Access:
        with self._guard:
            if time.time() >= self._renew_at:
                self.properties = dict(self._renew())
                self._current = S3Access.of(self.properties)
                self._renew_at = _renew_at(self.properties)
            return self._current


def _renew_at(properties: Properties) -> float:
    now = time.time()
    expires = properties.get(_EXPIRES_AT_MS)
    life = float(expires) / 1000 - now if expires else _LIFE_SECONDS
    return now + life * _SHARE_OF_LIFE
