"""A database of any earlier version becomes one of today's, with everything that was in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event, inspect

from dalsegno.errors import PlatformError, UserError
from dalsegno.store import Store
from dalsegno.store.database import Database
from dalsegno.store.migrations import migrate, version
from dalsegno.store.migrations.steps import revisions, upgrade
from dalsegno.store.schema_version import HEAD, OLDEST
from tests.store.examples import PLAYBACK, at, capture, process
from tests.store.races import race

#: What somebody may have had at each version, in the SQL of that version: to be extended, never to be changed.
ROWS: dict[str, list[str]] = {
    "0010": [
        """INSERT INTO captures (id, consumer, state, created_at, created_by, expires_at, settled_at, settled_by)
           VALUES ('old', 'daily', 'committed', {now}, 'ada', {now}, {now}, 'ada')""",
        """INSERT INTO capture_tables
           VALUES ('old', 0, 'daily', 'lake.db.playback', {false},
                   'uuid-1', 'main', NULL, 0, NULL, 0, 'uuid-1', 'main', 10, 10, 1800000000010, 0,
                   {true}, {false}, 'lake.changes.old', {false}, 'file:///changes/old', '{{"files": 3}}',
                   '{{"changes": "before_after", "operations": ["append", "delete"], "keys": ["id"],
                      "by_row_id": false}}')""",
        """INSERT INTO checkpoints (consumer, capture_id, moved_at, moved_by, reason)
           VALUES ('daily', 'old', {now}, 'ada', 'capture committed')""",
        """INSERT INTO checkpoint_positions
           VALUES (1, 'lake.db.playback', 'uuid-1', 'main', 10, 10, 1800000000010, 0)""",
        """INSERT INTO positions
           VALUES ('daily', 'lake.db.playback', 'uuid-1', 'main', 10, 10, 1800000000010, 0, 1)""",
        """INSERT INTO workflows (id, properties, latest_version, last_run, created_at, changed_at)
           VALUES ('w', '{{}}', 1, 0, {now}, {now})""",
        """INSERT INTO triggers (workflow_id, kind, name, upto, next_at, state)
           VALUES ('w', 'time', '@daily UTC', {now}, {now}, '{{}}')""",
        """INSERT INTO leases (name, owner, term, beat) VALUES ('triggers', 'a', 1, 7)""",
        """INSERT INTO signals (name, key, params, payload, source, announced_at)
           VALUES ('plays/complete', 'k', '{{"day": 1}}', '{{}}', '{{"by": "ada"}}', {now})""",
        """INSERT INTO signal_waits (flow_id, step_id, number, run_id, signal_name, wanted)
           VALUES ('r', 's', 0, 'r', 'plays/complete', '{{"day": [">=", 2]}}')""",
        """INSERT INTO signal_subscriptions (signal_name, workflow_id, trigger_name)
           VALUES ('plays/complete', 'w', 't')""",
        """INSERT INTO signal_arrivals (workflow_id, trigger_name, signal_id, signal_name)
           VALUES ('w', 't', 1, 'plays/complete')""",
        """INSERT INTO nodes (id, host, process, process_began, started_at, seen_at, beat)
           VALUES ('n', 'here pid:[1]', 7, 'long ago', {now}, {now}, 3)""",
        """INSERT INTO tokens (digest, created_at, created_by) VALUES ('d', {now}, 'ada')""",
        """INSERT INTO outbox (key, channel, message, created_at, next_at, attempts)
           VALUES ('run r 1 failed', 'ops', '{{}}', {now}, {now}, 0)""",
        """INSERT INTO lags (consumer, table_name, measured_at) VALUES ('daily', 'lake.db.playback', {now})""",
        """INSERT INTO progress (name, upto) VALUES ('traces', 7)""",
        """INSERT INTO audit_log (recorded_at, caller, roles, verb, subject_kind, subject, after_change, reason)
           VALUES ({now}, 'ada@host', '["admin"]', 'kill', 'run', 'w/1', '{{"ending": "KILL"}}', 'wrong day')""",
        """INSERT INTO work_units (id, digest, captures, workflow_id, step_id, inputs, state, template, begun_by,
           created_at, visited, owner, outputs)
           VALUES ('u', 'u', '["old"]', 'w', 's', '[]', 'done', 't', 'w/1', {now}, '[]', 'o', '{{}}')""",
        """INSERT INTO work_unit_captures (capture_id, unit_id) VALUES ('old', 'u')""",
        """INSERT INTO work_statements (unit_id, number, text, state) VALUES ('u', 1, 'SELECT 1', 'begun')""",
        """INSERT INTO proofs (target, query_digest, is_proven, created_at, created_by, details)
           VALUES ('lake.db.t', 'd', {true}, {now}, 'ada', '{{}}')""",
        """INSERT INTO refreshes (unit_id, capture_id, target, workflow_id, workflow_version, run_number, step_id,
           query_digest, strategy, why, bytes_read, bytes_written, details)
           VALUES ('u', 'old', 'lake.db.t', 'w', 1, 1, 's', 'd', 'append', 'y', 1, 2, '{{}}')""",
        """INSERT INTO refresh_reads (unit_id, ordinal, table_name, read_as, file_count, row_count, byte_count)
           VALUES ('u', 0, 'lake.db.s', 'changes', 1, 2, 3)""",
        """INSERT INTO refresh_writes (unit_id, ordinal, table_name, snapshots, added_rows, removed_rows, added_bytes,
           is_companion) VALUES ('u', 0, 'lake.db.t', '["1"]', 1, 2, 3, {false})""",
        """INSERT INTO versions (workflow_id, version, definition, digest, created_at, created_by)
           VALUES ('w', 1, '{{}}', 'd', {now}, 'ada')""",
        """INSERT INTO file_contents (digest, size, content) VALUES ('c', 8, 'SELECT 1')""",
        """INSERT INTO version_files (workflow_id, version, step_id, field, name, digest)
           VALUES ('w', 1, 's', 'sql.file', 'a.sql', 'c')""",
        """INSERT INTO templates (job_type, version, definition, changed_at, changed_by)
           VALUES ('t', 'default', '{{}}', {now}, 'ada')""",
        """INSERT INTO template_files (job_type, version, field, name, unstored)
           VALUES ('t', 'default', 'sql.file', '${{x}}.sql', 'parameters')""",
    ],
}
LITERALS = {
    "sqlite": {"now": "1800000000000000", "true": "1", "false": "0"},
    "postgresql": {"now": "'2027-01-15 08:00:00+00'", "true": "true", "false": "false"},
}


