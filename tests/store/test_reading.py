"""What is read with plain SQL, with SQLAlchemy and without."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import JSON, Boolean

from dalsegno.errors import StoreFailed, UserError
from dalsegno.store import (
    Store,
    audit_tables,
    file_tables,
    proof_tables,
    reading,
    refresh_tables,
    run_tables,
    sqlite_driver,
    sqlite_file,
    tables,
)
from dalsegno.store.database import Database
from dalsegno.store.sqlite_file import SqliteFile, open_for_reading
from dalsegno.store.store_reader import StoreReader
from tests.store.examples import capture

READ = (
    *(run_tables.workflows, run_tables.versions, run_tables.runs, run_tables.flows, run_tables.steps),
    *(run_tables.events, run_tables.signal_waits, tables.captures, tables.capture_tables, tables.checkpoints),
    *(tables.checkpoint_positions, tables.positions, file_tables.version_files, file_tables.file_contents),
    *(audit_tables.audit_log, run_tables.signals),
    proof_tables.proofs,
    *(refresh_tables.refreshes, refresh_tables.refresh_reads, refresh_tables.refresh_writes),
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_what_sqlite_has_no_type_for_is_known_by_name() -> None:
    for table in READ:
        for column in table.c:
            kinds = (isinstance(column.type, tables.Moment), isinstance(column.type, JSON), column.type._type_affinity)
            found = (column.name in reading.MOMENTS, column.name in reading.JSONS, column.name in reading.FLAGS)
            assert found == (kinds[0], kinds[1], kinds[2] is Boolean), f"{table.name}.{column.name}"


def test_a_store_is_made_first_and_then_read_without_sqlalchemy(url: str) -> None:
    for kind in (Database, SqliteFile):
        with closing(open_for_reading(url)) as found:
            assert isinstance(found, kind)


def test_both_ways_read_the_same(url: str) -> None:
    with Store.open(url) as store:
        store.record_capture(capture("c1"))
        store.mark_ready("c1", {each.table: {"rows": 3, "text": "é\x00"} for each in capture("c1").tables})
        expected = store.captures()
        store.commit("c1", by="ada", now=expected[0].created_at)
        with StoreReader(open_for_reading(url)) as reader:
            assert isinstance(reader.database, SqliteFile)
            assert reader.captures() == store.captures() != []
            assert reader.captures(pending_only=True) == []
            assert reader.capture("c") == store.capture("c1")
            assert reader.positions() == store.positions() != []
            assert reader.standing() == store.standing() != {}
            assert reader.checkpoints("daily") == store.checkpoints("daily") != []


def test_wildcards_in_the_beginning_of_an_id_are_only_letters(store: Store) -> None:
    store.record_capture(capture("c1"))
    for text in ("_1", "%", "C1"):
        with pytest.raises(UserError):
            store.capture(text)


def test_a_store_that_needs_more_than_reading_is_left_to_others(url: str, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("not a database, but long enough to be told from an empty file" * 50)
    with pytest.raises(StoreFailed, match="not a database"):
        open_for_reading(url)
    assert SqliteFile.open("sqlite:///:memory:") is None
    assert SqliteFile.open(f"{url}?timeout=3") is None
    assert SqliteFile.open("postgresql://host/database") is None


def test_an_older_or_newer_schema_is_left_to_others(url: str) -> None:
    Store.open(url).close()
    with closing(Database(url)) as database, database.writing() as connection:
        connection.exec_driver_sql("UPDATE dalsegno_version SET version_num = '9999'")
    assert SqliteFile.open(url) is None
    with pytest.raises(UserError, match="has schema version 9999"):
        open_for_reading(url)


def test_reading_changes_nothing_and_says_what_failed(url: str) -> None:
    Store.open(url).close()
    with (
        closing(open_for_reading(url)) as found,
        pytest.raises(StoreFailed, match=r"store\.db failed: attempt to write a readonly"),
        found.reading() as connection,
    ):
        connection.execute("DELETE FROM runs")


def test_what_a_killed_writer_began_is_not_read(url: str) -> None:
    with Store.open(url) as store:
        store.record_capture(capture("c1"))
    code = (
        "import os, sys\nfrom dalsegno.store.database import Database\n"
        "with Database(sys.argv[1]).writing() as connection:\n"
        "    connection.exec_driver_sql('PRAGMA cache_size = 1')\n"
        "    connection.exec_driver_sql('UPDATE captures SET reason = hex(randomblob(100000))')\n"
        "    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == 9
    with StoreReader(open_for_reading(url)) as reader:
        assert [each.reason for each in reader.captures()] == [None]


def test_who_holds_the_file_for_long_is_waited_for_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(url).close()
    monkeypatch.setattr(sqlite_file, "PATIENCE_SECONDS", 0.1)
    with closing(sqlite_driver.sqlite.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM runs")
        with pytest.raises(StoreFailed, match="database is locked") as caught:
            open_for_reading(url)
    assert "Another process has been writing for long" in str(caught.value.hint)


def test_others_may_not_read_a_store_that_was_opened_to_read(url: str, tmp_path: Path) -> None:
    Store.open(url).close()
    (tmp_path / "store.db").chmod(0o644)
    open_for_reading(url).close()
    assert (tmp_path / "store.db").stat().st_mode & 0o077 == 0
