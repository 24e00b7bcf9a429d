"""dalsegno server, as people start it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from dalsegno.clock import utc_now
from dalsegno.operations.tokens import first_token
from dalsegno.store import Store
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

    def __init__(self, folder: Path, *options: str, prefix: tuple[str, ...] = ()) -> None:
        command = [*prefix, sys.executable, "-c", "from dalsegno.cli import main; main()", "server", *options]
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
    file = Path(server.line(r"token is in (\S+), for you alone")[1])
    assert (file, stat.S_IMODE(file.stat().st_mode)) == (run.folder / ".dalsegno" / "first-token", 0o600)
    token = file.read_text().strip()
    address = server.line(r"listens on (http://[\w.:]+)")[1]
    server.line("works on .*: api, triggers, workers")
    started = ask(address, "/api/workflows/hello/runs", token, b"{}")
    line = json.loads(server.line('.*"message": "run is FAILED.*')[0])
    assert (line["level"], line["run"], line["logger"]) == ("error", "hello/1", "dalsegno.engine.ledger")
    step = json.loads(server.line('.*"message": "step is FATALLY_FAILED.*')[0])
    assert (step["level"], step["run"], step["step"], step["attempt"]) == ("error", "hello/1", "greet", 1)
    assert ask(address, f"/api/runs/{started['id']}", token)["run"]["status"] == "FAILED"
    assert resident_megabytes(server.process.pid) < IDLE_MEMORY

    new = run("server", "token").out.strip()
    assert new.startswith("dalsegno_")
    assert ask(address, "/api/runs", new)["runs"][0]["id"] == started["id"]
    assert server.end() == 0
    assert token not in "".join(server.lines)
    assert "plain HTTP" not in "".join(server.lines)
    assert all(json.loads(line)["time"] for line in server.lines)


#: A library that prints, warns and raises in every way there is, in a server that has begun.
NOISY = """\
import gc, logging, os, subprocess, sys, threading, warnings
from dalsegno.cli import main
from dalsegno.operations.service import Service

class Noisy:
    def __del__(self):
        raise ValueError("in a finalizer")

def noise(service):
    print("by print\\nin two lines")
    print("to stderr", file=sys.stderr)
    os.write(2, b"by native code \\xff\\n")
    subprocess.run(["sh", "-c", "echo by a process >&2"])
    warnings.warn("by warnings\\nin two lines")
    logging.getLogger("grpc").error("by logging\\nin two lines")
    logging.getLogger("uvicorn.error").error("by uvicorn")
    logging.getLogger("broken").error("%d", "no number")
    try:
        raise ValueError("with a trace")
    except ValueError:
        logging.getLogger("pyspark").exception("by pyspark")
    thread = threading.Thread(target=lambda: [][0], name="careless")
    thread.start()
    thread.join()
    Noisy()
    gc.collect()
    HOW

