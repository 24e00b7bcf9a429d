"""Servers that take what is sent to people, and remember it."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any


@dataclass(frozen=True)
class Posted:
    path: str
    #: By their names in lower case.
    headers: Mapping[str, str]
    body: Any


@dataclass
class HttpReceiver:
    url: str = ""
    #: What it answers, one after the other; the last one from then on.
    answers: list[int] = field(default_factory=lambda: [200])
    posted: list[Posted] = field(default_factory=list)
    _news: Condition = field(default_factory=Condition)

    def take(self, posted: Posted) -> int:
        with self._news:
            self.posted.append(posted)
            self._news.notify_all()
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait_for(self, count: int) -> list[Posted]:
        with self._news:
            assert self._news.wait_for(lambda: len(self.posted) >= count, timeout=20), self.posted
            return list(self.posted)


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(
                Posted(self.path, {key.lower(): text for key, text in self.headers.items()}, json.loads(body))
            )
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        with _served(server):
            yield receiver


@dataclass
class SmtpReceiver:
    port: int = 0
    #: Who it was from, whom it was for, and the letter.
    letters: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list)


@contextmanager
def smtp_receiver() -> Iterator[SmtpReceiver]:
    """As much of SMTP as one letter needs."""
    receiver = SmtpReceiver()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self) -> None:
            sender, to = "", list[str]()
            self.say("220 test")
            while line := self.rfile.readline().decode().strip():
                word = line.split(":")[0].upper().split(" ")[0]
                if word == "MAIL":
                    sender = line.partition("<")[2].partition(">")[0]
                elif word == "RCPT":
                    to.append(line.partition("<")[2].partition(">")[0])
                elif word == "DATA":
                    self.say("354 go on")
                    receiver.letters.append((sender, to, self.letter()))
                self.say("221 bye" if word == "QUIT" else "250 ok")
                if word == "QUIT":
                    return

        def letter(self) -> EmailMessage:
            lines = bytearray()
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines += line
            found = message_from_bytes(bytes(lines), policy=policy.default)
            assert isinstance(found, EmailMessage)
            return found

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        with _served(server):
            yield receiver


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
