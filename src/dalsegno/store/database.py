"""Engines for both databases, transactions that read and that write, and the lock."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError

from dalsegno.errors import PlatformError, UserError
from dalsegno.private_files import make_private_file, make_private_folder
from dalsegno.store import audit_log, sqlite_driver
from dalsegno.store.failures import Place
from dalsegno.store.sqlite_driver import PATIENCE_SECONDS, SAFE_WAL, close_files_to_others, journal_mode
from dalsegno.store.values import refuse_unstorable

#: The build of SQLite that this process uses.
sqlite = sqlite_driver.sqlite

#: A client that stopped in the middle of a transaction, or was cut off, may not hold its locks for longer.
STALLED_SECONDS = 15

#: A connection that was cut is noticed after some ten seconds, whether we wait for an answer or have sent something.
KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# NaN is no JSON: PostgreSQL would refuse what SQLite takes.
to_json = json.JSONEncoder(allow_nan=False).encode

#: The waits are this transaction's own, so that they also hold where a pooler shares connections.
LOCK = text(
    "SELECT set_config('lock_timeout', :patience, true),"
    " set_config('idle_in_transaction_session_timeout', :stalled, true),"
    " pg_advisory_xact_lock(:number)"
)
TRY_LOCK = text(
    "SELECT pg_try_advisory_xact_lock(:number),"
    " set_config('lock_timeout', :patience, true),"
    " set_config('idle_in_transaction_session_timeout', :stalled, true)"
)


class Database:
    """An open database: hands out connections that are inside a transaction."""

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.place = Place(self.url)
        self._engine = new_engine(self.url)
        self._writing_engine = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        #: How many transactions have failed because of the database.
        self.failures = 0
        #: When this process last wrote something for certain.
        self._wrote_at = time.monotonic()

    @property
    def write_age(self) -> float:
        """For how many seconds no write is known to have succeeded."""
        return time.monotonic() - self._wrote_at

    def confirm_write(self) -> None:
        """A transaction that has changed something has been committed."""
        self._wrote_at = time.monotonic()

    @property
    def is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @property
    def engine(self) -> Engine:
        return self._engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._counted(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block, or does nothing if the block raises.

        It writes the audit row of the change that a caller is making, if there is one.
        """
        with (
            self._counted(),
            audit_log.undone_with_transaction(),
            self._writing_engine.begin() as connection,
            audit_log.written_with(connection),
        ):
            yield connection

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            with self.place.explained():
                yield
        except PlatformError:
            self.failures += 1
            raise

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """As ``writing``, with foreign keys off: SQLite changes a table by making another and dropping the
        first, and would delete the rows that point to it.

        The switch does nothing inside a transaction, so this is a connection of its own.
        """
        engine = new_engine(self.url, foreign_keys=False).execution_options(begin="BEGIN IMMEDIATE")
        try:
            with self.place.explained(), engine.begin() as connection:
                lock(connection, "schema")
                yield connection
                if self.is_sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all()):
                    raise PlatformError(f"Migrating {self.place} would leave rows that point nowhere: {broken}.")
        finally:
            engine.dispose()

    def close(self) -> None:
        self._engine.dispose()


