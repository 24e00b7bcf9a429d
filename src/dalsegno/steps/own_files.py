"""Which files are dalsegno's own, and nothing that a step may name: the store, its copies, jobs, tokens, settings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from dalsegno.errors import UserError
from dalsegno.private_files import OWN_FOLDER
from dalsegno.settings import FILE_NAME, Settings

_SQLITE_PREFIX, _SQLITE_MAGIC = "sqlite:///", b"SQLite format 3\0"
#: A table that every store has.
_STORE_TABLE = "dalsegno_version"


def refuse_own(path: Path, settings: Settings, where: str) -> None:
    """Refuse a path, with links followed, that leads to one of them. It may hold a value that somebody else gave."""
    if _is_own(path, settings):
        raise UserError(
            f"{where}: {path} is dalsegno's own, and not for steps.",
            hint=f"Name a file outside of {OWN_FOLDER}/ that is neither the settings nor a copy of the store.",
        )


def _is_own(path: Path, settings: Settings) -> bool:
    root = settings.root.resolve()
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    # Another project's as well.
    if OWN_FOLDER in inside.parts or path.name == FILE_NAME:
        return True
    if any(path == own or own in path.parents for own in _own_paths(settings)):
        return True
    return path.is_file() and (_is_settings(path, settings) or _is_store(path))


def _own_paths(settings: Settings) -> Iterator[Path]:
    jobs = settings.jobs_path.resolve()
    # Who puts jobs above everything else has no other place for files.
    if not settings.root.resolve().is_relative_to(jobs):
        yield jobs
    if settings.store.startswith(_SQLITE_PREFIX):
        store = (settings.root / settings.store.removeprefix(_SQLITE_PREFIX).partition("?")[0]).resolve()
        yield from (store.with_name(store.name + end) for end in ("", "-wal", "-shm", "-journal"))


def _is_settings(path: Path, settings: Settings) -> bool:
    """Also by another name."""
    files = (settings.settings_file, settings.root / FILE_NAME)
    return any(file is not None and file.exists() and path.samefile(file) for file in files)


def _is_store(path: Path) -> bool:
    """A store, or a copy of one, wherever it is."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE_MAGIC)) != _SQLITE_MAGIC:
                return False
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_STORE_TABLE,)).fetchone()
    except sqlite3.Error:
        # A database that cannot be read may be one.
        return True
    return found is not None
