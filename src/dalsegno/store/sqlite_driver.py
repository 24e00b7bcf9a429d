"""SQLite: which build of it is used, and what it is asked for.

One process must use one build: when one closes a file, the operating system takes away the other's locks, too.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from dalsegno.private_files import close_to_others

try:
    # Newer than the one in most Pythons: see SAFE_WAL.
    import pysqlite3.dbapi2 as sqlite_module
except ImportError:
    import sqlite3.dbapi2 as sqlite_module

sqlite: ModuleType = sqlite_module

#: How long to wait for somebody else's write. Ours take milliseconds; a migration may take seconds.
PATIENCE_SECONDS = 10

#: In SQLite up to 3.51.2, two connections that write and checkpoint at once can corrupt a WAL database.
SAFE_WAL = (3, 51, 3)


def journal_mode(version: tuple[int, int, int], safe: tuple[int, int, int] = SAFE_WAL) -> str:
    """A write-ahead log where this SQLite is safe with one, else a rollback journal: slower, always safe."""
    return "wal" if version >= safe else "delete"


def close_files_to_others(path: Path) -> None:
    """SQLite gives the files that it makes beside a database the same mode."""
    for file in (path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm", "journal"))):
        if file.is_file():
            close_to_others(file)
