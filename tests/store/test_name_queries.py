"""Names for completion, on both databases."""

from __future__ import annotations

from pathlib import Path

from dalsegno.clock import utc_now
from dalsegno.operations.known_names import KnownNames
from dalsegno.store import Store, name_queries
from dalsegno.store.run_tables import limits, signals, workflows


def test_names_begin_with_what_was_typed(store: Store) -> None:
    with store.database.writing() as connection:
        connection.execute(limits.insert(), [{"tag": tag, "most": 1} for tag in ("été", "a%b", "a_c", "aXd", "A")])
    with store.database.reading() as connection:
        # Databases sort names in orders of their own.
        assert sorted(name_queries.tags(connection, "a")) == ["a%b", "aXd", "a_c"]
        assert name_queries.tags(connection, "a%") == ["a%b"]
        assert name_queries.tags(connection, "a_") == ["a_c"]
        assert name_queries.tags(connection, "ét") == ["été"]
        assert name_queries.tags(connection, "'") == []


def test_every_query_runs(store: Store) -> None:
    now = utc_now()
    with store.database.writing() as connection:
        kept = {"properties": {}, "latest_version": 1, "last_run": 0, "created_at": now, "changed_at": now}
        connection.execute(workflows.insert(), [{"id": "w", **kept, "deleted_at": None}])
        connection.execute(workflows.insert(), [{"id": "was", **kept, "deleted_at": now}])
        connection.execute(
            signals.insert(),
            [{"name": "s", "params": {}, "payload": {}, "source": {}, "announced_at": now} for _ in range(3)],
        )
    with store.database.reading() as connection:
        assert name_queries.workflows(connection, "w") == ["w"]
        assert name_queries.signals(connection, "") == ["s"]
        for query in (name_queries.runs, name_queries.consumers, name_queries.tables, name_queries.templates):
            assert query(connection, "x") == []
        for pending_only in (True, False):
            assert name_queries.captures(connection, "", pending_only=pending_only) == []


def test_a_shell_reads_the_store_that_the_settings_name(store: Store, url: str, tmp_path: Path) -> None:
    with store.database.writing() as connection:
        connection.execute(limits.insert(), [{"tag": "warehouse", "most": 1}])
    settings = tmp_path / "dalsegno.toml"
    settings.write_text(f'store = "{url}"\n', encoding="utf-8")
    known = KnownNames(settings)
    assert known.stored(name_queries.tags, "w") == ["warehouse"]
    assert (known.tables(""), known.steps(), known.steps(workflow_id=None)) == ([], [], [])
