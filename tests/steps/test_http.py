"""HTTP steps against a real server, and the addresses they do not call."""

from __future__ import annotations

import base64
import ipaddress
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import Failed, FailureKind, Succeeded
from dalsegno.settings import Settings
from dalsegno.steps.contract import Work
from dalsegno.steps.http import job as http_job
from dalsegno.steps.http.runner import HttpRunner
from tests.steps.support import attempt, failure, finished, log_text, outputs

HTTP = HttpRunner()


@dataclass
class Server:
    """Answers as the path says, and remembers what it was asked."""

    port: int
    encrypt: Callable[[ssl.SSLContext], None]
    asked: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture
def server() -> Iterator[Server]:
    def encrypt(context: ssl.SSLContext) -> None:
        http_server.socket = context.wrap_socket(http_server.socket, server_side=True, do_handshake_on_connect=False)

    state = Server(0, encrypt)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            state.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            kind, _, rest = self.path.strip("/").partition("/")
            if kind == "slow":
                time.sleep(3)
            if kind == "loop":
                kind, rest = "302", "/loop"
            status = int(kind) if kind.isdecimal() else 200
            content = b"x" * int(rest) if kind == "long" else json.dumps({"path": self.path}).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", rest)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer

        def log_message(self, *_: Any) -> None:
            pass

    class QuietServer(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that went away."""

    with QuietServer(("127.0.0.1", 0), Handler) as http_server:
        state.port = http_server.server_port
        thread = threading.Thread(target=http_server.serve_forever, args=(0.02,))
        thread.start()
        yield state
        http_server.shutdown()
        thread.join()


def call(root: Path, block: Mapping[str, Any], allow: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> Work:
    return attempt(root, {"http": dict(block)}, settings=Settings(root=root, http_allow=allow), **more)


def test_get(tmp_path: Path, server: Server) -> None:
    work = call(tmp_path, {"url": server.url("/a b?q=1 2")})
    assert outputs(HTTP, work) == {"status_code": 200, "response_body": '{"path": "/a%20b?q=1%202"}'}
    assert "200, 26 bytes" in log_text(work)


def test_post(tmp_path: Path, server: Server) -> None:
    block = {"url": server.url("/in"), "method": "post", "headers": {"X-Token": "hunter2"}, "body": {"a": [1]}}
    work = call(tmp_path, block, secrets=("hunter2",))
    outputs(HTTP, work)
    ((method, path, headers, body),) = server.asked
    assert (method, path, headers["x-token"], body) == ("POST", "/in", "hunter2", '{"a": [1]}')
    assert headers["content-type"] == "application/json"
    for file in work.folder.iterdir():
        assert b"hunter2" not in file.read_bytes()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.USER),
        (404, FailureKind.USER),
        (408, FailureKind.PLATFORM),
        (429, FailureKind.PLATFORM),
        (500, FailureKind.PLATFORM),
        (503, FailureKind.PLATFORM),
    ],
)
def test_whose_fault_a_status_is(tmp_path: Path, server: Server, status: int, kind: FailureKind) -> None:
    failed = failure(HTTP, call(tmp_path, {"url": server.url(f"/{status}")}))
    assert failed.kind is kind
    assert failed.outputs["status_code"] == status
    assert str(status) in failed.message


def test_nobody_answers(tmp_path: Path, server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        failed = failure(HTTP, call(tmp_path, {"url": f"http://127.0.0.1:{taken.getsockname()[1]}/"}))
    assert (failed.kind, "Connection refused" in failed.message) == (FailureKind.PLATFORM, True)
    failed = failure(HTTP, call(tmp_path, {"url": server.url("/slow"), "timeout": 0.5}))
    assert (failed.kind, "within 0.5 s" in failed.message) == (FailureKind.PLATFORM, True)


def test_a_deadline_ends_a_request(tmp_path: Path, server: Server) -> None:
    work = call(tmp_path, {"url": server.url("/slow")}, deadline=utc_now() + timedelta(seconds=0.5))
    assert failure(HTTP, work).kind is FailureKind.TIMEOUT


def test_long_answers(tmp_path: Path, server: Server) -> None:
    longest = http_job.BODY_LIMIT
    assert len(outputs(HTTP, call(tmp_path, {"url": server.url(f"/long/{longest}")}))["response_body"]) == longest
    failed = failure(HTTP, call(tmp_path, {"url": server.url(f"/long/{longest + 1}")}))
    assert "longer than 1,048,576 bytes" in failed.message


def test_redirects(tmp_path: Path, server: Server) -> None:
    secret = {"Authorization": "Bearer hunter2"}
    block = {"url": server.url("/302/../there"), "method": "POST", "body": "x", "headers": secret}
    outputs(HTTP, call(tmp_path, block))
    assert [(method, path, body) for method, path, _, body in server.asked] == [
        ("POST", "/302/../there", "x"),
        ("GET", "/there", ""),
    ]
    assert server.asked[1][2]["authorization"] == "Bearer hunter2"
    server.asked.clear()
    # To another host, what was meant for the first is left out.
    other = server.url("/there", host="localhost")
    outputs(HTTP, call(tmp_path, {**block, "url": server.url(f"/307/{other}")}, allow=("127.0.0.1", "localhost")))
    assert [(method, body) for method, _, _, body in server.asked] == [("POST", "x"), ("POST", "x")]
    assert "authorization" not in server.asked[1][2]


@pytest.mark.parametrize("name", ["X-Api-Key", "X-Auth-Token", "Cookie", "Proxy-Authorization", "X-Vault-Token"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_looks_like_a_secret_stays_with_its_host(tmp_path: Path, server: Server, name: str, status: int) -> None:
    other = server.url("/there", host="localhost")
    block = {"url": server.url(f"/{status}/{other}"), "headers": {name: "x", "Accept": "text/plain"}}
    outputs(HTTP, call(tmp_path, block, allow=("127.0.0.1", "localhost")))
    assert name.lower() in server.asked[0][2]
    assert name.lower() not in server.asked[1][2]
    assert server.asked[1][2]["accept"] == "text/plain"


SECRET = "hunter2+and/more"


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        f"before {SECRET} after",
        quote(SECRET, safe=""),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(f"a:{SECRET}:b".encode()).decode(),
        base64.b64encode(f"ab:{SECRET}".encode()).decode(),
        SECRET.encode().hex(),
    ],
)
def test_a_header_with_a_secret_stays_with_its_host(tmp_path: Path, server: Server, value: str) -> None:
    other = server.url("/there", host="localhost")
    block = {"url": server.url(f"/302/{other}"), "headers": {"X-Team": value, "X-Other": "a"}}
    outputs(HTTP, call(tmp_path, block, allow=("127.0.0.1", "localhost"), secrets=(SECRET,)))
    assert ["x-team" in headers for _, _, headers, _ in server.asked] == [True, False]
    assert server.asked[1][2]["x-other"] == "a"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_with_a_secret_stays_with_its_host(tmp_path: Path, server: Server, status: int) -> None:
    other = server.url("/there", host="localhost")
    block = {"url": server.url(f"/{status}/{other}"), "method": "POST", "body": {"password": 'hun"ter2'}}
    allow = ("127.0.0.1", "localhost")
    failed = failure(HTTP, call(tmp_path, block, allow=allow, secrets=('hun"ter2',)))
    assert (failed.kind, "the body holds a secret" in failed.message) == (FailureKind.FATAL, True)
    assert len(server.asked) == 1
    # The same host may have it; and where the body is left out, there is nothing to keep.
    outputs(HTTP, call(tmp_path, {**block, "url": server.url(f"/{status}/../there")}, secrets=('hun"ter2',)))
    outputs(HTTP, call(tmp_path, {**block, "url": server.url(f"/303/{other}")}, allow=allow, secrets=('hun"ter2',)))


def test_endless_redirects(tmp_path: Path, server: Server) -> None:
    failed = failure(HTTP, call(tmp_path, {"url": server.url("/loop")}))
    assert (failed.kind, "more than 5 redirects" in failed.message) == (FailureKind.FATAL, True)
    assert len(server.asked) == 6
    unfollowed = outputs(HTTP, call(tmp_path, {"url": server.url("/loop"), "follow_redirects": False}))
    assert unfollowed["status_code"] == 302


def test_a_redirect_to_a_private_network(tmp_path: Path, server: Server) -> None:
    failed = failure(HTTP, call(tmp_path, {"url": server.url("/302/http://169.254.169.254/latest")}))
    assert (failed.kind, "169.254.169.254" in failed.message) == (FailureKind.FATAL, True)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "[fe80::1]",
        "[fc00::1]",
        "255.255.255.255",
    ],
)
def test_private_addresses_are_not_called(tmp_path: Path, server: Server, host: str) -> None:
    failed = failure(HTTP, call(tmp_path, {"url": server.url(host=host), "timeout": 5}, allow=()))
    assert failed.kind is FailureKind.FATAL, failed
    assert "http_allow" in failed.message
    assert not server.asked


NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16
169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.9 192.0.0.170 192.0.0.192 192.0.0.255
192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255
:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:192.0.0.8 ::ffff:169.254.169.254 ::ffff:0:7f00:1 64:ff9b::7f00:1
64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1
2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1
"""
PUBLIC = """
1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 169.253.1.1 172.15.1.1 172.32.0.1 191.255.255.255
192.0.1.1 192.167.1.1 198.17.1.1 198.20.1.1 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::808:808
2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450::1
"""


@pytest.mark.parametrize(
    ("text", "is_public"), [*((each, False) for each in NOT_PUBLIC.split()), *((each, True) for each in PUBLIC.split())]
)
def test_the_table_of_addresses(text: str, is_public: bool) -> None:
    assert http_job.may_call(ipaddress.ip_address(text), []) is is_public


@given(st.ip_addresses())
def test_what_may_be_called_is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if http_job.may_call(address, []):
        assert address.is_global
        assert not address.is_private


@given(st.ip_addresses(v=4))
def test_wrapped_addresses_count_as_what_they_are(address: ipaddress.IPv4Address) -> None:
    expected = http_job.may_call(address, ["10.0.0.0/8"])
    for wrapped in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert http_job.may_call(ipaddress.ip_address(wrapped), ["10.0.0.0/8"]) is expected


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate that says it is localhost, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    file = tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "plain.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    file.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "plain.pem").read_text())
    return file


def test_https(tmp_path: Path, server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was checked, and the certificate is that of the name."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server.encrypt(context)

    def get(host: str) -> Work:
        return call(tmp_path, {"url": f"https://{host}:{server.port}/"}, allow=("127.0.0.0/8", "localhost"))

    failed = failure(HTTP, get("localhost"))
    assert (failed.kind, "certificate is not trusted" in failed.message) == (FailureKind.USER, True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "plain.pem"))
    assert outputs(HTTP, get("localhost"))["status_code"] == 200
    failed = failure(HTTP, get("127.0.0.1"))
    assert "IP address mismatch" in failed.message


@pytest.mark.parametrize("allow", ["127.0.0.0/8", "127.0.0.1", "local*"])
def test_allowed_by_the_settings(tmp_path: Path, server: Server, allow: str) -> None:
    host = "localhost" if allow == "local*" else "127.0.0.1"
    outputs(HTTP, call(tmp_path, {"url": server.url(host=host)}, allow=(allow,)))


def test_a_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else a moment later: the connection goes where was checked."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    asked = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert http_job.permitted_addresses("rebinding.example", 80, []) == [(socket.AF_INET, ("93.184.216.34", 80))]
    assert asked == ["rebinding.example"]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({}, "http.url is needed"),
        ({"url": "ftp://example.com/"}, "not an address of the form"),
        ({"url": "file:///etc/passwd"}, "not an address of the form"),
        ({"url": "http://user:pw@example.com/"}, "header Authorization"),
        ({"url": "http://127.0.0.1/", "method": "GET /x HTTP/1.1\r\n"}, "expected one of GET"),
        ({"url": "http://127.0.0.1/", "headers": {"A\r\nB": "x"}}, "is not a header"),
        ({"url": "http://127.0.0.1/", "headers": {"A": "x\r\nB: y"}}, "is not a header"),
        ({"url": "http://127.0.0.1/", "timeout": 0}, "above 0"),
        ({"url": "http://127.0.0.1:99999/"}, "cannot be made"),
    ],
)
def test_refusals(tmp_path: Path, block: dict[str, Any], says: str) -> None:
    failed = failure(HTTP, call(tmp_path, block))
    assert (failed.kind, says in failed.message) == (FailureKind.FATAL, True), failed


def test_state_expr(tmp_path: Path, server: Server) -> None:
    """An expression over the answer takes the place of the status."""

    def outcome(state: str, path: str) -> object:
        expression = f"status_code == 404 ? '{state}' : 'DONE'"
        params = {"http": {"url": server.url(path)}, "state_expr": expression}
        work = attempt(tmp_path, params, settings=Settings(root=tmp_path, http_allow=("127.0.0.1",)))
        return finished(HTTP, work)

    assert isinstance(outcome("FATAL_ERROR", "/500"), Succeeded)
    for state, kind in ("FATAL_ERROR", FailureKind.FATAL), ("PLATFORM_ERROR", FailureKind.PLATFORM):
        failed = outcome(state, "/404")
        assert isinstance(failed, Failed)
        assert failed.kind is kind
    odd = outcome("WHAT", "/404")
    assert isinstance(odd, Failed)
    assert "expected one of DONE" in odd.message
    block = {"http": {"url": "http://127.0.0.1/"}, "state_expr": "1 +"}
    assert failure(HTTP, attempt(tmp_path, block)).kind is FailureKind.FATAL
