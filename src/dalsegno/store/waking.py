"""How a process tells others that there is something to do: LISTEN and NOTIFY of PostgreSQL; SQLite has no such thing.

A message says nothing but to look, and may get lost: whoever waits for it also looks from time to time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, text

from dalsegno.errors import PlatformError
from dalsegno.store.database import Database, new_engine

#: One channel for each schema: a database may hold several stores.
_CHANNEL = "'dalsegno_' || md5(coalesce(current_schema(), ''))"
_NOTIFY = text(f"SELECT pg_notify({_CHANNEL}, '')")
_NAME = text(f"SELECT {_CHANNEL}")


def announce(connection: Connection) -> None:
    """Wake whoever listens when the transaction commits."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY)


class Ear:
    """A connection of its own that hears what is announced."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def hears(self, seconds: float) -> bool:
        """Wait so long at most; whether something was announced."""
        return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))


@contextmanager
def _driver_explained(database: Database) -> Iterator[None]:
    from psycopg import Error  # noqa: PLC0415 - it is installed where there is something to listen to

    try:
        yield
    except Error as error:
        raise PlatformError(f"The connection to {database.place} that listens broke: {error}") from error


@contextmanager
def listening(database: Database) -> Iterator[Ear]:
    engine = new_engine(database.url)
    try:
        with (
            database.place.explained(),
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            # A name of letters and digits alone, made by the server.
            connection.exec_driver_sql(f'LISTEN "{connection.execute(_NAME).scalar_one()}"')
            with _driver_explained(database):
                yield Ear(connection.connection.driver_connection)
    finally:
        engine.dispose()