Service.run = noise
main()
"""


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [
        ("pass", 0, None),
        ("raise ValueError('at the end')", 1, "the server ended by an exception: at the end"),
        ("from dalsegno.errors import UserError; raise UserError('no', hint='try')", 2, "UserError: no → try"),
    ],
)
def test_every_line_is_a_record(run: Commands, how: str, code: int, last: str | None) -> None:
    command = [sys.executable, "-c", NOISY.replace("HOW", how), "server", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, cwd=run.folder, capture_output=True, timeout=60, check=False)
    records = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, done.stdout) == (code, b"")
    by_logger: dict[str, list[str]] = {}
    for record in records:
        by_logger.setdefault(record["logger"], []).append(record["message"])
    for line in ("by print", "in two lines", "to stderr", "by native code \\xff", "by a process"):
        assert line in by_logger["printed"]
    assert by_logger["grpc"] == ["by logging\nin two lines"]
    assert by_logger["uvicorn.error"][0] == "by uvicorn"
    assert "by warnings\nin two lines" in by_logger["py.warnings"][0]
    traces = {record["message"]: record["exception"] for record in records if "exception" in record}
    assert "ValueError: with a trace" in traces["by pyspark"]
    assert "IndexError" in traces["thread careless ended by an exception: list index out of range"]
    assert any("in a finalizer" in trace for trace in traces.values())
    assert last is None or last in [record["message"] for record in records]


def test_a_second_one_prints_no_token(server: Server, run: Commands) -> None:
    server.line("listens on")
    server.end()
    second = Server(run.folder, "--listen", "127.0.0.1:0", "--roles", "api")
    second.line("listens on")
    assert second.end() == 0
    assert "token" not in "".join(second.lines)


def test_a_token_that_cannot_be_written_is_none(run: Commands) -> None:
    """And so the next start makes one."""
    (run.folder / ".dalsegno").mkdir()
    (run.folder / ".dalsegno" / "first-token").mkdir()
    failed = Server(run.folder, "--listen", "127.0.0.1:0", "--roles", "api")
    failed.line("PlatformError: The first token cannot be written to .*first-token: Is a directory.")
    failed.line("dalsegno server token")
    assert failed.process.wait(timeout=20) == 4
    failed.end()
    left = [each.name for each in (run.folder / ".dalsegno").iterdir() if each.name.startswith("first-token")]
    assert left == ["first-token"], "no copy lies about"
    with Store.open(f"sqlite:///{run.folder}/.dalsegno/dalsegno.db") as store:
        assert first_token(store, by="ada", now=utc_now()) is not None


def test_a_terminal_shows_the_token(run: Commands) -> None:
    shown = on_terminal(run.folder, "server", "--listen", "0.0.0.0:0", "--roles", "api", until="works on")
    assert re.search(r"Its token, which is shown this once: dalsegno_[\w-]{43}\r\n", shown)
    assert not (run.folder / ".dalsegno" / "first-token").exists()
    assert "is plain HTTP that other machines can reach" in shown


def test_probes_have_a_listener_of_their_own(run: Commands) -> None:
    """On a node that answers nothing else, too."""
    node = Server(run.folder, "--roles", "workers", "--probes", "127.0.0.1:0")
    address = node.line(r"answers probes on (http://[\w.:]+)")[1]
    node.line("works on .*: workers")
    assert ask(address, "/health", "") == {"status": "alive"}
    assert ask(address, "/ready", "") == {"is_ready": True, "problems": []}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(address, "/metrics", "")
    assert node.end() == 0


def test_connections_leave_descriptors_for_runs(run: Commands) -> None:
    (run.folder / "hello.yaml").write_text(WORKFLOW.replace("exit 3", "exit 0"))
    assert run("push", "hello.yaml").code == 0
    few = ("bash", "-c", 'ulimit -n 256 && exec "$@"', "bash")
    server = Server(run.folder, "--listen", "127.0.0.1:0", prefix=few)
    address = server.line(r"listens on (http://[\w.:]+)")[1]
    token = (run.folder / ".dalsegno" / "first-token").read_text().strip()
    host, _, port = address.removeprefix("http://").rpartition(":")
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=20)).sendall(b"GET /")
        for _ in range(3):
            started = ask(address, "/api/workflows/hello/runs", token, b"{}")
            server.line(f'"run is SUCCEEDED.*"run": "hello/{started["number"]}"')
        assert ask(address, "/health", "") == {"status": "alive"}
    assert server.end() == 0
    assert len(server.lines) < 60, server.lines[:60]


# What a terminal gets to see.

HOSTILE = r"\033]0;title\007 \033[2K\302\233 \t\377 ok\r\n"


def test_a_terminal_gets_no_escape_sequences(run: Commands) -> None:
    script = f"printf '{HOSTILE}'; printf '{HOSTILE}' >&2; exit 1"
    step = {"id": "greet", "type": "Shell", "shell": {"script": script}, "retry_policy": {"error_retry_limit": 0}}
    text = json.dumps({"Workflow": {"id": "hello", "jobs": [{"job": step}]}})
    (run.folder / "hello.json").write_text(text)
    shown = on_terminal(run.folder, "run", "hello.json")
    assert "exit code 1" in shown
    shown += (log := on_terminal(run.folder, "logs", "hello", "greet"))
    # We draw over the tree, and colour words; nothing of the job's own gets through.
    own = re.sub(r"\x1b\[(J|\d{1,2}m)", "", shown)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[\d+F)|\r(?!\n)", own)
    assert log.startswith("\\u001b]0;title\\u0007 \\u001b[2K\\u009b \t\\xff ok\r\n")
    raw = on_terminal(run.folder, "logs", "hello", "greet", "--raw")
    assert raw.startswith("\x1b]0;title\x07 \x1b[2K\x9b \t")


def test_a_pipe_gets_every_byte(run: Commands) -> None:
    (run.folder / "hello.yaml").write_text(WORKFLOW.replace("exit 3", f"\"printf '{HOSTILE}'\"".replace("\\", "\\\\")))
    assert run("run", "hello.yaml").code == 0
    command = [sys.executable, "-c", "from dalsegno.cli import main; main()", "logs", "hello", "greet"]
    done = subprocess.run(command, cwd=run.folder, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"\x1b]0;title\x07 \x1b[2K\xc2\x9b \t\xff ok\r\n"


def on_terminal(folder: Path, *arguments: str, until: str | None = None) -> str:
    """What a command shows on a terminal, until it ends, or is ended because it has shown something."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from dalsegno.cli import main; main()", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
            if until is not None and until in found.decode(errors="replace"):
                process.terminate()
                until = None
    except OSError:
        # So Linux says that nobody is left on the other side.
        pass
    finally:
        os.close(ours)
        process.wait(timeout=40)
    return found.decode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--roles", "api,cook"], "--roles is 'api,cook', expected some of api, triggers, workers."),
        (["--listen", "here"], "listen is 'here', expected HOST:PORT."),
        (["--probes", "8485"], "probes is '8485', expected HOST:PORT."),
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
        "UserError: copy.db exists already.\n  → Name another file, or remove this one.\n",
    )


def resident_megabytes(process: int) -> float:
    [line] = [each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
