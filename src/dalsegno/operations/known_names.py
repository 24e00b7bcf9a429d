"""Names that shells complete: read from the store, or from a local catalog's file, within moments.

Nothing is made or brought up to date for it, and no catalog is asked over the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from dalsegno import settings as settings_module
from dalsegno.operations.run_reader import RunReader
from dalsegno.operations.stored_steps import stored_steps, with_loops
from dalsegno.operations.version_reader import VersionReader
from dalsegno.settings import CatalogType, Settings
from dalsegno.store import name_queries
from dalsegno.store.reading import Readable
from dalsegno.store.sqlite_driver import sqlite
from dalsegno.store.sqlite_file import SqliteFile

#: A shell waits no longer for a database.
_PATIENCE_SECONDS = 1
_SQLITE = "sqlite:///"


class KnownNames:
    """What the settings in force lead to."""

    def __init__(self, settings_file: Path | None = None) -> None:
        self.settings = settings_module.load(settings_file)

    def stored(self, read: Callable[[Any, str], list[str]], beginning: str) -> list[str]:
        """What one of ``name_queries`` finds."""
        database = _opened(self.settings.store)
        if database is None:
            return []
        try:
            with database.reading() as connection:
                return read(connection, beginning)
        finally:
            database.close()

    def named(self, kind: str, beginning: str, **options: Any) -> list[str]:
        """Names of a kind that ``name_queries`` has, such as ``workflows``."""
        read = getattr(name_queries, kind)
        return self.stored(lambda connection, text: list(read(connection, text, **options)), beginning)

    def tables(self, beginning: str) -> list[str]:
        """Of the default catalog without its name, unless one has begun to type it."""
        found = {*self.stored(name_queries.tables, ""), *self._local_tables()}
        default = f"{self.settings.default_catalog}."
        shown = found | {name.removeprefix(default) for name in found}
        chosen = sorted(name for name in shown if name.startswith(beginning))
        short = [name for name in chosen if not name.startswith(default)]
        return (short if short and not beginning.startswith(default) else chosen)[: name_queries.MOST]

    def steps(self, *, workflow_id: str | None = None, run: str | None = None) -> list[str]:
        """The steps of a workflow's newest version, or of a run."""
        database = _opened(self.settings.store)
        if database is None:
            return []
        with closing(database):
            versions = VersionReader(database)
            if run is not None:
                found = RunReader(self.settings, database).run(run)
                workflow_id, version = found.workflow_id, found.version
            elif workflow_id is None:
                return []
            else:
                version = versions.row(workflow_id)["latest_version"]
            return [step.id for step, _ in with_loops(stored_steps(versions.definition(workflow_id, version)))]

    def _local_tables(self) -> Iterable[str]:
        for catalog in self.settings.catalogs.values():
            uri = catalog.uri or ""
            if catalog.type is CatalogType.SQL and uri.startswith(_SQLITE) and (file := Path(uri[10:])).is_file():
                yield from _tables_in(file, catalog.name, self.settings)


def _opened(url: str) -> Readable | None:
    """A store as it is; None if there is none yet."""
    if url.startswith("sqlite"):
        return SqliteFile.open(url)
    from dalsegno.store.database import Database  # noqa: PLC0415 - slow import

    return Database(f"{url}{'&' if '?' in url else '?'}connect_timeout={_PATIENCE_SECONDS}")


def _tables_in(file: Path, catalog: str, settings: Settings) -> list[str]:
    """The tables of a catalog in SQLite, but for change tables; there is no need to load PyIceberg for that."""
    connection = sqlite.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_SECONDS)
    try:
        query = "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace <> ?"
        found = connection.execute(query, (catalog, settings.change_namespace)).fetchall()
    finally:
        connection.close()
    return [f"{catalog}.{namespace}.{name}" for namespace, name in found]