def bring_to(url: str, target: str) -> None:
    """What Store.open does with an old database, but from nothing and up to any version."""
    database = Database(url)
    with database.migrating() as connection:
        upgrade(connection, database.place, target)
    database.close()


def test_the_newest_step_is_the_head() -> None:
    assert revisions()[-1] == HEAD
    assert set(ROWS) == set(revisions())


def test_a_new_database_and_a_migrated_one_are_the_same(new_url: Callable[[], str]) -> None:
    made, migrated = new_url(), new_url()
    Store.open(made).close()
    bring_to(migrated, HEAD)
    assert schema(made) == schema(migrated)


@pytest.mark.parametrize("start", ROWS)
def test_rows_of_every_version_survive(url: str, start: str) -> None:
    for revision in revisions()[: revisions().index(start) + 1]:
        bring_to(url, revision)
        database = Database(url)
        with database.writing() as connection:
            for statement in ROWS[revision]:
                literals = LITERALS[connection.dialect.name]
                connection.exec_driver_sql(statement.format(**literals).replace("%", "%%"))
        database.close()
    with Store.open(url) as store:
        (old,) = store.captures()
        assert old.tables[0].details == {"files": 3}
        assert store.position("daily", PLAYBACK) == at(10)
        assert store.commit("old", by="bob", now=old.created_at).checkpoint.positions == {PLAYBACK: at(10)}
        process(store, capture("new", after=10, upto=12))
        assert [checkpoint.id for checkpoint in store.checkpoints("daily")] == [2, 1]


def test_a_database_from_the_future_is_left_alone(url: str) -> None:
    with Store.open(url) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE dalsegno_version SET version_num = '9999'")
    with pytest.raises(UserError, match=rf"has schema version 9999; this dalsegno knows up to {HEAD}.*upgrade"):
        Store.open(url)
    database = Database(url)
    with database.reading() as connection:
        assert version(connection) == "9999"
    database.close()


def test_a_database_from_before_the_first_release_is_left_alone(url: str) -> None:
    with Store.open(url) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE dalsegno_version SET version_num = '0009'")
    with pytest.raises(UserError, match="schema version 0009, from before the first release"):
        Store.open(url)


def from_the_future(url: str, oldest: str | None) -> None:
    """Make it a database of a version that does not exist yet, which says what it works with, if anything."""
    with Store.open(url) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE dalsegno_version SET version_num = '9999'")
        connection.exec_driver_sql("DELETE FROM dalsegno_compatibility")
        if oldest is not None:
            values = f"('9999', '{oldest}')"
            connection.exec_driver_sql(f"INSERT INTO dalsegno_compatibility (version, oldest) VALUES {values}")


