"""The local Spark Connect server: one, found by all, gone when it must be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.failures import explained
from dalsegno.spark.properties import as_properties
from dalsegno.spark.server import LocalServer, Server, running_servers, stop
from tests.conftest import uncaptured

ENSURE = """
import sys
from pathlib import Path
from dalsegno.spark.server import LocalServer
server = LocalServer(Path(sys.argv[1]), conf={}, memory="512m", idle_minutes=10).ensure()
print(server.keeper, server.java)
"""


def server_in(root: Path, *, idle_minutes: float = 10, conf: dict[str, str] | None = None) -> LocalServer:
    return LocalServer(root, conf=conf or {}, memory="512m", idle_minutes=idle_minutes)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for folder, _ in list(running_servers(tmp_path)):
        stop(folder)


def lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def answer(server: Server) -> int:
    session = Session(server.address, session_id_for("test"))
    table = session.execute("SELECT 6 * 7 AS answer", 1)
    session.release()
    return int(table["answer"][0].as_py())


@pytest.mark.spark
def test_several_processes_find_one_server(root: Path, pytestconfig: pytest.Config) -> None:
    with uncaptured(pytestconfig):
        starters = [
            subprocess.Popen([sys.executable, "-c", ENSURE, str(root)], stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        said = {starter.communicate()[0] for starter in starters}
    [processes] = said
    keeper, java = map(int, processes.split())
    # Those who started it are gone.
    server = server_in(root).running()
    assert server is not None
    assert (server.keeper, server.java) == (keeper, java)
    assert answer(server) == 42

    # Nobody without the token, and nobody on the network.
    for address in (server.address.replace(server.token, "wrong"), f"sc://localhost:{server.port}"):
        session = Session(address, session_id_for("test"))
        with pytest.raises(Exception, match="authentication token") as refusal:
            session.execute("SELECT 1", 1)
        assert "cannot be used: UNAUTHENTICATED" in explained(refusal.value).message
        session.disconnect()
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match=r"refused|unreachable|assign"):
        other.connect(("::1", server.port))
    arguments = Path(f"/proc/{java}/cmdline").read_text()
    assert server.token not in arguments
    assert (server_in(root).folder / "server.json").stat().st_mode & 0o077 == 0

    assert stop(server_in(root).folder)
    assert not lives(keeper)
    assert not lives(java)
    assert not stop(server_in(root).folder)


@pytest.mark.spark
def test_what_is_killed_leaves_nothing_behind_and_idling_ends_it(root: Path) -> None:
    local = server_in(root, idle_minutes=5 / 60)
    first = local.ensure()
    os.kill(first.keeper, signal.SIGKILL)
    until(lambda: not lives(first.java))
    # Its state is still there, and means nothing.
    assert (local.folder / "server.json").exists()
    assert local.running() is None

    second = local.ensure()
    assert second.keeper != first.keeper
    assert answer(second) == 42
    # Used all the time: it stays beyond the five seconds.
    end = time.monotonic() + 7
    while time.monotonic() < end:
        local.use()
        time.sleep(0.2)
    assert local.running() == second
    until(lambda: local.running() is None)
    until(lambda: not lives(second.keeper) and not lives(second.java))
    assert not (local.folder / "server.json").exists()


@pytest.mark.spark
def test_a_server_that_does_not_start_says_why(root: Path) -> None:
    local = server_in(root, conf={"spark.master": "nonsense"})
    with pytest.raises(Exception, match="SparkException: Master must either be"):
        local.ensure()
    assert local.running() is None


def test_another_configuration_is_another_server(tmp_path: Path) -> None:
    folder = server_in(tmp_path).folder
    assert server_in(tmp_path).folder == folder
    assert server_in(tmp_path, idle_minutes=1).folder == folder
    assert server_in(tmp_path, conf={"spark.sql.ansi.enabled": "false"}).folder != folder
    assert LocalServer(tmp_path, conf={}, memory="2g", idle_minutes=10).folder != folder


def test_properties_are_escaped_for_java() -> None:
    assert as_properties({"a.b": "x y=\\z\n"}) == "a\\u002eb=x\\u0020y\\u003d\\u005cz\\u000a\n"
    assert as_properties({"k": "\U0001f600"}) == "k=\\ud83d\\ude00\n"
