"""Input that can never work is refused as such, on both databases; and nothing that is stored breaks an answer."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import text as sql

from dalsegno.errors import ParamError, UserError
from dalsegno.operations.service import Role, Service
from dalsegno.server import api
from dalsegno.server.listening import listening
from tests.engine.conftest import new_schema
from tests.engine.support import FAILED, Json, Place, expression, noop, shell
from tests.server.conftest import Client
from tests.services.postgres import Postgres

TEXT = {"type": "STRING", "value": "x"}
HUGE = "9" * 20
LONE = "\ud800"


@pytest.fixture(scope="session")
def input_database(postgres: Postgres) -> str:
    return postgres.url(postgres.create_database())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    is_sqlite = request.param == "sqlite"
    place = Place.at(tmp_path, None if is_sqlite else new_schema(request.getfixturevalue("input_database")))
    service = Service(place.operations.settings, place.operations.store, [Role.API])
    with listening(service, "127.0.0.1:0") as address:
        yield Client(place, service, address)
    place.operations.close()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


BODIES: list[tuple[Json, str]] = [
    ({"params": {"p": LONE}}, "'p' cannot be set: it holds half of a surrogate pair (\\ud800)"),
    ({"params": {"p": "a\0b"}}, "'p' cannot be set: it holds a NUL character"),
    ({"params": {"new": {"deep": ["x", LONE]}}}, "holds half of a surrogate pair"),
    ({"params": {"new": {LONE: 1}}}, "holds half of a surrogate pair"),
    ({"params": {"list": '["\\u0000"]'}}, "holds a NUL character"),
    ({"params": {"new": 2**63}}, "holds a whole number of more than 64 bits"),
    ({"params": {"new": {"a": [2**70]}}}, "holds a whole number of more than 64 bits"),
    ({"params": {"new": nested(80)}}, "more than 64 lists and maps in each other"),
    ({"params": {"new": nested(900)}}, "more than 64 lists and maps in each other"),
    ({"params": {"RUN_TS": 2**63 - 1}}, f"RUN_TS is {2**63 - 1} milliseconds since 1970: years go from 1 to 9999"),
    ({"params": {"RUN_TS": -(2**63)}}, "years go from 1 to 9999"),
    ({"params": {"TARGET_RUN_DATE": "99991231"}}, "years go from 1 to 9999"),
    ({"params": {"TARGET_RUN_DATE": "00010101", "TARGET_RUN_HOUR": "00"}}, "years go from 1 to 9999"),
    ({"params": {LONE: 1}}, "cannot be the name of a parameter"),
    ({"params": {"a": {"shell": {"script": "evil"}}}}, "'shell.script' decides what step 'a' executes"),
    ({"idempotency_key": LONE}, "cannot be used: it holds half of a surrogate pair"),
    ({"idempotency_key": "a\0"}, "cannot be used: it holds a NUL character"),
    ({"idempotency_key": "k" * 9000}, "it has 9000 characters; 512 are the limit"),
    ({"version": "\0"}, "not a version"),
]
PATHS: list[tuple[str, str, int]] = [
    ("GET", f"/api/runs/w/{HUGE}", 404),
    ("GET", f"/api/runs/w/{'9' * 5000}", 404),
    ("GET", f"/api/runs/{quote('w/٣')}", 404),
    ("POST", f"/api/runs/w/{HUGE}/stop", 404),
    ("POST", f"/api/runs/w/{HUGE}/restart", 404),
    ("GET", "/api/runs/w%00/1", 400),
    ("GET", f"/api/runs?limit={HUGE}", 400),
    ("GET", f"/api/runs?limit={'1' * 5000}", 400),
    ("GET", f"/api/runs?limit={quote('٣')}", 400),
    ("GET", "/api/runs?workflow=%00", 400),
    ("GET", "/api/runs?params=maybe", 400),
    ("POST", "/api/workflows/w%00/runs", 400),
]


def test_input_that_can_never_work(client: Client) -> None:
    dates = "RUN_DATE + DERIVED_RUN_DATE_UTC_PLUS_ONE + DERIVED_RUN_DATE_UTC_MINUS_ONE"
    declared = {"p": TEXT, "list": {"type": "STRING_ARRAY", "value": ["x"]}, "dates": expression(dates, "STRING")}
    client.place.push("w", shell("a", "exit 0"), params=declared)
    for body, said in BODIES:
        code, found = client("POST", "/api/workflows/w/runs", body)
        assert (code, said in found["error"]["message"]) == (400, True), (str(body)[:80], found)
    for version in (HUGE, "9" * 5000, int(HUGE)):
        code, found = client("POST", "/api/workflows/w/runs", {"version": version})
        assert (code, found["error"]["message"][:15]) == (404, "w has no versio")
    for method, path, expected in PATHS:
        code, found = client(method, path)
        assert (code, found["error"]["code"] != "PlatformError") == (expected, True), (path[:80], found)
    assert client("GET", "/api/runs")[1] == {"runs": []}
    assert client("POST", "/api/workflows/w/runs", {"params": {"p": "ü😀"}, "idempotency_key": "é" * 512})[0] == 201


def test_a_database_that_fails_is_not_named(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with client.place.operations.store.database.writing() as connection:
        connection.execute(sql("DROP TABLE signal_waits"))
        connection.execute(sql("ALTER TABLE runs RENAME TO hidden"))
    place = str(client.place.operations.store.database.place)
    for method, path in (("GET", "/api/runs"), ("GET", "/api/runs/w"), ("GET", "/ready"), ("GET", "/metrics")):
        code, text, _ = client.raw(method, path)
        assert place not in text.decode()
        if path.startswith("/api"):
            assert (code, json.loads(text)["error"]["message"]) == (503, "The store failed.")
    with caplog.at_level(logging.ERROR):
        client("GET", "/api/runs")
    assert place in caplog.text


def test_what_was_stored_before_breaks_no_answer(client: Client) -> None:
    client.place.push("w", noop("a"), params={"p": TEXT})
    run = client.place.run("w")
    poisoned = json.dumps({"p": {"type": "STRING", "value": LONE, "mode": "MUTABLE", "source": "LAUNCH"}})
    initiator = json.dumps({"type": "MANUAL", "by": LONE, "planned_ms": 1})
    with client.place.operations.store.database.writing() as connection:
        statement = sql("UPDATE runs SET params = :params, initiator = :initiator WHERE id = :id")
        connection.execute(statement, {"params": poisoned, "initiator": initiator, "id": run.id})
    code, found = client("GET", "/api/runs?params=true")
    assert (code, found["runs"][0]["params"]["p"]["value"], found["runs"][0]["initiator"]["by"]) == (
        200,
        "\\ud800",
        "\\ud800",
    )
    assert client("GET", "/api/runs")[0] == 200
    assert client("GET", "/api/runs/w/1")[0] == 200


def test_lists_leave_parameters_out(client: Client) -> None:
    client.place.push("w", noop("a"), params={"p": TEXT})
    client.place.run("w")
    assert "params" not in client("GET", "/api/runs")[1]["runs"][0]
    assert "params" not in client("GET", "/api/runs?params=false")[1]["runs"][0]
    assert client("GET", "/api/runs?params=true")[1]["runs"][0]["params"]["p"]["value"] == "x"
    assert client("GET", "/api/runs/w/1")[1]["run"]["params"]["p"]["value"] == "x"
    # Not even read: a value that cannot be read does no harm.
    with client.place.operations.store.database.writing() as connection:
        if client.place.operations.store.database.is_sqlite:
            connection.execute(sql("UPDATE runs SET params = 'broken', run_params = 'broken'"))
    assert client("GET", "/api/runs")[0] == 200


# Everything else that is stored.


def test_nothing_else_is_stored_either(client: Client) -> None:
    operations = client.place.operations
    client.place.push("w", noop("a"))
    for bad in (LONE, "x\0"):
        for attempt in (
            lambda bad=bad: operations.signals.announce(bad),
            lambda bad=bad: operations.signals.announce("s", {"p": bad}),
            lambda bad=bad: operations.signals.announce("s", {}, key=bad),
            lambda bad=bad: operations.admin.set_limit(bad, 1),
            lambda bad=bad: operations.workflows.set_breakpoint("w", bad),
            lambda bad=bad: operations.workflows.clear_breakpoint("w", bad),
            lambda bad=bad: operations.runs.get(bad),
            lambda bad=bad: operations.workflows.activate("w", bad),
            lambda bad=bad: operations.machinery.templates.find(bad),
            lambda bad=bad: client.place.push(f"w{bad}", noop("a")),
            lambda bad=bad: client.place.push("v", noop("a", params={"p": {"type": "STRING", "value": bad}})),
            lambda bad=bad: client.place.push("v", noop("a", tags=[{"name": f"t{bad}"}])),
        ):
            with pytest.raises(UserError):
                attempt()
    for number in (2**63, 2**70):
        with pytest.raises(UserError, match="64 bits"):
            operations.signals.announce("s", {"p": number})
    with pytest.raises(UserError, match="512 are the limit"):
        operations.signals.announce("s", {}, key="k" * 9000)


def test_a_job_cannot_store_it(client: Client) -> None:
    place = client.place
    place.push(
        "w",
        shell("a", """printf '{"x": "\\\\ud800"}\\n' >> "$DALSEGNO_OUTPUT" """, retry_policy={"error_retry_limit": 0}),
    )
    assert place.run("w").status is FAILED
    assert "'x' holds half of a surrogate pair" in str(place.steps("w")["a"].failure)
    place.push("v", shell("a", """printf 'x=a\\0b\\n' >> "$DALSEGNO_OUTPUT" """, retry_policy={"error_retry_limit": 0}))
    assert place.run("v").status is FAILED
    assert "'x' holds a NUL character" in str(place.steps("v")["a"].failure)
    place.push("u", noop("a"), params={"p": expression("'a\\u0000b'", "STRING")})
    with pytest.raises(ParamError, match="'p' holds a NUL character"):
        place.start("u")
    # What it prints is only read.
    place.push("t", shell("a", "printf 'a\\0b\\377' >&2; exit 1", retry_policy={"error_retry_limit": 0}))
    assert place.run("t").status is FAILED
    assert client("GET", "/api/runs/t/1")[0] == 200


# Starting runs takes time.

LOOP = "int n = 0; for (int i = 0; i < 25000; i += 1) { n += i; n += 1; n -= 1; } return n;"


def test_all_expressions_of_a_run_share_a_budget(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    place.push("w", noop("a"), params={f"p{number}": expression(LOOP) for number in range(100)})
    began = time.process_time()
    with pytest.raises(ParamError, match=r"Parameter 'p\d': .*more than 2,000,000 steps together"):
        place.start("w")
    assert time.process_time() - began < 6
    place.push("w", noop("a", params={f"p{number}": expression(LOOP) for number in range(100)}))
    assert place.run("w").status is FAILED
    assert "in step 'a': " in str(place.steps("w")["a"].failure)
    assert "steps together" in str(place.steps("w")["a"].failure)
    small = {f"p{number}": expression("1 + 1") for number in range(120)}
    place.push("w", noop("a", params=small), params=small)
    assert place.run("w").status is not FAILED
    place.operations.close()


def test_starts_do_not_take_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place.at(tmp_path)
    place.push("w", noop("a"))
    service = Service(place.operations.settings, place.operations.store, [Role.API])
    monkeypatch.setattr(api, "_STARTS_WAITING", 46)
    # Starts that last until we let them go: whoever holds the database does that.
    with listening(service, "127.0.0.1:0") as address:
        client = Client(place, service, address)
        codes: list[int] = []
        # With one key they are one run, so that they end soon.
        body = {"idempotency_key": "k"}
        with place.operations.store.database.writing() as connection:
            connection.execute(sql("UPDATE workflows SET last_run = last_run"))
            threads = [
                threading.Thread(target=lambda: codes.append(client("POST", "/api/workflows/w/runs", body)[0]))
                for _ in range(60)
            ]
            for thread in threads:
                thread.start()
            patience = threading.Event()
            while len(codes) < 60 - 46 - api._STARTS_AT_ONCE:
                patience.wait(0.01)
            assert set(codes) == {503}
            began = time.monotonic()
            assert client("GET", "/api/runs")[0] == 200
            assert time.monotonic() - began < 2
        for thread in threads:
            thread.join()
    place.operations.close()
    assert sorted(set(codes)) == [200, 201, 503]
