"""Connections that send nothing, little, too much, or something else than HTTP: others are answered all the same."""

from __future__ import annotations

import json
import logging
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from dalsegno.server import connections
from dalsegno.server.connections import Connections
from dalsegno.server.listening import answering_probes, listening
from dalsegno.server.log_limits import RateLimit
from dalsegno.server.peers import peer_of
from tests.engine.support import noop
from tests.server.conftest import Client

#: How long an answer may take that is given at once, on a machine that is busy.
AT_ONCE = 6.0


class Peer:
    """One connection, and the bytes that go over it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def rest(self) -> bytes:
        """Everything until the server ends the connection."""
        found = b""
        try:
            while part := self.socket.recv(65536):
                found += part
        except ConnectionResetError:
            pass
        return found

    def ask(self, request: bytes) -> bytes:
        self.send(request)
        return self.rest()


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(client: Client, peers: ExitStack, address: str | None = None) -> Peer:
    peer = Peer(address or client.address)
    peers.callback(peer.socket.close)
    return peer


def waiting(client: Client, peers: ExitStack, sent: bytes) -> Peer:
    peer = opened(client, peers)
    peer.send(sent)
    return peer


@contextmanager
def at_once() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < AT_ONCE


def authorized(client: Client, head: bytes, body: bytes = b"") -> bytes:
    """A request with a token; head without the last empty line."""
    return head + f"\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n".encode() + body


def limited(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next server have fewer connections."""
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.3)
    monkeypatch.setattr("dalsegno.server.listening.connection_limit", lambda: most)


#: The server asks for the body as soon as it waits for it.
WAITING_FOR_BODY = b"POST /api/workflows/w/runs HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue"

