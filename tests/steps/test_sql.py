"""SQL steps on a real SQLite and a real PostgreSQL."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import FailureKind
from dalsegno.settings import ConnectionSettings, Settings
from dalsegno.steps.contract import Work
from dalsegno.steps.sql import SqlRunner
from dalsegno.steps.sql_text import statements, with_colons_escaped
from tests.services.postgres import Postgres
from tests.steps.support import attempt, failure, log_text, outputs

SQL = SqlRunner()


def ask(root: Path, block: dict[str, Any], url: str | None = None, **more: Any) -> Work:
    connections = {"shop": ConnectionSettings("shop", url or f"sqlite:///{root}/shop.db")}
    settings = Settings(root=root, connections=connections)
    return attempt(root, {"sql": {"connection": "shop", **block}}, settings=settings, **more)


def test_a_script(tmp_path: Path) -> None:
    script = """
        CREATE TABLE sale (day TEXT, amount INTEGER); -- one; two
        INSERT INTO sale VALUES ('mon; 10:30', :amount), (:day, 2);
        SELECT day, amount, NULL AS unknown FROM sale ORDER BY amount;
    """
    work = ask(tmp_path, {"script": script, "args": {"amount": 5, "day": "x'); DROP TABLE sale; --"}})
    first = {"day": "x'); DROP TABLE sale; --", "amount": 2}
    rows = [first, {"day": "mon; 10:30", "amount": 5}]
    assert outputs(SQL, work) == {"row_count": 2, "rows": rows, "first_row": first}
    assert "statement 2 of 3: 2 rows changed" in log_text(work)


def test_all_or_nothing(tmp_path: Path) -> None:
    outputs(SQL, ask(tmp_path, {"script": "CREATE TABLE t (a INTEGER UNIQUE)"}))
    script = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)"
    failed = failure(SQL, ask(tmp_path, {"script": script}))
    assert (failed.kind, "UNIQUE constraint failed" in failed.message) == (FailureKind.USER, True)
    assert outputs(SQL, ask(tmp_path, {"query": "SELECT count(*) AS n FROM t"}))["first_row"] == {"n": 0}


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "load.sql").write_text("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)")
    assert outputs(SQL, ask(tmp_path, {"file": "load.sql"})) == {"row_count": 1}


def test_it_can_be_ended(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    work = ask(tmp_path, {"query": endless}, deadline=utc_now() + timedelta(seconds=3))
    assert failure(SQL, work).kind is FailureKind.TIMEOUT


def test_a_locked_database_is_worth_another_try(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    holder.execute("CREATE TABLE t (a)")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        url = f"sqlite:///{tmp_path}/shop.db?timeout=0"
        failed = failure(SQL, ask(tmp_path, {"script": "INSERT INTO t VALUES (1)"}, url))
    finally:
        holder.close()
    assert (failed.kind, "locked" in failed.message) == (FailureKind.PLATFORM, True)


@pytest.mark.parametrize(
    ("block", "url", "kind", "says"),
    [
        ({"script": "SELEC 1"}, None, FailureKind.USER, "syntax error"),
        ({"query": "SELECT :x"}, None, FailureKind.USER, "bind parameter 'x'"),
        ({"query": "SELECT 1"}, "nosuch://x", FailureKind.FATAL, "url cannot be used"),
        ({"query": "SELECT 1", "connection": "shpo"}, None, FailureKind.FATAL, "no connection 'shpo'"),
        ({}, None, FailureKind.FATAL, "needs one of script, query, file"),
        ({"file": "../x.sql"}, None, FailureKind.FATAL, "is outside of"),
    ],
)
def test_refusals(tmp_path: Path, block: dict[str, Any], url: str | None, kind: FailureKind, says: str) -> None:
    failed = failure(SQL, ask(tmp_path, block, url))
    assert (failed.kind, says in failed.message) == (kind, True), failed


@pytest.mark.postgres
def test_postgres(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.url(postgres.create_database())
    script = """
        CREATE TABLE sale (day date, amount numeric);
        CREATE FUNCTION twice(x numeric) RETURNS numeric LANGUAGE plpgsql AS $body$ BEGIN RETURN x * 2; END; $body$;
        INSERT INTO sale VALUES ('2026-01-02'::date, :amount);
        SELECT day, twice(amount) AS twice FROM sale
    """
    work = ask(tmp_path, {"script": script, "args": {"amount": 1.5}}, url)
    assert outputs(SQL, work)["first_row"] == {"day": "2026-01-02", "twice": "3.0"}
    failed = failure(SQL, ask(tmp_path, {"query": "SELECT 1"}, "postgresql+psycopg://nobody:hunter2@127.0.0.1:1/x"))
    assert failed.kind is FailureKind.PLATFORM
    assert "hunter2" not in failed.message


pieces = st.sampled_from(
    ["SELECT 1", "';'", '";"', "--;\n", "/*;*/", "$$;$$", "$a$;$b$;$a$", " ", ":x", "`;`", "'it''s;'"]
)


@given(st.lists(st.lists(pieces, max_size=4).map("".join), max_size=4))
def test_only_semicolons_between_statements_count(parts: list[str]) -> None:
    expected = [part.strip() for part in parts]
    found = statements(";".join(parts))
    assert found == [part for part in expected if statements(part)]
    assert all(len(statements(part)) <= 1 for part in parts)


def test_colons() -> None:
    assert with_colons_escaped("SELECT ':a', b::int, :c -- :d") == r"SELECT '\:a', b::int, :c -- \:d"
