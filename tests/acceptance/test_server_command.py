"""dalsegno server, as people start it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.acceptance.conftest import Commands

WORKFLOW = """\
Workflow:
  id: hello
  jobs:
    - job: {id: greet, type: Shell, shell: {script: exit 3}, retry_policy: {error_retry_limit: 0}}
"""
#: Megabytes.
IDLE_MEMORY = 200


class Server:
    """A process, and what it has printed so far."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-c", "from dalsegno.cli import main; main()", "server", *options]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._news = threading.Condition()
        assert self.process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,))
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def line(self, pattern: str) -> re.Match[str]:
        """The first line that has this in it, as soon as it is there."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.lines if (match := re.search(pattern, line))), None)

        with self._news:
            assert self._news.wait_for(lambda: found() is not None, timeout=30), self.lines
        match = found()
        assert match is not None
        return match

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=40)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture
def server(run: Commands) -> Iterator[Server]:
    (run.folder / "hello.yaml").write_text(WORKFLOW)
    assert run("push", "hello.yaml").code == 0
    made = Server(run.folder, "--listen", "127.0.0.1:0", "--log-format", "json")
    yield made
    if made.process.poll() is None:
        made.end()


def ask(address: str, path: str, token: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(f"{address}{path}", body, {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def test_from_its_start_to_its_end(server: Server, run: Commands) -> None:
    token = server.line(r"token, which is shown this once: (\S+)")[1]
    address = server.line(r"listens on (http://\S+)")[1]
    server.line("works on .*: api, triggers, workers")
    started = ask(address, "/api/workflows/hello/runs", token, b"{}")
    line = json.loads(server.line('.*"message": "run is FAILED.*')[0])
    assert (line["level"], line["run"], line["logger"]) == ("info", "hello/1", "dalsegno.engine.ledger")
    step = json.loads(server.line('.*"message": "step is FATALLY_FAILED.*')[0])
    assert (step["run"], step["step"], step["attempt"]) == ("hello/1", "greet", 1)
    assert ask(address, f"/api/runs/{started['id']}", token)["run"]["status"] == "FAILED"
    assert resident_megabytes(server.process.pid) < IDLE_MEMORY

    new = run("server", "token").out.strip()
    assert new.startswith("dalsegno_")
    assert ask(address, "/api/runs", new)["runs"][0]["id"] == started["id"]
    assert server.end() == 0
    assert token not in "".join(line for line in server.lines if "shown this once" not in line)


def test_a_second_one_prints_no_token(server: Server, run: Commands) -> None:
    server.line("listens on")
    server.end()
    second = Server(run.folder, "--listen", "127.0.0.1:0", "--roles", "api")
    second.line("listens on")
    assert second.end() == 0
    assert "token" not in "".join(second.lines)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--roles", "api,cook"], "--roles is 'api,cook', expected some of api, triggers, workers."),
        (["--listen", "here"], "listen is 'here', expected HOST:PORT."),
        (["--log-format", "xml"], "--log-format is 'xml', expected one of text, json."),
    ],
)
def test_mistakes(options: list[str], said: str, run: Commands) -> None:
    done = run("server", *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_backup(run: Commands) -> None:
    (run.folder / "hello.yaml").write_text(WORKFLOW)
    run("push", "hello.yaml")
    assert run.json("backup", "copy.db") == {"file": "copy.db", "bytes": Path("copy.db").stat().st_size}
    again = run("backup", "copy.db")
    assert (again.code, again.err) == (
        2,
        "UserError: copy.db is there already.\n  → Name another file, or remove this one.\n",
    )


def resident_megabytes(process: int) -> float:
    [line] = [each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
