"""Servers that share a store: one is told to end, is killed, or its machine is gone; the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from dalsegno.model.runs import RunStatus
from dalsegno.store import run_tables
from tests.engine.support import SUCCEEDED, Place, shell, step
from tests.steps.job_server import job_server


class Servers:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path | None = None, machine: str = "here") -> subprocess.Popen[bytes]:
        folder = folder or self.place.folder
        environment = {
            **os.environ,
            "DALSEGNO_STORE": self.place.operations.settings.store,
            "DALSEGNO_MACHINE": machine,
            "DALSEGNO_HTTP_ALLOW": "127.0.0.1",
        }
        command = [sys.executable, "-c", "from dalsegno.cli import main; main()", "server", "--roles", "workers"]
        with (folder / "server.log").open("ab") as log:
            server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        self.started.append(server)
        return server

    def stop(self) -> None:
        for server in self.started:
            server.kill()
            server.wait()

    def running(self) -> dict[int, str]:
        """Who works, by process."""
        nodes = run_tables.nodes
        with self.place.operations.store.database.reading() as connection:
            return {process: node for process, node in connection.execute(select(nodes.c.process, nodes.c.id))}

    def owner(self) -> str | None:
        """Who has the step that goes on."""
        steps = run_tables.steps
        with self.place.operations.store.database.reading() as connection:
            return connection.execute(select(steps.c.lease_owner).where(steps.c.lease_owner.is_not(None))).scalar()


@pytest.fixture
def servers(either_place: Place) -> Iterator[Servers]:
    made = Servers(either_place)
    yield made
    made.stop()


@pytest.fixture
def machines(postgres_place: Place) -> Iterator[Servers]:
    made = Servers(postgres_place)
    yield made
    made.stop()


def wait_until(condition: Callable[[], Any], seconds: float) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.02)
    return time.monotonic() - began


def patient(place: Place) -> None:
    """A job that waits for a file, and says where it begins and that it goes on."""
    script = "echo begun >> out; until test -e go; do date +%s.%N > going; sleep 0.1; done; echo ended >> out"
    place.push("w", shell("a", script, retry_policy={"platform_retry_limit": 5}))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["told to end", "killed"])
def test_another_of_the_same_machine_takes_up_the_job(servers: Servers, how: signal.Signals) -> None:
    place = servers.place
    patient(place)
    pair = [servers.start(), servers.start()]
    wait_until(lambda: len(servers.running()) == 2, 30)
    run = place.start("w")
    wait_until(lambda: place.lines() == ["begun"] and servers.owner(), 30)
    names, first = servers.running(), servers.owner()
    chosen = next(server for server in pair if names[server.pid] == first)

    chosen.send_signal(how)
    took = wait_until(lambda: servers.owner() not in (first, None), 20)
    assert took < 5, took
    assert chosen.wait(30) == (0 if how is signal.SIGTERM else -how)
    wait_until(lambda: chosen.pid not in servers.running(), 10)

    (place.folder / "go").touch()
    wait_until(lambda: place.operations.runs.get(run.id).status is SUCCEEDED, 30)
    assert place.lines() == ["begun", "ended"]
    assert place.steps(run)["a"].attempt == 1


@pytest.mark.postgres
def test_another_machine_starts_the_job_when_it_has_ended(machines: Servers, tmp_path_factory: Any) -> None:
    servers, place = machines, machines.place
    patient(place)
    here = servers.start()
    wait_until(servers.running, 30)
    run = place.start("w")
    wait_until(lambda: place.lines() == ["begun"], 30)
    there = tmp_path_factory.mktemp("there")
    (there / "go").touch()
    servers.start(there, "there")
    wait_until(lambda: len(servers.running()) == 2, 30)

    here.kill()
    killed_at = time.time()
    wait_until(lambda: place.operations.runs.get(run.id).status is SUCCEEDED, 40)
    taken_at = (there / "out").stat().st_mtime
    assert taken_at - killed_at < 30
    # The first was over before the second began.
    assert float((place.folder / "going").read_text()) < taken_at
    assert killed_at + 5 < float((place.folder / "going").read_text()) < killed_at + 12
    assert place.lines() == ["begun"]
    assert (there / "out").read_text().split() == ["begun", "ended"]


def mapping(**values: Any) -> dict[str, Any]:
    return {"type": "MAP", "value": values}


@pytest.mark.postgres
@pytest.mark.parametrize("is_stopped", [False, True], ids=["to its end", "to stop it"])
def test_another_machine_goes_on_with_a_job_at_a_server(
    machines: Servers, tmp_path_factory: Any, *, is_stopped: bool
) -> None:
    servers, place = machines, machines.place
    with job_server() as remote:
        poll = mapping(every={"type": "DOUBLE", "value": 0.1}, cancel=mapping())
        texts = {
            name: {"type": "STRING", "value": text} for name, text in {"url": remote.url(), "method": "POST"}.items()
        }
        place.push("w", step("a", "Http", params={"http": mapping(**texts, poll=poll)}))
        here = servers.start()
        wait_until(servers.running, 30)
        run = place.start("w")
        wait_until(lambda: remote.count("GET") > 1, 30)
        servers.start(tmp_path_factory.mktemp("there"), "there")
        wait_until(lambda: len(servers.running()) == 2, 30)

        here.kill()
        here.wait()
        looks = remote.count("GET")
        if is_stopped:
            place.operations.runs.stop(run.id)
            wait_until(lambda: place.operations.runs.get(run.id).status is RunStatus.STOPPED, 40)
            assert remote.asked[-1][:2] == ("DELETE", "/jobs/1")
        else:
            wait_until(lambda: remote.count("GET") > looks + 2, 40)
            remote.is_done = True
            wait_until(lambda: place.operations.runs.get(run.id).status is SUCCEEDED, 30)
        assert remote.count("POST") == 1
    assert place.steps(run)["a"].attempt == 1