# Many.


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /api/runs HTTP/1.1\r\nHost: x\r\n", b"POST /api/workflows/w/runs HTTP/1.1\r\nHost: x\r\n"],
    ids=["nothing", "half a head", "another half"],
)
def test_many_that_wait(client: Client, peers: ExitStack, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    limited(64, monkeypatch)
    with listening(client.service, "127.0.0.1:0") as client.address:
        first, *_ = [waiting(client, peers, sent) for _ in range(300)]
        with at_once():
            assert first.rest() == b"", "it made room"
            assert client("GET", "/health") == (200, {"status": "alive"})
            assert client("GET", "/ready")[0] == 200
            assert client("GET", "/api/runs") == (200, {"runs": []})


def test_many_bodies_that_do_not_come(client: Client, peers: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(64, monkeypatch)
    with listening(client.service, "127.0.0.1:0") as client.address:
        head = b"POST /api/workflows/w/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
        for _ in range(200):
            opened(client, peers).send(head)
        with at_once():
            assert client("GET", "/health")[0] == 200
            assert client("GET", "/api/runs")[0] == 200


def test_many_that_take_no_answers(client: Client, peers: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has no token can ask for health again and again, and read nothing."""
    limited(8, monkeypatch)
    with listening(client.service, "127.0.0.1:0") as client.address:
        for _ in range(4):
            deaf = opened(client, peers)
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.socket.setblocking(False)
            until = time.monotonic() + AT_ONCE
            # Nothing more can be sent for a while: the server does not read, because nobody takes its answers.
            while select.select([], [deaf.socket], [], 0.3)[1] and time.monotonic() < until:
                with suppress(BlockingIOError):
                    deaf.socket.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        # On a busy machine the server may still be at what they sent; without room, it would be for 30 seconds.
        until = time.monotonic() + 20
        while client("GET", "/health")[0] != 200 and time.monotonic() < until:
            time.sleep(0.1)
        assert client("GET", "/health") == (200, {"status": "alive"})
        assert client("GET", "/api/runs") == (200, {"runs": []})


def test_when_all_are_busy_one_more_is_refused(
    client: Client, peers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have a token, so none has to go; probes have a listener of their own."""
    limited(8, monkeypatch)
    with (
        listening(client.service, "127.0.0.1:0") as client.address,
        answering_probes(client.service, "127.0.0.1:0") as probes,
    ):
        busy = [opened(client, peers) for _ in range(4)]
        for each in busy:
            each.send(authorized(client, WAITING_FOR_BODY))
            assert each.socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        refused = opened(client, peers)
        assert refused.rest().startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        with at_once():
            answer = opened(client, peers, probes).ask(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        # They were not in danger.
        busy[0].send(b"{}")
        assert busy[0].socket.recv(100).startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_whoever_has_most_makes_room() -> None:
    class Waiting:
        """As much of a connection as is counted."""

        def __init__(self, peer: str) -> None:
            self.peer, self.is_counted, self.is_aborted = peer, False, False

        def abort(self) -> None:
            self.is_aborted = True

    limits = Connections(8)

    def admitted(peer: str, *, is_waiting: bool = True) -> Waiting | None:
        made = Waiting(peer)
        if not limits.admit(made):  # type: ignore[arg-type]
            limits.forget(made)  # type: ignore[arg-type]
            return None
        if is_waiting:
            limits.wait(made)  # type: ignore[arg-type]
        return made

    crowd = [admitted("a") for _ in range(3)]
    alone = [admitted(peer) for peer in "bcdef"]
    admitted("g")
    assert [each.is_aborted for each in (*crowd, *alone) if each] == [True] + [False] * 7
    limits = Connections(8)
    assert all(admitted("a", is_waiting=False) for _ in range(4))
    assert admitted("a") is None, "a peer has half of them at most"
    assert all(admitted("b", is_waiting=False) for _ in range(4))
    assert admitted("c") is None


def test_peers() -> None:
    assert peer_of("::ffff:10.0.0.1") == peer_of("10.0.0.1") == "10.0.0.1"
    assert peer_of("2001:db8::1") == peer_of("2001:db8::ffff:2") != peer_of("2001:db8:0:1::1")
    assert (peer_of(None), peer_of("fe80::1%eth0")) == ("", "fe80::/64")


# Slow.


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    import h11

    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.3)
    monkeypatch.setattr(connections, "_DEADLINES", {h11.IDLE: 0.5, h11.SEND_BODY: 0.5})


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("is_body", [False, True])
def test_a_byte_now_and_then_moves_no_deadline(client: Client, peers: ExitStack, is_body: bool) -> None:
    slow = opened(client, peers)
    if is_body:
        slow.send(authorized(client, b"POST /api/workflows/w/runs HTTP/1.1\r\nContent-Length: 1000"))
    slow.socket.settimeout(0.1)
    answer, began = b"", time.monotonic()
    while not answer:
        assert time.monotonic() - began < 5
        slow.send(b"G")
        try:
            answer = slow.socket.recv(1000)
        except TimeoutError:
            continue
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert client("GET", "/health")[0] == 200


@pytest.mark.usefixtures("hurried")
def test_one_that_sends_nothing_is_closed(client: Client, peers: ExitStack) -> None:
    with at_once():
        assert opened(client, peers).rest() == b""
    kept = opened(client, peers)
    kept.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    with at_once():
        assert kept.rest().startswith(b"HTTP/1.1 200 OK\r\n")


def test_one_that_takes_no_answer_is_closed(client: Client, peers: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    client.place.push("w", noop("a"), params={"x": {"type": "STRING", "value": "x" * 400_000}})
    for _ in range(20):
        client.place.start("w")
    deaf = opened(client, peers)
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.send(b"".join(authorized(client, b"GET /api/runs/w/%d HTTP/1.1" % number) for number in range(1, 21)))
    began = time.monotonic()
    while time.monotonic() - began < 15:
        # Reset: it can be written to no more.
        try:
            deaf.send(b"x")
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("it was never closed")


# What is no request, or one of which two readers might see different things.

HEAD = b"Host: x\r\n"
SMUGGLED = {
    "length and chunks": b"POST / HTTP/1.1\r\n"
    + HEAD
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 1\r\ncontent-length: 1\r\n\r\nx",
    "a list of lengths": b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 1, 1\r\n\r\nx",
    "chunks twice": b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "chunks before 1.1": b"POST / HTTP/1.0\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bare LF in the head": b"GET /health HTTP/1.1\r\n" + HEAD + b"A: b\nC: d\r\n\r\n",
    "bare LFs only": b"GET /health HTTP/1.1\nHost: x\n\n",
    "a bare CR": b"GET /health HTTP/1.1\r\n" + HEAD + b"A: b\rC: d\r\n\r\n",
    "a folded header": b"GET /health HTTP/1.1\r\n" + HEAD + b"A: b\r\n c\r\n\r\n",
    "a space before the colon": b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length : 1\r\n\r\nx",
    "an empty line first": b"\r\nGET /health HTTP/1.1\r\n" + HEAD + b"\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


def test_what_is_ambiguous_is_refused(client: Client, peers: ExitStack) -> None:
    for name, request in SMUGGLED.items():
        with at_once():
            answer = opened(client, peers).ask(request + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n"), name
        assert answer.count(b"HTTP/1.1") == 1, name
        assert b"connection: close" in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "UserError"


def test_trailers_are_read_strictly_too(client: Client, peers: ExitStack) -> None:
    head = authorized(client, b"POST /api/workflows/w/runs HTTP/1.1\r\nTransfer-Encoding: chunked")
    fine, hostile = (opened(client, peers) for _ in range(2))
    fine.send(head + b"2\r\n{}\r\n0\r\nX: y\r\n\r\n")
    assert fine.socket.recv(1000).startswith(b"HTTP/1.1 404 Not Found\r\n")
    answer = hostile.ask(head + b"2\r\n{}\r\n0\r\nX: y\n\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (answer[:12], answer.count(b"HTTP/1.1")) == (b"HTTP/1.1 400", 1)


def test_requests_one_after_the_other(client: Client, peers: ExitStack) -> None:
    asked = opened(client, peers)
    asked.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
    answer = asked.ask(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    sneaky = opened(client, peers).ask(
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nA: b\nHost: x\r\n\r\n"
    )
    assert re.findall(rb"HTTP/1.1 (\d+)", sneaky) == [b"200", b"400"]


NEXT = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("has_token", "head", "status"),
    [
        (False, b"POST /api/workflows/w/runs HTTP/1.1\r\nContent-Length: 3000000", b"401"),
        (True, b"POST /api/workflows/w/runs HTTP/1.1\r\nContent-Length: 3000000", b"413"),
        (True, b"PUT /api/runs HTTP/1.1\r\nContent-Length: 3000000", b"405"),
        (False, b"POST /health HTTP/1.1\r\nContent-Length: 3000000", b"405"),
    ],
)
def test_a_body_that_nobody_reads_is_no_request(
    client: Client, peers: ExitStack, has_token: bool, head: bytes, status: bytes
) -> None:
    """It is all sent before the answer is read, as most clients do."""
    if not has_token:
        client.token = "dalsegno_wrong"
    asked = opened(client, peers)
    try:
        asked.send(authorized(client, head))
        for _ in range(85):
            asked.send(NEXT * 1000)
            time.sleep(0.003)
    except ConnectionError:
        pytest.fail("the connection ended before the answer could be read")
    answer = asked.rest()
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


@pytest.mark.usefixtures("hurried")
def test_a_body_without_end(client: Client, peers: ExitStack) -> None:
    asked = opened(client, peers)
    asked.send(b"POST /api/workflows/w/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    began = time.monotonic()
    with pytest.raises(OSError, match=r"reset|Broken pipe"):
        while time.monotonic() - began < 10:
            asked.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
            time.sleep(0.01)


def test_the_end_waits_for_no_body(
    client: Client, peers: ExitStack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.3)
    with listening(client.service, "127.0.0.1:0") as client.address:
        waiting = opened(client, peers)
        waiting.send(authorized(client, WAITING_FOR_BODY))
        assert waiting.socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        began = time.monotonic()
    assert time.monotonic() - began < 4
    assert waiting.rest().startswith(b"HTTP/1.1 503 ")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_client_that_leaves_is_no_error(client: Client, peers: ExitStack, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        gone = opened(client, peers)
        gone.send(authorized(client, b"POST /api/workflows/w/runs HTTP/1.1\r\nContent-Length: 10", b"{"))
        gone.socket.close()
    assert client("GET", "/api/runs")[0] == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# What is said of it.


def test_every_answer_is_neither_guessed_nor_kept(client: Client, peers: ExitStack) -> None:
    for path in ("/health", "/ready", "/metrics", "/api/runs", "/api/nothing", "/api/runs/nothing/1"):
        headers = client.raw("GET", path)[2]
        assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store"), path
    client.token = None
    assert client.raw("GET", "/api/runs")[2]["X-Content-Type-Options"] == "nosniff"
    answer = opened(client, peers).ask(b"nonsense\r\n\r\n")
    assert b"x-content-type-options: nosniff\r\ncache-control: no-store\r\n" in answer


def test_lines_that_were_left_out_are_counted() -> None:
    seconds = 0.0
    limit = RateLimit(lambda: seconds)

    def logged(text: str) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, __file__, 1, text, ("a",), None)
        return record.getMessage() if limit.filter(record) else None

    assert [logged("refused %s") for _ in range(30)] == ["refused a"] * 20 + [None] * 10
    assert logged("failed %s") == "failed a"
    seconds = 61.0
    assert logged("refused %s") == "refused a (and 10 more like this before)"
    assert logged("failed %s") == "failed a"


@pytest.mark.parametrize(
    ("limits", "expected"), [("-Sn 64 && ulimit -Hn 2000", "500"), ("-n 256", "64"), ("-n 30", "16")]
)
def test_a_share_of_the_descriptors(limits: str, expected: str) -> None:
    code = "from dalsegno.server.descriptors import *; raise_descriptor_limit(); print(connection_limit())"
    command = ["bash", "-c", f'ulimit {limits} && exec "$0" -c "{code}"', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_few_lines_for_many_requests(client: Client, peers: ExitStack, caplog: pytest.LogCaptureFixture) -> None:
    client.token = None
    for _ in range(50):
        client.raw("GET", "/api/runs/%1b%5d0;x%07%0a" + "a" * 5000)
        opened(client, peers).ask(b"nonsense\r\n\r\n")
        opened(client, peers).ask(
            b"GET /health HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n"
        )
    assert 20 < len(caplog.records) < 100
    messages = [record.getMessage() for record in caplog.records]
    assert max(map(len, messages)) < 400
    assert any("GET /api/runs/\\u001b]0;x\\u0007\\naaa" in message for message in messages)
    assert not any("\x1b" in message for message in messages)
