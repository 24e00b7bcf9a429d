"""A server whose jobs go on after the request that began them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class JobServer:
    """``POST /jobs`` begins one, ``GET /jobs/N`` tells of it, ``DELETE /jobs/N`` ends it."""

    port: int = 0
    #: By their idempotency keys: the server begins one job for each.
    jobs: dict[str, int] = field(default_factory=dict)
    #: Statuses of the next answers to looks; then 202 until it is done.
    next_statuses: list[int] = field(default_factory=list)
    is_done: bool = False
    #: Everything that was asked: method, path and headers.
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str = "/jobs") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def count(self, method: str) -> int:
        return sum(each == method for each, *_ in self.asked)

    def answer(self, method: str, path: str, key: str) -> tuple[int, dict[str, str], Any]:
        match method:
            case "POST":
                number = self.jobs.setdefault(key, len(self.jobs) + 1)
                headers = {} if path == "/silent" else {"Location": f"/jobs/{number}"}
                return 202, headers, {"job": {"id": f"a/{number}"}, "all": [{"id": number}]}
            case "DELETE":
                return (self.next_statuses.pop(0) if self.next_statuses else 204), {}, {}
            case _ if self.next_statuses:
                return self.next_statuses.pop(0), {}, {}
            case _:
                return (200 if self.is_done else 202), {}, {"state": "done" if self.is_done else "running"}


@contextmanager
def job_server() -> Iterator[JobServer]:
    state = JobServer()

    class Handler(BaseHTTPRequestHandler):
        def handled(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.asked.append((self.command, self.path, headers))
            status, told, body = state.answer(self.command, self.path, headers.get("idempotency-key", ""))
            content = b"" if status == 204 else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**told, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = handled

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