def lock(connection: Connection, name: str) -> None:
    """Wait until nobody else holds the name, and hold it until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(LOCK, _lock_values(name))
    # In SQLite, whoever writes holds the whole database already.


def try_lock(connection: Connection, name: str) -> bool:
    """Hold the name until the transaction ends, unless somebody else does."""
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.execute(TRY_LOCK, _lock_values(name)).scalar_one())


def _lock_values(name: str) -> dict[str, Any]:
    # Two names with the same number would wait for each other, nothing worse.
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:8], signed=True)
    return {"number": number, "patience": f"{PATIENCE_SECONDS}s", "stalled": f"{STALLED_SECONDS}s"}


def read_url(text: str) -> URL:
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        # The text is not repeated: what made it unreadable may be a password that was not encoded.
        raise UserError(
            "The store's url cannot be read.",
            hint="Write sqlite:///folder/file.db or postgresql://user:password@host/database,"
            " with %-codes for special characters in the password.",
        ) from None
    match backend:
        case "sqlite" if url.database and url.database != ":memory:":
            return url.set(drivername="sqlite")
        case "sqlite":
            raise UserError(
                "The store's url names no file: what it remembers must outlive the process.",
                hint="Write sqlite:///folder/file.db.",
            )
        case "postgres" | "postgresql":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise UserError(
                f"The store's url is for {backend}; only SQLite and PostgreSQL are known.",
                hint="Write sqlite:///folder/file.db or postgresql://user:password@host/database.",
            )


def new_engine(url: URL, *, foreign_keys: bool = True) -> Engine:
    is_sqlite = url.get_backend_name() == "sqlite"
    engine = _sqlite_engine(url, foreign_keys=foreign_keys) if is_sqlite else _postgres_engine(url)
    event.listen(engine, "before_cursor_execute", refuse_unstorable)
    return engine


def _postgres_engine(url: URL) -> Engine:
    arguments: dict[str, Any] = {
        "connect_timeout": PATIENCE_SECONDS,
        "application_name": "dalsegno",
        **KEEPALIVES,
        # Prepared statements stay behind on a connection that a pooler hands to somebody else.
        "prepare_threshold": None,
    }
    try:
        return create_engine(
            url,
            connect_args={name: value for name, value in arguments.items() if name not in url.query},
            # Who waited for the lock must see what the one before wrote, whatever the server's default is.
            isolation_level="READ COMMITTED",
            # The server may have been restarted since the connection was last used.
            pool_pre_ping=True,
            json_serializer=to_json,
        )
    except ModuleNotFoundError as error:
        raise UserError(
            "The store's url is for PostgreSQL, but its driver is not installed.",
            hint="Install it: pip install 'dalsegno[postgres]'",
        ) from error


def _sqlite_engine(url: URL, *, foreign_keys: bool) -> Engine:
    path = Path(str(url.database))
    try:
        make_private_folder(path.parent)
        # An address of SQLite's own form is SQLite's matter.
        if not path.name.startswith("file:"):
            make_private_file(path)
    except OSError as error:
        raise PlatformError(
            f"The folder {path.parent} for the database cannot be made: {error.strerror}.",
            hint="Check that this user may write there, or name another file in the store's url.",
        ) from error
    close_files_to_others(path)
    engine = create_engine(url, module=sqlite, connect_args={"timeout": PATIENCE_SECONDS}, json_serializer=to_json)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: object) -> None:
        # The driver begins transactions when it sees fit, and never before a SELECT: we begin them ourselves.
        connection.isolation_level = None
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        # Committed means: still there after the power failed.
        connection.execute("PRAGMA synchronous = FULL")
        choose_journal(connection, Place(url), sqlite.sqlite_version_info)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later is refused at once if somebody wrote in between;
        # one that says at the start that it will write waits its turn.
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine


def choose_journal(connection: Any, place: Place, version: tuple[int, int, int]) -> None:
    """See that the database has the journal that is safe with this SQLite."""
    wanted = journal_mode(version, SAFE_WAL)
    patience = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] == wanted:
                return
            if connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0] == wanted:
                return
        except connection.OperationalError as error:
            # SQLite does not wait here by itself. Several processes may start on a new file at once.
            if "locked" not in str(error) or time.monotonic() > patience:
                raise
        if time.monotonic() > patience:
            found = ".".join(map(str, version))
            raise PlatformError(
                f"SQLite {found} needs the database {place} in journal mode {wanted!r} and cannot switch it.",
                hint="A process with another version of SQLite has it open: stop that one,"
                " or install the same version here: pip install pysqlite3",
            )
        time.sleep(0.01)
