"""A proxy in front of an object store, in a process of its own: it counts requests, delays them, and makes some fail.

What it is asked to do comes as JSON to ``/__faults`` and ``/__delay``; ``/__requests`` answers what it has seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.lakes.object_stores import ObjectStore
from tests.lakes.servers import running
from tests.services.ports import LOOPBACK, free_port

_CONTROL = "/__"
_LARGEST_HEAD = 1 << 26
Headers = list[tuple[str, str]]


class Kind(StrEnum):
    """What goes wrong with a request."""

    INTERNAL_ERROR = "500"
    SLOW_DOWN = "503"
    FORBIDDEN = "403"
    #: The store never sees it, and the client never hears of it.
    TIMEOUT = "timeout"
    #: The connection breaks in the middle of the answer.
    TRUNCATED = "truncated"
    #: The store did it; the connection breaks before the answer.
    LOST_ANSWER = "lost"


@dataclass(frozen=True)
class Fault:
    """The next so many requests of a method that match a pattern go wrong."""

    kind: Kind
    method: str = ""
    #: Of the path with its query, without quotes.
    pattern: str = ""
    times: int = 1


@dataclass(frozen=True)
class Request:
    """One that was answered."""

    method: str
    path: str
    status: int
    began: float
    ended: float
    is_copy: bool = False
    fault: str = ""

    def __str__(self) -> str:
        return f"{'COPY' if self.is_copy else self.method} {self.path} {self.status}"


def rounds(requests: Sequence[Request]) -> int:
    """How many of them came one after the other: the longest chain of which each began when the one before ended."""
    found, free_at = 0, 0.0
    for request in sorted(requests, key=lambda each: each.ended):
        if request.began >= free_at:
            found, free_at = found + 1, request.ended
    return found


@dataclass(frozen=True)
class StoreProxy:
    """What a test or a benchmark holds of a running proxy."""

    #: The store as it is seen through the proxy.
    store: ObjectStore

    def taken(self) -> list[Request]:
        """What was asked since this was last called."""
        return [Request(**each) for each in self._control("requests", None)]

    def delay(self, seconds: float) -> None:
        self._control("delay", seconds)

    def fail(self, *faults: Fault) -> None:
        """From now on these faults, and no others."""
        self._control("faults", [asdict(fault) for fault in faults])

    def _control(self, what: str, value: Any) -> Any:
        address = f"{self.store.endpoint}{_CONTROL}{what}"
        with urllib.request.urlopen(address, json.dumps(value).encode(), timeout=60) as answer:
            return json.loads(answer.read())


@contextmanager
def running_store_proxy(store: ObjectStore, folder: Path) -> Iterator[StoreProxy]:
    port = free_port()
    upstream = urlsplit(store.endpoint).port
    command = [sys.executable, "-m", "tests.lakes.store_proxy", str(port), str(upstream)]
    root = str(Path(__file__).parents[2])
    with running(command, port, folder / f"store-proxy-{port}.log", {**os.environ, "PYTHONPATH": root}):
        yield StoreProxy(replace(store, endpoint=f"http://{LOOPBACK}:{port}"))


class _Upstream:
    """A connection to the store, made when it is needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, first: str, headers: Headers, body: bytes) -> tuple[int, bytes, bytes]:
        """The status of the answer, its head and its body, as they were sent."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(LOOPBACK, self._port, limit=_LARGEST_HEAD)
        reader, writer = self._streams
        writer.write(_bytes(first, headers) + body)
        status, sent = await _head(reader)
        code = int(status.split()[1])
        has_no_body = first.startswith("HEAD ") or code in (204, 304)
        content = b"" if has_no_body else await _body(reader, sent)
        if (_value(sent, "connection") or "").lower() == "close":
            self.close()
        return code, _bytes(status, sent), content

    def close(self) -> None:
        if self._streams is not None:
            with suppress(ConnectionError):
                self._streams[1].close()
        self._streams = None


class _Server:
    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._delay = 0.0
        self._faults: list[Fault] = []
        self._seen: list[Request] = []

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        connection = _Upstream(self._upstream)
        try:
            while await self._exchange(client, answer, connection):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            connection.close()
            with suppress(ConnectionError):
                answer.close()

    async def _exchange(
        self, client: asyncio.StreamReader, answer: asyncio.StreamWriter, connection: _Upstream
    ) -> bool:
        """Answer one request; whether the connection is kept."""
        first, headers = await _head(client)
        if _value(headers, "expect"):
            answer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            headers = [(name, value) for name, value in headers if name.lower() != "expect"]
        body = await _body(client, headers)
        method, target, _ = first.split(" ", 2)
        if target.startswith(_CONTROL):
            await self._obey(answer, target, body)
            return True
        began, fault = time.monotonic(), self._next_fault(method, unquote(target))
        if self._delay:
            await asyncio.sleep(self._delay)
        if fault in (Kind.INTERNAL_ERROR, Kind.SLOW_DOWN, Kind.FORBIDDEN):
            self._note(method, target, headers, int(fault), began, fault)
            await _send(answer, int(fault), _xml(fault))
            return True
        if fault is Kind.TIMEOUT:
            self._note(method, target, headers, 0, began, fault)
            await asyncio.sleep(3600)
        status, head, content = await connection.ask(first, headers, body)
        self._note(method, target, headers, status, began, fault)
        if fault is Kind.LOST_ANSWER:
            return False
        answer.write(head + (content[: len(content) // 2] if fault is Kind.TRUNCATED else content))
        await answer.drain()
        return fault is not Kind.TRUNCATED

    async def _obey(self, answer: asyncio.StreamWriter, target: str, body: bytes) -> None:
        value = json.loads(body)
        said: Any = None
        match target.removeprefix(_CONTROL):
            case "delay":
                self._delay = value
            case "faults":
                self._faults = [Fault(**{**each, "kind": Kind(each["kind"])}) for each in value]
            case "requests":
                said, self._seen = [asdict(request) for request in self._seen], []
        await _send(answer, 200, json.dumps(said).encode())

    def _next_fault(self, method: str, target: str) -> Kind | None:
        for number, fault in enumerate(self._faults):
            if fault.method in ("", method) and re.search(fault.pattern, target):
                if fault.times == 1:
                    del self._faults[number]
                else:
                    self._faults[number] = replace(fault, times=fault.times - 1)
                return fault.kind
        return None

    def _note(self, method: str, target: str, headers: Headers, status: int, began: float, fault: Kind | None) -> None:
        is_copy = _value(headers, "x-amz-copy-source") is not None
        self._seen.append(Request(method, unquote(target), status, began, time.monotonic(), is_copy, fault or ""))


async def _head(reader: asyncio.StreamReader) -> tuple[str, Headers]:
    lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:])
    return lines[0], [(name, value.strip()) for name, _, value in pairs]


def _bytes(first: str, headers: Headers) -> bytes:
    return "\r\n".join([first, *(f"{name}:{value}" for name, value in headers)]).encode("latin-1") + b"\r\n\r\n"


async def _body(reader: asyncio.StreamReader, headers: Headers) -> bytes:
    if (_value(headers, "transfer-encoding") or "").lower() != "chunked":
        return await reader.readexactly(int(_value(headers, "content-length") or 0))
    out = b""
    while True:
        line = await reader.readline()
        size = int(line.split(b";")[0], 16)
        out += line + await reader.readexactly(size + 2)
        if size == 0:
            return out


def _value(headers: Headers, name: str) -> str | None:
    return next((value for each, value in headers if each.lower() == name), None)


async def _send(answer: asyncio.StreamWriter, status: int, content: bytes) -> None:
    answer.write(f"HTTP/1.1 {status} -\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
    await answer.drain()


def _xml(kind: Kind) -> bytes:
    code = {"500": "InternalError", "503": "SlowDown", "403": "AccessDenied"}[kind]
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>made to fail</Message></Error>".encode()


async def _main() -> None:
    server = _Server(int(sys.argv[2]))
    listening = await asyncio.start_server(server.serve, LOOPBACK, int(sys.argv[1]), limit=_LARGEST_HEAD)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
