"""What can go wrong below the store, and what it says then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from dalsegno.errors import PlatformError, UserError
from dalsegno.model.captures import CaptureState
from dalsegno.store import Store, database
from dalsegno.store.database import Database, lock, read_url
from tests.services.ports import free_port
from tests.services.postgres import Postgres
from tests.store.examples import capture, process

SECRET = "hunter2-ü%/@"
ENCODED = "hunter2-%C3%BC%25%2F%40"


# The url.


@pytest.mark.parametrize(
    "given",
    ["postgres://ada@db/x", "postgresql://ada@db/x", "postgresql+psycopg://ada@db/x", "postgresql+psycopg2://ada@db/x"],
)
def test_every_way_to_say_postgresql_is_taken(given: str) -> None:
    assert read_url(given).render_as_string() == "postgresql+psycopg://ada@db/x"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "cannot be read"),
        ("store.db", "cannot be read"),
        (f"postgresql://ada:{SECRET}@db:port/x", "cannot be read"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        (f"mysql://ada:{ENCODED}@db/x", "is for mysql; only SQLite and PostgreSQL are known"),
    ],
)
def test_a_url_that_is_not_usable_is_refused_without_showing_it(given: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        Store.open(given)
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UserError, match=r"pip install 'dalsegno\[postgres\]'"):
        Store.open("postgresql://ada@127.0.0.1/x")


def test_the_folder_of_a_new_file_is_made(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/a/b 100%/store.db").close()
    assert (tmp_path / "a" / "b 100%" / "store.db").exists()


# The database.


def test_a_server_that_is_not_there(url_of_nothing: str) -> None:
    with pytest.raises(PlatformError, match=r"refused.*Check that PostgreSQL runs there") as caught:
        Store.open(url_of_nothing)
    assert "hunter2" not in str(caught.value)
    assert "ada" not in str(caught.value)


@pytest.fixture
def url_of_nothing() -> str:
    return f"postgresql://ada:{ENCODED}@127.0.0.1:{free_port()}/x?sslpassword={ENCODED}"


@pytest.mark.postgres
def test_a_database_that_is_not_there(postgres: Postgres) -> None:
    with pytest.raises(PlatformError, match=r'"nowhere" does not exist\. Create it'):
        Store.open(postgres.url("nowhere"))


@pytest.mark.postgres
def test_a_password_in_the_drivers_words_is_masked(postgres: Postgres) -> None:
    with pytest.raises(PlatformError, match=r"\*\*\*") as caught:
        Store.open(postgres.url("hunter2").replace("postgres@", "postgres:hunter2@"))
    assert "hunter2" not in str(caught.value).removeprefix(f"The database {Database(postgres.url('hunter2')).place}")


@pytest.mark.postgres
def test_connections_that_the_server_closed_are_replaced(postgres: Postgres) -> None:
    with Store.open(postgres.url(postgres.create_database())) as store:
        with store.database.writing() as connection:
            connection.exec_driver_sql("SELECT 1")
        other = Database(postgres.url("postgres"))
        with other.writing() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND application_name = 'dalsegno'"
            )
        other.close()
        process(store, capture())


@pytest.mark.postgres
def test_a_server_with_another_isolation_by_default(postgres: Postgres) -> None:
    name = postgres.create_database()
    admin = Database(postgres.url("postgres"))
    with admin.writing() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    admin.close()
    with Store.open(postgres.url(name)) as store, store.database.writing() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


def test_who_waits_too_long_for_a_writer_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    with Store.open(url) as store, Store.open(url) as other:
        with store.database.writing() as connection:
            lock(connection, "daily")
            with pytest.raises(PlatformError, match=r"lock.*Try again; nothing was changed"):
                other.record_capture(capture())
        other.record_capture(capture())


def test_readers_do_not_wait_for_writers(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    with Store.open(url) as store, Store.open(url) as other, store.database.writing() as connection:
        lock(connection, "daily")
        connection.exec_driver_sql("DELETE FROM captures")
        assert other.captures() == []


# SQLite alone.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_file_that_is_something_else(file: Path) -> None:
    file.write_text("once upon a time there was a file that was no database at all" * 20)
    with pytest.raises(PlatformError, match=r"not a database.*Name another file"):
        Store.open(f"sqlite:///{file}")


def test_a_folder_in_place_of_the_file(file: Path) -> None:
    file.mkdir()
    with pytest.raises(PlatformError, match=r"unable to open.*may write"):
        Store.open(f"sqlite:///{file}")


def test_a_file_in_place_of_the_folder(file: Path) -> None:
    file.write_text("")
    with pytest.raises(PlatformError, match=r"cannot be made.*name another file"):
        Store.open(f"sqlite:///{file}/store.db")


def test_a_full_disk_changes_nothing_and_the_store_goes_on_afterwards(file: Path) -> None:
    with Store.open(f"sqlite:///{file}") as store:
        process(store, capture("c1", upto=10))
        raw = store.database.engine.raw_connection()
        pages = raw.driver_connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[union-attr]
        raw.close()

        limit = pages

        @event.listens_for(store.database.engine, "begin")
        def shrink(connection: object) -> None:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {limit}")  # type: ignore[attr-defined]

        with pytest.raises(PlatformError, match=r"disk is full.*Free some space"):
            for n in range(10, 500):
                process(store, capture(f"c{n}", after=n, upto=n + 1))
        limit = 2**30
        stopped = store.captures()[0]
        pending = stopped if stopped.state.is_pending else None
        if pending and pending.state is CaptureState.PREPARING:
            store.mark_ready(pending.id, {})
        if pending:
            store.commit(pending.id, by="ada", now=pending.created_at)
        last = store.positions()[0].position.snapshot_id
        assert last is not None
        process(store, capture("after", after=last, upto=last + 1))


def test_the_journal_is_a_log_where_that_is_safe(file: Path) -> None:
    expected = "wal" if database.sqlite.sqlite_version_info >= (3, 51, 3) else "delete"
    with Store.open(f"sqlite:///{file}") as store:
        assert pragma(store, "journal_mode") == expected
        assert pragma(store, "synchronous") == 2


def test_an_old_sqlite_goes_back_to_a_rollback_journal(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(f"sqlite:///{file}") as store:
        process(store, capture())
    monkeypatch.setattr(database, "SAFE_WAL", (99, 0, 0))
    with Store.open(f"sqlite:///{file}") as store:
        assert pragma(store, "journal_mode") == "delete"
        assert len(store.captures()) == 1


@pytest.mark.skipif(database.sqlite.sqlite_version_info < (3, 51, 3), reason="needs a SQLite that may use a log")
def test_an_old_sqlite_refuses_a_log_that_a_newer_one_has_open(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.1)
    with Store.open(f"sqlite:///{file}") as store:
        store.captures()
        monkeypatch.setattr(database, "SAFE_WAL", (99, 0, 0))
        with pytest.raises(PlatformError, match=r"lock|another version of SQLite"):
            Store.open(f"sqlite:///{file}")
    Store.open(f"sqlite:///{file}").close()


def test_pythons_own_sqlite_serves_where_the_bundled_one_is_missing(file: Path) -> None:
    code = (
        "import sys; sys.modules['pysqlite3'] = None; import sqlite3\n"
        "from dalsegno.store import Store, database\n"
        "assert database.sqlite is sqlite3.dbapi2\n"
        "Store.open(sys.argv[1]).close()"
    )
    subprocess.run([sys.executable, "-c", code, f"sqlite:///{file}"], check=True)


def pragma(store: Store, name: str) -> object:
    with store.database.reading() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_nothing_changes_when_the_block_raises(new_url: Callable[[], str]) -> None:
    with Store.open(new_url()) as store:
        process(store, capture())
        with pytest.raises(RuntimeError), store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE captures SET state = 'ready'")
            raise RuntimeError
        assert store.capture("c1").state is CaptureState.COMMITTED
