"""Files and folders of dalsegno's own, which no other user of the machine may read.

Modes are set one by one: a umask would also change what users' jobs write.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

#: The folder that holds what is dalsegno's own, unless the settings put it elsewhere.
OWN_FOLDER = ".dalsegno"

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(folder: Path) -> None:
    """Make a folder, with those above it, for this user alone; an old ``.dalsegno`` on the way is closed to others."""
    missing = []
    for each in (folder, *folder.parents):
        if each.exists():
            break
        missing.append(each)
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    for each in (folder, *folder.parents):
        if each.name == OWN_FOLDER:
            close_to_others(each)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def make_private_file(path: Path) -> None:
    """Make an empty file unless it is there; never open one that is.

    A process that closes a database file lets go of all locks that SQLite holds there.
    """
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.link(draft, path)
    except FileExistsError:
        # Somebody else was faster.
        return
    finally:
        draft.unlink()


def close_to_others(path: Path) -> None:
    """Take away what other users may do with a file or folder, if it is ours and there."""
    with suppress(OSError):
        found = path.stat()
        if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def write_private_text(path: Path, text: str) -> None:
    """Replace a file by a new one that only this user may read."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as writer:
        writer.write(text)
    draft.replace(path)
