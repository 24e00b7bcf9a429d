"""A copy of the store, made while it is in use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalsegno.errors import PlatformError, UserError
from dalsegno.store import Store
from dalsegno.store.sqlite_driver import sqlite


@dataclass(frozen=True)
class Backup:
    file: str
    bytes: int


def back_up(store: Store, file: Path) -> Backup:
    """Copy a SQLite store into a new file, as it is at one moment; whoever works on it is not held up."""
    if not store.database.is_sqlite:
        raise UserError(
            f"The store is in PostgreSQL ({store.database.place}), which has a tool of its own for this.",
            hint=f"pg_dump --format=custom --file {file} {store.database.url.database}",
        )
    if file.exists():
        raise UserError(f"{file} exists already.", hint="Name another file, or remove this one.")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        # It holds parameters of runs: only for whoever made it.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(store, draft)
        # Where somebody else made it in the meantime, it stays theirs.
        os.link(draft, file)
    except (OSError, sqlite.Error) as error:
        raise PlatformError(f"The store cannot be copied to {file}: {error}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return Backup(str(file), file.stat().st_size)


def _copy(store: Store, draft: Path) -> None:
    copy = sqlite.connect(draft)
    try:
        with store.database.place.explained():
            source = store.database.engine.raw_connection()
        try:
            driver: Any = source.driver_connection
            driver.backup(copy)
        finally:
            source.close()
        # One file, which needs none beside it.
        copy.execute("PRAGMA journal_mode = delete")
        [(found,)] = copy.execute("PRAGMA integrity_check").fetchmany(1)
        if found != "ok":
            raise PlatformError(f"The copy is damaged, and so may be the store: {found}.")
    finally:
        copy.close()