def test_a_newer_database_that_bears_us_is_used_as_it_is(url: str) -> None:
    from_the_future(url, HEAD)
    with Store.open(url) as store:
        process(store, capture())
        assert store.position("daily", PLAYBACK) is not None
        with store.database.reading() as connection:
            assert version(connection) == "9999"


@pytest.mark.parametrize("oldest", [None, "9998"])
def test_a_newer_database_that_does_not_bear_us_is_left_alone(url: str, oldest: str | None) -> None:
    from_the_future(url, oldest)
    with pytest.raises(UserError, match=rf"has schema version 9999; this dalsegno knows up to {HEAD}.*upgrade"):
        Store.open(url)


def test_a_database_says_what_it_works_with(new_url: Callable[[], str]) -> None:
    with Store.open(new_url()) as store, store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT * FROM dalsegno_compatibility").all() == [(HEAD, OLDEST)]


def test_many_may_open_a_new_database_at_once(url: str) -> None:
    endings = race(url, [(look,) for _ in range(4)])
    assert {ending.error for ending in endings} == {None}
    with Store.open(url) as store:
        assert store.captures() == []


def look(store: Store) -> None:
    store.captures()


def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    database = Database(url)
    with pytest.raises(RuntimeError, match="half way"), database.migrating() as connection:
        upgrade(connection, database.place, HEAD)
        raise RuntimeError("half way")
    with database.reading() as connection:
        assert inspect(connection).get_table_names() == []
    migrate(database)
    database.close()


def test_tables_of_somebody_else_are_not_touched(url: str) -> None:
    database = Database(url)
    with database.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE captures (photo TEXT)")
    database.close()
    with pytest.raises(PlatformError, match="give the store a database of its own"):
        Store.open(url)


def test_opening_does_not_import_alembic(url: str) -> None:
    code = "import sys; from dalsegno.store import Store; Store.open(sys.argv[1]); print('alembic' in sys.modules)"
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "False"


class TestSqlite:
    """SQLite rebuilds a table to change it; with foreign keys on, that would take other tables' rows with it."""

    @pytest.fixture
    def url(self, tmp_path: Any) -> str:
        return f"sqlite:///{tmp_path}/store.db"

    def test_they_are_on_except_while_migrating(self, store: Store) -> None:
        with store.database.writing() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        with store.database.migrating() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 0

    def test_a_migration_may_not_leave_rows_that_point_nowhere(self, store: Store) -> None:
        process(store, capture())
        with pytest.raises(PlatformError, match="point nowhere"), store.database.migrating() as connection:
            connection.exec_driver_sql("DELETE FROM captures")
        assert len(store.captures()) == 1

    def test_the_pending_capture_is_found_by_its_index(self, store: Store) -> None:
        """SQLite does not use a partial index whose condition reads otherwise than the query's."""
        statements: list[tuple[str, Any]] = []

        @event.listens_for(store.database.engine, "before_cursor_execute")
        def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
            statements.append((statement, parameters))

        store.pending("daily", PLAYBACK)
        lookup, parameters = statements[-1]
        with store.database.reading() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {lookup}", parameters).all()
        assert "uq_capture_tables_pending" in str(plan)


def schema(url: str) -> object:
    """Everything that makes up the schema, in the database's own words."""
    database = Database(url)
    with database.reading() as connection:
        found = _sqlite_schema(connection) if database.is_sqlite else _postgres_schema(connection)
    database.close()
    return found


def _sqlite_schema(connection: Connection) -> object:
    tables = inspect(connection).get_table_names()
    assert "captures" in tables
    indexes = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name")
    return {
        "columns": {table: connection.exec_driver_sql(f"PRAGMA table_info({table})").all() for table in tables},
        # Numbered in the order in which they were written down, which means nothing.
        "keys": {
            table: sorted(row[1:] for row in connection.exec_driver_sql(f"PRAGMA foreign_key_list({table})"))
            for table in tables
        },
        "indexes": {name: sql and " ".join(sql.split()) for name, sql in indexes},
        "autoincrement": connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%' ORDER BY name"
        ).all(),
    }


def _postgres_schema(connection: Connection) -> object:
    return [
        connection.exec_driver_sql(query).all()
        for query in (
            """SELECT table_name, ordinal_position, column_name, data_type, character_maximum_length, is_nullable,
                      column_default, is_identity, identity_generation
               FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2""",
            """SELECT tablename, indexname, replace(indexdef, current_schema(), '') FROM pg_indexes
               WHERE schemaname = current_schema() ORDER BY 1, 2""",
            """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
               WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2""",
        )
    ]
