"""How a database gets to the schema in ``tables``.

A new database gets it at once. An older one is led there step by step: one file per step under ``versions``,
each written out in full, because a step must do tomorrow what it does today; so it may not import ``tables``.
All steps that are missing run in one transaction, so a database is never in between: SQLite and PostgreSQL
can both roll a changed schema back.

To change the schema: change ``tables``, add a step, set ``HEAD``. Tests compare what the two ways lead to.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, inspect, select

from dalsegno.store import run_tables, service_tables
from dalsegno.store.database import Database
from dalsegno.store.tables import metadata, schema_version

#: All tables share ``metadata``, and are in it once these modules are loaded.
_OTHER_TABLES = (run_tables, service_tables)
#: The newest step under ``versions``.
HEAD = "0008"


def migrate(database: Database) -> None:
    """Bring the schema up to date; several processes may try at once."""
    with database.reading() as connection:
        if version(connection) == HEAD:
            return
    with database.migrating() as connection:
        # Asked again: whoever held the lock before us may have done it.
        found = version(connection)
        if found is None:
            metadata.create_all(connection, checkfirst=False)
            connection.execute(insert(schema_version).values(version_num=HEAD))
        elif found != HEAD:
            from dalsegno.store.migrations.steps import upgrade  # noqa: PLC0415 (Alembic takes half a second)

            upgrade(connection, database.place, HEAD)


def version(connection: Connection) -> str | None:
    """Which step the database is at; None if it is empty."""
    if not inspect(connection).has_table(schema_version.name):
        return None
    return connection.scalar(select(schema_version.c.version_num))


def is_right_schema(connection: Connection) -> bool:
    """Whether we can go on working with it; one that is newer was let pass by whoever upgraded it."""
    return (version(connection) or "") >= HEAD
