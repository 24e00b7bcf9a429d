"""How a database gets to the schema in ``tables``.

A new database gets it at once. An older one is led there step by step: one file per step under ``versions``,
each written out in full, because a step must do tomorrow what it does today; so it may not import ``tables``.
All steps that are missing run in one transaction, so a database is never in between: SQLite and PostgreSQL
can both roll a changed schema back.

To change the schema: change ``tables``, add a step, set ``HEAD`` in ``schema_version``. Tests compare what the two ways
lead to. A step that only adds what older ones need not know leaves ``OLDEST`` as it is: then nodes can be upgraded one
after the other. One that does more sets it to itself.
"""

from __future__ import annotations

from importlib import import_module

from sqlalchemy import Connection, delete, insert, inspect, select

from dalsegno.errors import UserError
from dalsegno.store.database import Database
from dalsegno.store.failures import Place
from dalsegno.store.schema_version import HEAD, OLDEST
from dalsegno.store.tables import compatibility, metadata, schema_version


def migrate(database: Database) -> None:
    """Bring the schema up to date; several processes may try at once. A newer one that bears us is left as it is."""
    with database.reading() as connection:
        if _is_usable(connection, database.place):
            return
    with database.migrating() as connection:
        # Asked again: whoever held the lock before us may have done it.
        if _is_usable(connection, database.place):
            return
        if version(connection) is None:
            _load_all_tables()
            metadata.create_all(connection, checkfirst=False)
            connection.execute(insert(schema_version).values(version_num=HEAD))
        else:
            from dalsegno.store.migrations.steps import upgrade  # noqa: PLC0415 (Alembic takes half a second)

            upgrade(connection, database.place, HEAD)
        connection.execute(delete(compatibility))
        connection.execute(insert(compatibility).values(version=HEAD, oldest=OLDEST))


def _load_all_tables() -> None:
    """All tables share ``metadata``, and are in it once their modules are loaded; most commands need a few of them."""
    for name in (
        "audit_tables",
        "file_tables",
        "proof_tables",
        "refresh_tables",
        "run_tables",
        "service_tables",
        "work_tables",
    ):
        import_module(f"dalsegno.store.{name}")


def version(connection: Connection) -> str | None:
    """Which step the database is at; None if it is empty."""
    if not inspect(connection).has_table(schema_version.name):
        return None
    return connection.scalar(select(schema_version.c.version_num))


def is_right_schema(connection: Connection) -> bool:
    """Whether we can go on working with it; one that is newer was let pass by whoever upgraded it."""
    return (version(connection) or "") >= HEAD


def from_the_future(place: Place, found: str) -> UserError:
    return UserError(
        f"The database {place} has schema version {found}; this dalsegno knows up to {HEAD}.",
        hint="A newer dalsegno made it: upgrade this one (pip install --upgrade dalsegno).",
    )


def _is_usable(connection: Connection, place: Place) -> bool:
    """Whether nothing needs to be done; an error if nothing can be."""
    found = version(connection)
    if found is None or found < HEAD:
        return False
    if found > HEAD and not _bears_us(connection, found):
        raise from_the_future(place, found)
    return True


def _bears_us(connection: Connection, found: str) -> bool:
    if not inspect(connection).has_table(compatibility.name):
        return False
    oldest = connection.scalar(select(compatibility.c.oldest).where(compatibility.c.version == found))
    return oldest is not None and oldest <= HEAD
