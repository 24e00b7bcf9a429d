"""A REST catalog that vends credentials, and an S3 server that accepts no others: proxies before the real ones.

As the catalogs do that teams run, credentials hold for the folder of one table, and for a short time.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.lakes.object_stores import ObjectStore
from tests.services.ports import LOOPBACK

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
Answer = tuple[int, list[tuple[str, str]], bytes]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers.items() if key.lower() == name), "")


@dataclass(frozen=True)
class Grant:
    #: The bucket and the folder, with slashes around them.
    folder: str
    expires_at: float


@dataclass
class Vending:
    """What the two proxies share."""

    catalog: str
    store: ObjectStore
    #: How long credentials hold.
    seconds: float = 60.0
    #: Whether they come as `storage-credentials` or, as older servers do, in a table's `config`.
    by_prefix: bool = False
    uri: str = ""
    endpoint: str = ""
    grants: dict[str, Grant] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answer_of_catalog(self, request: Request) -> Answer:
        status, headers, body = forward(self.catalog, request)
        if "vended-credentials" not in request.header("x-iceberg-access-delegation") or status != 200 or not body:
            return status, headers, body
        said = json.loads(body)
        if not isinstance(said.get("metadata"), dict) or "schemas" not in said["metadata"]:
            return status, headers, body
        return status, headers, json.dumps(said | self._vended(said)).encode()

    def _vended(self, said: dict[str, Any]) -> dict[str, Any]:
        key, location = f"VENDED{next(self._numbers)}", str(said["metadata"]["location"])
        expires_at = time.time() + self.seconds
        self.grants[key] = Grant(f"/{location.partition('://')[2].strip('/')}/", expires_at)
        config = {
            "s3.endpoint": self.endpoint,
            "s3.path-style-access": "true",
            "s3.region": self.store.region,
            "client.region": self.store.region,
        }
        secret = {
            "s3.access-key-id": key,
            "s3.secret-access-key": "vended-secret",
            "s3.session-token": f"token-of-{key}",
            "s3.session-token-expires-at-ms": str(round(expires_at * 1000)),
        }
        config |= said.get("config", {})
        if self.by_prefix:
            return {"config": config, "storage-credentials": [{"prefix": location, "config": secret}]}
        return {"config": config | secret}

    def answer_of_store(self, request: Request) -> Answer:
        found = re.search(r"Credential=([^/]+)/", request.header("authorization"))
        grant = self.grants.get(found[1]) if found else None
        code = "AccessDenied"
        if grant is not None and grant.expires_at < time.time():
            code, grant = "ExpiredToken", None
        if grant is None or not all(f"{path}/".startswith(grant.folder) for path in touched(request)):
            self.refused.append(f"{code} {request.method} {request.path}")
            return 403, [], f"<Error><Code>{code}</Code><Message>refused</Message></Error>".encode()
        return forward(self.store.endpoint, request)


def touched(request: Request) -> list[str]:
    """What a request to S3 reads, writes, lists or deletes, with its bucket."""
    address = urlsplit(request.path)
    query = parse_qs(address.query, keep_blank_values=True)
    path = unquote(address.path).rstrip("/")
    if "list-type" in query:
        return [f"{path}/{query.get('prefix', [''])[0]}".rstrip("/")]
    if "delete" in query:
        return [f"{path}/{key}" for key in re.findall(r"<Key>([^<]+)</Key>", request.body.decode())]
    copied = unquote(request.header("x-amz-copy-source"))
    return [path, *([f"/{copied.strip('/')}"] if copied else [])]


def forward(upstream: str, request: Request) -> Answer:
    address = urlsplit(upstream)
    connection = http.client.HTTPConnection(address.hostname or LOOPBACK, address.port, timeout=60)
    try:
        connection.request(request.method, request.path, request.body or None, request.headers)
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
    finally:
        connection.close()


@contextmanager
def running_vending(catalog: str, store: ObjectStore) -> Iterator[Vending]:
    vending = Vending(catalog, store)
    with serving(vending.answer_of_store) as vending.endpoint, serving(vending.answer_of_catalog) as vending.uri:
        yield vending


@contextmanager
def serving(answer: Callable[[Request], Answer | None]) -> Iterator[str]:
    """A server that answers so; None: the connection breaks."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            said = answer(Request(self.command, self.path, headers, body))
            if said is None:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, sent, content = said
            self.send_response(status)
            length = len(content)
            for name, value in sent:
                if name.lower() == "content-length" and self.command == "HEAD":
                    length = int(value)
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
