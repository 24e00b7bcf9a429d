"""What the server answers, and to whom."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable

import pytest

from dalsegno.clock import utc_now
from dalsegno.errors import PlatformError, UserError
from dalsegno.operations.readiness import Pulse
from dalsegno.operations.service import Role, Service
from dalsegno.operations.tokens import Tokens, first_token, new_token
from dalsegno.server.authentication import Failures
from dalsegno.server.listening import address_of, listening
from tests.engine.support import noop, shell
from tests.server.conftest import Client

FAILING = shell("a", "exit 1", retry_policy={"error_retry_limit": 0})


# Who is let in.


@pytest.mark.parametrize("token", [None, "", "dalsegno_wrong", "ünknown"])
def test_nothing_without_a_token(client: Client, token: str | None, caplog: pytest.LogCaptureFixture) -> None:
    client.place.push("w", noop("a"))
    client.token = None
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    for method, path in (("GET", "/metrics"), ("GET", "/api/runs"), ("POST", "/api/workflows/w/runs")):
        code, text, answered = client.raw(method, path, None, **headers)
        assert (code, answered["WWW-Authenticate"]) == (401, "Bearer")
        assert json.loads(text)["error"]["hint"].endswith("dalsegno server token")
    assert not client.place.operations.runs.list()
    assert "refused GET /metrics from 127.0.0.1: it had no valid token" in caplog.messages
    assert not token or token not in caplog.text


def test_every_route_but_two_is_closed(client: Client) -> None:
    from starlette.routing import Route

    from dalsegno.server.api import Api

    client.token = None
    for route in Api(client.service).app().routes:
        assert isinstance(route, Route)
        path = route.path.replace("{run:path}", "w/1").replace("{workflow}", "w")
        method = "POST" if "POST" in (route.methods or ()) else "GET"
        code, _, _ = client.raw(method, path)
        assert code == (200 if route.path in ("/health", "/ready") else 401), route.path


def test_a_host_header_changes_nothing(client: Client) -> None:
    client.token = None
    for host in ("127.0.0.1/health?", "127.0.0.1/health#", "evil.example"):
        for path in ("/api/runs", "/metrics", "/metrics/", "/api/runs/", "//health", "/health/", "/nothing"):
            code, _, headers = client.raw("GET", path, Host=host)
            assert (code, headers["Location"]) == (401, None), path
    code, _, headers = client.raw("GET", "/health", Host="evil.example")
    assert (code, headers["Location"]) == (200, None)


def test_what_others_said_of_the_client_changes_nothing(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.token = None
    client.raw("GET", "/metrics", None, **{"X-Forwarded-For": "10.1.1.1"})
    assert "refused GET /metrics from 127.0.0.1: it had no valid token" in caplog.messages


def test_wrong_tokens_do_not_lock_out_the_right_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    valid_digests = Tokens.valid_digests

    def counted(known: Tokens) -> list[str]:
        nonlocal looks
        looks += 1
        return valid_digests(known)

    monkeypatch.setattr(Tokens, "valid_digests", counted)
    right, client.token = client.token, f"dalsegno_{'x' * 43}"
    codes = [client.raw("GET", "/api/runs") for _ in range(150)]
    assert [code for code, _, _ in codes[:50]] == [401] * 50
    code, text, headers = codes[-1]
    assert (code, headers["Retry-After"]) == (429, "1")
    assert json.loads(text)["error"]["message"] == "Too many requests without a valid token."
    assert looks < 120, "guesses are not looked up one by one"
    for client.token, code in ((right, 200), (None, 429), ("short", 429)):
        assert client.raw("GET", "/api/runs")[0] == code
    client.token = new_token(client.place.operations.store, by="ada", now=utc_now())
    wait_for(lambda: client.raw("GET", "/api/runs")[0] == 200)
    client.token = right
    # Failures are forgotten after a second.
    time.sleep(1.2)
    assert client.raw("GET", "/api/runs")[0] == 401


def test_failures_are_forgotten() -> None:
    seconds = 0.0
    failures = Failures(lambda: seconds)
    for _ in range(1000):
        failures.add("a")
    assert (failures.are_too_many("a"), failures.are_too_many("b")) == (True, False)
    seconds = 0.9
    assert failures.are_too_many("a")
    seconds = 1.1
    assert not failures.are_too_many("a")
    for number in range(20_000):
        failures.add(str(number))
    assert len(failures._counts) == 10_000


def test_a_new_token_takes_the_place_of_the_old_ones(client: Client) -> None:
    store, old = client.place.operations.store, client.token
    assert old is not None
    assert first_token(store, by="ada", now=utc_now()) is None
    new = new_token(store, by="ada", now=utc_now())
    assert (Tokens(store).is_valid(old), Tokens(store).is_valid(new)) == (False, True)
    assert client("GET", "/api/runs")[0] == 401
    client.token = new
    assert client("GET", "/api/runs")[0] == 200
    with store.database.reading() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM tokens").all()
    assert new not in str(kept)
    assert old not in str(kept)


# Health.


def test_health_and_readiness(client: Client) -> None:
    client.token = None
    assert client("GET", "/health") == (200, {"status": "alive"})
    assert client("GET", "/ready") == (200, {"is_ready": True, "problems": []})


def test_not_ready_when_a_loop_hangs(client: Client) -> None:
    seconds = 0.0
    client.service.pulse = Pulse(lambda: seconds)
    client.service.pulse.beat("workers")
    seconds = 44
    assert client("GET", "/ready")[0] == 200
    seconds = 46
    code, found = client("GET", "/ready")
    assert (code, found["problems"]) == (503, ["The loop 'workers' gives no sign of life."])
    client.service.pulse.beat("workers")
    assert client("GET", "/ready")[0] == 200


def test_not_ready_without_the_store(client: Client) -> None:
    with client.place.operations.store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE dalsegno_version SET version_num = '0001'")
    assert client("GET", "/ready")[0] == 503
    with client.place.operations.store.database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE dalsegno_version")
    assert client("GET", "/ready")[0] == 503
    assert client("GET", "/health")[0] == 200


def test_not_ready_when_it_is_about_to_end(client: Client) -> None:
    client.service.stop()
    assert client("GET", "/ready") == (503, {"is_ready": False, "problems": ["The service is about to end."]})


def test_a_service_that_works_is_ready(client: Client) -> None:
    running = Service(client.place.operations.settings, client.place.operations.store, [Role.TRIGGERS, Role.WORKERS])
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        client.place.push("w", noop("a"))
        _, made = client("POST", "/api/workflows/w/runs")
        wait_for(lambda: client("GET", f"/api/runs/{made['id']}")[1]["run"]["status"] == "SUCCEEDED")
        assert running.problems() == []
        assert {"workers", "triggers"} == set(running.pulse._beats)
    finally:
        running.stop()
        thread.join()


# Metrics.


def test_metrics(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.place.push("w", noop("a"))
    client.raw("GET", "/metrics")
    client.place.start("w")
    client.service.store.database.failures = 3
    from dalsegno.server import metrics

    code, text, headers = client.raw("GET", "/metrics")
    assert (code, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "dalsegno_store_errors_total 0.0" in text.decode(), "it is asked again only after a while"
    monkeypatch.setattr(metrics, "_KEPT_SECONDS", 0.0)
    text = client.raw("GET", "/metrics")[1]
    lines = text.decode().splitlines()
    assert 'dalsegno_runs_open{status="IN_PROGRESS",workflow="w"} 1.0' in lines
    assert "dalsegno_store_errors_total 3.0" in lines
    assert "dalsegno_store_up 1.0" in lines
    with client.place.operations.store.database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE nodes RENAME TO away")
    text = client.raw("GET", "/metrics")[1]
    assert "dalsegno_store_up 0.0" in text.decode().splitlines()
    assert re.search(rb"^dalsegno_store_write_age_seconds \d", text, re.MULTILINE), "it is known all the same"


# Runs.


def test_start_and_show(client: Client) -> None:
    client.place.push("w", noop("a"), params={"x": {"type": "LONG", "value": 1}})
    code, made = client("POST", "/api/workflows/w/runs", {"params": {"x": 7}, "idempotency_key": "k"})
    assert (code, made["number"], made["params"]["x"]["value"]) == (201, 1, 7)
    assert made["initiator"]["by"] == "api"
    code, again = client("POST", "/api/workflows/w/runs", {"params": {"x": 7}, "idempotency_key": "k"})
    assert (code, again["id"], again["is_repeated"]) == (200, made["id"], True)
    client.place.operations.runs.finish(made["id"])
    for reference in ("w/1", made["id"], "w"):
        code, found = client("GET", f"/api/runs/{reference}")
        assert (code, found["run"]["status"]) == (200, "SUCCEEDED")
        assert [(step["id"], step["status"]) for step in found["steps"]] == [("a", "SUCCEEDED")]


def test_list(client: Client) -> None:
    client.place.push("w", noop("a"))
    client.place.push("v", FAILING)
    for workflow_id in ("w", "w", "v"):
        client.place.run(workflow_id)

    def names(query: str) -> list[str]:
        code, found = client("GET", f"/api/runs{query}")
        assert code == 200
        return [f"{run['workflow_id']}/{run['number']}" for run in found["runs"]]

    assert names("") == ["v/1", "w/2", "w/1"]
    assert names("?workflow=w&limit=1") == ["w/2"]
    assert names("?status=failed&status=stopped") == ["v/1"]


def test_stop_kill_and_restart(client: Client) -> None:
    client.place.push("w", FAILING)
    client.place.start("w")
    code, stopped = client("POST", "/api/runs/w/1/stop")
    assert (code, stopped["status"]) == (202, "STOPPED")
    assert client("POST", "/api/runs/w/1/stop")[0] == 409
    code, again = client("POST", "/api/runs/w/1/restart")
    assert (code, again["status"], again["attempt"]) == (202, "IN_PROGRESS", 2)
    assert client("POST", "/api/runs/w/1/restart")[0] == 409
    assert client("POST", "/api/runs/w/1/kill")[1]["status"] == "FAILED"


def test_changes_say_who_made_them_and_by_which_request(client: Client) -> None:
    client.place.push("w", FAILING)
    _, _, answered = client.raw("POST", "/api/workflows/w/runs", None, **{"X-Request-Id": "deploy-7"})
    assert answered["X-Request-Id"] == "deploy-7"
    for odd in ("a b", "x" * 129, "é"):
        _, _, answered = client.raw("GET", "/api/runs", None, **{"X-Request-Id": odd})
        assert re.fullmatch("[0-9a-f]{32}", answered["X-Request-Id"])
    code, killed = client("POST", "/api/runs/w/1/kill", {"reason": "wrong day"})
    assert (code, killed["ended_by"], killed["reason"]) == (202, "api", "killed by api: wrong day")
    assert client("POST", "/api/runs/w/1/restart", {"reason": "a\x00b"})[0] == 400
    assert client("POST", "/api/runs/w/1/restart", {"reason": 7})[0] == 400
    kill, start = client.place.operations.admin.history("w/1")
    assert (start.verb, start.caller, start.request_id) == ("runs.start", "api", "deploy-7")
    assert (kill.verb, kill.reason, kill.roles) == ("runs.kill", "wrong day", ["operator"])


def test_pages_of_runs(client: Client) -> None:
    client.place.push("w", noop("a"))
    for _ in range(3):
        client.place.run("w")
    _, first = client("GET", "/api/runs?limit=2")
    _, second = client("GET", f"/api/runs?limit=2&cursor={first['next_cursor']}")
    assert [run["number"] for run in (*first["runs"], *second["runs"])] == [3, 2, 1]
    assert "next_cursor" not in second
    assert client("GET", "/api/runs?cursor=nowhere")[0] == 400


def test_restart_with_another_version(client: Client) -> None:
    client.place.push("w", FAILING)
    client.place.run("w")
    client.place.push("w", noop("a"))
    code, refused = client("POST", "/api/runs/w/1/restart", {"version": 7})
    assert (code, refused["error"]["message"]) == (404, "w has no version 7.")
    code, again = client("POST", "/api/runs/w/1/restart", {"version": "latest"})
    assert (code, again["version"], again["attempt"]) == (202, 2, 2)


MISTAKES: list[tuple[str, str, bytes | None, int, str]] = [
    ("GET", "/api/runs/nothing/1", None, 404, "There is no run 'nothing/1'"),
    ("POST", "/api/workflows/nothing/runs", None, 404, "There is no workflow 'nothing'."),
    ("POST", "/api/workflows/w/runs", b"{", 400, "The body is not JSON"),
    ("POST", "/api/workflows/w/runs", b"[1]", 400, "The body must be a JSON object."),
    ("POST", "/api/workflows/w/runs", b'{"param": {}}', 400, "There is no field 'param'."),
    ("POST", "/api/workflows/w/runs", b'{"params": 1}', 400, "params must be an object, found int."),
    ("POST", "/api/workflows/w/runs", b'{"idempotency_key": 1}', 400, "idempotency_key must be a text"),
    ("POST", "/api/workflows/w/runs", b"[" * 100_000, 400, "The body is not JSON"),
    ("POST", "/api/workflows/w/runs", b" " * 1_100_000, 413, "The body is larger than"),
    ("POST", "/api/runs/w/1/stop", b'{"x": 1}', 400, "There is no field 'x'."),
    ("GET", "/api/runs?limit=many", None, 400, "limit is 'many'"),
    ("GET", "/api/runs?status=fine", None, 400, "There is no status 'fine' of runs."),
    ("GET", "/api/nothing", None, 404, "Not Found."),
    ("PUT", "/api/runs", None, 405, "Method Not Allowed."),
]


def test_mistakes(client: Client) -> None:
    client.place.push("w", noop("a"))
    for method, path, body, code, said in MISTAKES:
        found, text, _ = client.raw(method, path, body)
        assert (found, json.loads(text)["error"]["message"][: len(said)]) == (code, said)


def test_many_at_once(client: Client) -> None:
    client.place.push("w", noop("a"))
    codes: list[int] = []

    def start() -> None:
        codes.extend(client("POST", "/api/workflows/w/runs")[0] for _ in range(5))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [201] * 30
    assert len(client.place.operations.runs.list("w", limit=100)) == 30


# Where it listens.


@pytest.mark.parametrize("listen", ["8484", "here", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"])
def test_no_address(listen: str) -> None:
    with pytest.raises(UserError, match="expected HOST:PORT"):
        address_of(listen)


def test_addresses() -> None:
    assert address_of("0.0.0.0:80") == ("0.0.0.0", 80)
    assert address_of("[::1]:8484") == ("::1", 8484)


def test_a_place_that_is_taken(client: Client) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(PlatformError, match="Address already in use"),
            listening(client.service, f"127.0.0.1:{port}"),
        ):
            pass


def wait_for(condition: Callable[[], bool]) -> None:
    patience = threading.Event()
    for _ in range(400):
        if condition():
            return
        patience.wait(0.05)
    raise AssertionError("it never happened")
