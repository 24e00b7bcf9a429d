"""A proxy in front of a REST catalog that loses answers to commits, or hands commits on late.

Clients see a connection that breaks. What a commit was made for is told by the summary of the snapshot in it.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.services.ports import LOOPBACK

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
_LATE_SECONDS = 1.5


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """Of the snapshots that a commit adds to a table."""
        if self.method != "POST" or "/tables/" not in self.path:
            return []
        with suppress(ValueError):
            updates = json.loads(self.body).get("updates", [])
            return [each["snapshot"].get("summary", {}) for each in updates if each.get("action") == "add-snapshot"]
        return []

    @property
    def is_lookup(self) -> bool:
        """Whether somebody other than Spark asks for a table."""
        agent = " ".join(value for name, value in self.headers.items() if name.lower() == "user-agent")
        return self.method in ("GET", "HEAD") and "/tables/" in self.path and "java" not in agent.lower()

    @property
    def table(self) -> str:
        return urlsplit(self.path).path


@dataclass
class FaultyProxy:
    """``lost``: the commit is made, nobody hears of it. ``late``: it is made a moment after the connection broke.
    ``in front``, ``behind``: just before the next commit to the same table is made, or just after it. ``kept``: when
    nothing goes wrong any more, with ``disarm``."""

    upstream: str
    uri: str = ""
    _kind: str = ""
    _statement: str = ""
    _kept: Request | None = None
    _order: str = ""
    #: What look-ups from outside of Java in the table of the commit are answered with; 0: as they should be.
    _refusal: int = 0
    _refused: str = ""
    has_happened: bool = False
    #: The statuses of commits that were handed on late.
    late: list[int] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, kind: str, statement: int, refusal: int = 0) -> None:
        """The next commit that a statement of this number makes goes wrong."""
        with self._guard:
            self._refusal, self._refused = refusal, ""
            self._kind, self._statement, self._kept, self.has_happened = kind, str(statement), None, False

    def relent(self) -> None:
        """From now on, look-ups are answered."""
        with self._guard:
            self._refusal, self._refused = 0, ""

    def disarm(self) -> None:
        """What has been kept until now is handed on; nothing else goes wrong."""
        with self._guard:
            self._kind, kept, self._kept = "", self._kept, None
        if kept is not None:
            self.forward_late(kept)

    def answer(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """None: the connection breaks."""
        summaries = request.summaries
        with self._guard:
            if self._refused and request.is_lookup and request.table == self._refused:
                said = {"error": {"message": "not now", "type": "Odd", "code": self._refusal}}
                return self._refusal, [("Content-Type", "application/json")], json.dumps(said).encode()
            is_meant = self._kind and any(each.get("dalsegno.statement") == self._statement for each in summaries)
            kind = self._kind if is_meant else ""
            is_next = self._kept is not None and summaries and self._kept.path == request.path
            kept = self._kept if is_next and self._order != "kept" else None
            if kind:
                self._kind, self.has_happened = "", True
                self._refused = request.table if self._refusal else ""
                self._kept = request if kind in ("in front", "behind", "kept") else None
                self._order = kind
            elif kept is not None:
                self._kept = None
        if kind == "lost":
            self.forward(request)
        if kind == "late":
            threading.Timer(_LATE_SECONDS, self.forward_late, (request,)).start()
        if kind:
            return None
        if kept is not None and self._order == "in front":
            self.forward_late(kept)
        answer = self.forward(request)
        if kept is not None and self._order == "behind":
            self.forward_late(kept)
        return answer

    def forward_late(self, request: Request) -> None:
        self.late.append(self.forward(request)[0])

    def forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        address = urlsplit(self.upstream)
        connection = http.client.HTTPConnection(address.hostname or LOOPBACK, address.port, timeout=60)
        try:
            connection.request(request.method, request.path, request.body or None, request.headers)
            response = connection.getresponse()
            body = response.read()
            return response.status, response.getheaders(), body
        finally:
            connection.close()


@contextmanager
def running_proxy(upstream: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            answer = proxy.answer(Request(self.command, self.path, headers, body))
            if answer is None:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, sent, content = answer
            self.send_response(status)
            for name, value in sent:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    proxy.uri = f"http://{LOOPBACK}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
