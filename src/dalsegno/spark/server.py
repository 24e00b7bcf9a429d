"""A Spark Connect server on this machine: found warm or started, by any process, and never twice.

Each configuration has a server and a folder of its own, so a changed configuration starts another server while the
old one serves who uses it, until it idles. In the folder:

- ``keeper.lock`` is held by the server's keeper (see ``keeper``) for as long as it lives. The system lets go of it when
  the keeper is killed, however that happens: who lives is never told by a process number that may mean another by now.
- ``server.json`` says where the server is, and its token: readable by the owner alone. It is written by the holder of
  ``keeper.lock``, once the server answers, and without that lock it means nothing.
- ``lock`` is held by whoever looks for the server or starts it, and by the keeper when it decides to stop.
- ``lease`` is touched by those who use the server.
- ``log`` is what Spark had to say.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dalsegno.errors import PlatformError
from dalsegno.file_locks import is_held
from dalsegno.hints import Verb, action
from dalsegno.private_files import OWN_FOLDER, make_private_folder
from dalsegno.spark.cache import locked
from dalsegno.spark.jars import POSTGRES_JDBC, SQLITE_JDBC, bundles
from dalsegno.spark.session import defaults, installed_spark, runtime, spark_environment

LOCK, KEEPER_LOCK, STATE, LEASE, LOG = "lock", "keeper.lock", "server.json", "lease", "log"

#: A keeper that found another one in its place ends with this code.
TAKEN = 3
#: Ten seconds are usual; a busy machine may need many times that.
_START_SECONDS = 300.0
_STOP_SECONDS = 30.0
_PACKAGES = "spark.jars.packages"

Say = Callable[[str], None]


def unsaid(_: str) -> None:
    pass


@dataclass(frozen=True)
class Server:
    """One that runs."""

    port: int
    #: Whoever has it may do everything that the owner may.
    token: str
    #: The process that looks after it.
    keeper: int
    #: The Java process.
    java: int
    #: ISO 8601.
    started_at: str

    @property
    def address(self) -> str:
        """For ``SPARK_REMOTE``. Clients send a token over a connection without TLS to ``localhost`` only."""
        # A session belongs to a user; by default that is whatever the client's environment says.
        return f"sc://localhost:{self.port}/;user_id=dalsegno;token={self.token}"


class LocalServer:
    """The server of one configuration, whether it runs or not."""

    def __init__(
        self,
        root: Path,
        *,
        conf: Mapping[str, str],
        memory: str,
        idle_minutes: float,
        environment: Mapping[str, str] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        self._root = root
        self._conf = dict(conf)
        self._memory = memory
        self._idle_seconds = idle_minutes * 60
        #: What the server sees, and with it whoever executes SQL there.
        self._environment = os.environ if environment is None else environment
        #: Variables among them with which object stores are reached. Java reads them once: others need another server.
        self._credentials = dict(credentials or {})
        self.folder = servers_folder(root) / self._fingerprint()

    def running(self) -> Server | None:
        return running_in(self.folder)

    def ensure(self, say: Say = unsaid) -> Server:
        """The server, which is started unless it runs, and stays for as long as it is used."""
        make_private_folder(self.folder)
        waiting = partial(say, "Another process is starting Spark; waiting for it.")
        with locked(self.folder / LOCK, on_wait=waiting):
            self.use()
            if server := self.running():
                return server
            # Somebody may have been killed after they began what we are about to do.
            if not is_held(self.folder / KEEPER_LOCK):
                (self.folder / STATE).unlink(missing_ok=True)
                say("Starting Spark, which takes about ten seconds; it stays for the next steps.")
                self._start_keeper()
            return self._answering()

    def use(self) -> None:
        """Say that the server is still needed."""
        (self.folder / LEASE).touch(mode=0o600)

    def _fingerprint(self) -> str:
        parts = [self._conf, self._memory, installed_spark(), sys.executable, self._credentials]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]

    def _start_keeper(self) -> None:
        conf = dict(self._conf)
        java, jars = runtime([*catalog_packages(conf), *taken_packages(conf)])
        order = {
            "conf": defaults(jars, os.cpu_count() or 2)
            | {"spark.master": "local[*]", "spark.app.name": "dalsegno", "spark.driver.memory": self._memory}
            | conf,
            "idle_seconds": self._idle_seconds,
        }
        # The order holds passwords: arguments could be read by others.
        command = [sys.executable, "-m", "dalsegno.spark.keeper", str(self.folder)]
        started = subprocess.run(
            command,
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            cwd=self._root,
            env=_without_spark(self._environment) | spark_environment(java),
        )
        if started.returncode not in (0, TAKEN):
            last_line = started.stderr.strip().rpartition("\n")[2]
            raise PlatformError(f"The keeper of the local Spark did not start: {last_line}")

    def _answering(self) -> Server:
        """Wait for the server that is being started."""
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if server := self.running():
                return server
            if not is_held(self.folder / KEEPER_LOCK):
                raise PlatformError(
                    f"The local Spark ended before it answered: {_last_words(self.folder / LOG)}",
                    hint=f"Details: {self.folder / LOG}",
                )
            time.sleep(0.05)
        raise PlatformError(
            f"The local Spark did not answer within {_START_SECONDS:.0f} s.",
            hint=f"See {self.folder / LOG}.",
            actions=[action("Then stop it", Verb.STOP_SPARK)],
        )


def servers_folder(root: Path) -> Path:
    return root / OWN_FOLDER / "spark"


def running_servers(root: Path) -> Iterator[tuple[Path, Server]]:
    """Every server of these settings and of earlier ones, with its folder."""
    for state in sorted(servers_folder(root).glob(f"*/{STATE}")):
        if server := running_in(state.parent):
            yield state.parent, server


def running_in(folder: Path) -> Server | None:
    if not is_held(folder / KEEPER_LOCK):
        return None
    try:
        return Server(**json.loads((folder / STATE).read_bytes()))
    except FileNotFoundError:
        return None


def java_of(folder: Path) -> int | None:
    """The Java process of the server that runs, or ran last, in this folder."""
    try:
        return Server(**json.loads((folder / STATE).read_bytes())).java
    except (FileNotFoundError, ValueError, TypeError):
        return None


def stop(folder: Path) -> bool:
    """End the server in this folder, and whatever it is doing; returns when it is gone, and whether there was one."""
    server = running_in(folder)
    if server is None:
        return False
    os.kill(server.keeper, signal.SIGTERM)
    if not _let_go(folder):
        # Java goes when its keeper does, unless it hangs as well.
        for process in (server.java, server.keeper):
            os.kill(process, signal.SIGKILL)
        _let_go(folder)
    return True


def _let_go(folder: Path) -> bool:
    until = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < until:
        if not is_held(folder / KEEPER_LOCK):
            return True
        time.sleep(0.02)
    return False


def taken_packages(conf: dict[str, str]) -> list[str]:
    """The jars that the configuration names. We fetch and check them, so Spark is not told of them."""
    return [name.strip() for name in conf.pop(_PACKAGES, "").split(",") if name.strip()]


def catalog_packages(conf: Mapping[str, str]) -> list[str]:
    """The drivers for the databases that catalogs are in, and the bundles for the stores that their files are in."""
    is_postgres = any(value.startswith("jdbc:postgresql:") for value in conf.values())
    return [SQLITE_JDBC, *[POSTGRES_JDBC] * is_postgres, *bundles(conf)]


def _without_spark(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what makes PySpark connect to another Spark, or start one of another version; and without our own."""
    unwanted = ("SPARK_", "PYSPARK_", "DALSEGNO_")
    return {name: value for name, value in environment.items() if not name.startswith(unwanted)}


def _last_words(log: Path) -> str:
    """Java's own complaint, which comes before that of Python about Java."""
    text = log.read_text(errors="replace") if log.exists() else ""
    if complaint := re.search(r"[\w.$]+(?:Exception|Error): .+", text):
        return complaint[0]
    return text.strip().rpartition("\n")[2] or "it said nothing"
