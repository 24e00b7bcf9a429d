"""A SQLite store that is only read, without SQLAlchemy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from dalsegno.store.failure_hints import store_failed
from dalsegno.store.reading import Readable
from dalsegno.store.schema_version import HEAD
from dalsegno.store.sqlite_driver import PATIENCE_SECONDS, close_files_to_others, journal_mode, sqlite

#: Others say more than a path; ``Database`` reads them.
_PLAIN_URL = re.compile(r"sqlite:///(?!:memory:|file:)([^?]+)")


def open_for_reading(url: str) -> Readable:
    """A store to read; it is made or brought up to date first if need be."""
    if (found := SqliteFile.open(url)) is not None:
        return found
    from dalsegno.store.store import Store  # noqa: PLC0415 - takes longer than most reading does

    return Store.open(url).database


class SqliteFile:
    """An open file; unlike a ``Database``, for one thread."""

    def __init__(self, path: Path, connection: Any) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, url: str) -> Self | None:
        """None if there is more to do than to read: it is not there, not up to date, or something is wrong with it.

        It is not opened as a read-only file: after a crash, whoever opens it next has to roll back what was begun.
        """
        if (found := _PLAIN_URL.fullmatch(url)) is None or not (path := Path(found[1])).is_file():
            return None
        close_files_to_others(path)
        connection = None
        try:
            connection = sqlite.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
            connection.execute("PRAGMA query_only = ON")
            if _is_ready(connection):
                return cls(path, connection)
        except sqlite.Error as error:
            if "locked" in str(error):
                # There is nothing wrong with it, and we have waited long enough.
                if connection is not None:
                    connection.close()
                raise store_failed(path, str(error)) from error
            # Whoever opens it with all that it needs says what is wrong.
        if connection is not None:
            connection.close()
        return None

    @contextmanager
    def reading(self) -> Iterator[Any]:
        try:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                # On some errors SQLite has rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite.Error as error:
            raise store_failed(self.path, str(error)) from error

    def close(self) -> None:
        self._connection.close()


def _is_ready(connection: Any) -> bool:
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != journal_mode(sqlite.sqlite_version_info):
        return False
    return bool(connection.execute("SELECT version_num FROM dalsegno_version").fetchall() == [(HEAD,)])
