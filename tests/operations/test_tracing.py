"""Traces reach a collector, each run as one, whoever is away in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dalsegno.errors import PlatformError
from dalsegno.operations.tracing import Collector, Tracer
from dalsegno.plan.traces import trace_id
from tests.engine.support import Place, noop, shell
from tests.operations.conftest import Clock
from tests.services.receivers import HttpReceiver, Posted, http_receiver


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


def tracer(place: Place, receiver: HttpReceiver) -> Tracer:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{receiver.url}/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, x-other=c",
        "OTEL_SERVICE_NAME": "orchestra",
    }
    collector = Collector.from_environment(environment)
    assert collector is not None
    return Tracer(place.operations.store, collector, place.operations.clock)


def spans(posted: Posted) -> list[dict[str, Any]]:
    [resource] = posted.body["resourceSpans"]
    [scope] = resource["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


def test_a_redirect_is_not_followed(receiver: HttpReceiver) -> None:
    """The headers may hold a token."""
    receiver.answers = [302, 200]
    with pytest.raises(PlatformError, match="answered 302"):
        Collector(f"{receiver.url}/v1/traces", {"x-key": "secret"}).take([])
    assert [posted.path for posted in receiver.posted] == ["/v1/traces"]


def test_a_run_that_has_ended_is_told(either_place: Place, clock: Clock, receiver: HttpReceiver) -> None:
    either_place.push("w", noop("a", "b"), noop("b"))
    either_place.run("w")
    telling = tracer(either_place, receiver)
    telling.tell()
    assert receiver.posted == []

    run = either_place.run("w")
    for _ in range(2):
        telling.tell()
        clock.pass_by(minutes=1)

    [posted] = receiver.posted
    assert posted.path == "/v1/traces"
    assert (posted.headers["x-key"], posted.headers["x-other"]) == ("a b", "c")
    [name] = posted.body["resourceSpans"][0]["resource"]["attributes"]
    assert name == {"key": "service.name", "value": {"stringValue": "orchestra"}}
    root, *steps = spans(posted)
    assert (root["name"], root["traceId"], "parentSpanId" in root) == ("w", trace_id(run.id), False)
    assert sorted(step["name"] for step in steps) == ["a", "b"]
    assert {step["parentSpanId"] for step in steps} == {root["spanId"]}
    began = int(run.created_at.timestamp()) * 10**9 + run.created_at.microsecond * 1000
    assert root["startTimeUnixNano"] == str(began)


def test_another_process_goes_on_where_the_last_one_was(
    either_place: Place, clock: Clock, receiver: HttpReceiver
) -> None:
    either_place.push("w", noop("a"))
    tracer(either_place, receiver).tell()
    either_place.run("w")
    receiver.answers = [503, 200]
    with pytest.raises(PlatformError, match="answered 503"):
        tracer(either_place, receiver).tell()
    clock.pass_by(minutes=10)
    second = tracer(either_place, receiver)
    second.tell()
    tracer(either_place, receiver).tell()

    assert len(receiver.posted) == 2
    assert len({span["traceId"] for posted in receiver.posted for span in spans(posted)}) == 1


def test_no_redirect_is_followed(place: Place, receiver: HttpReceiver) -> None:
    """The headers hold a key, which is for the collector alone."""
    place.push("w", noop("a"))
    telling = tracer(place, receiver)
    telling.tell()
    place.run("w")
    for status in (301, 302, 303, 307, 308):
        receiver.answers, receiver.posted = [status], []
        with pytest.raises(PlatformError, match=f"answered {status}"):
            telling.tell()
        assert [posted.path for posted in receiver.posted] == ["/v1/traces"]


def test_nobody_is_told_unless_somebody_asks() -> None:
    assert Collector.from_environment({}) is None
    found = Collector.from_environment({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://traces.internal/in"})
    assert found is not None
    assert (found.url, found.service_name) == ("https://traces.internal/in", "dalsegno")


def test_a_job_gets_its_place_in_the_trace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.push("w", shell("a", f"echo $TRACEPARENT >> {place.folder}/out"))
    place.run("w")
    assert place.lines() == [""]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    run = place.run("w")
    assert place.lines()[1].startswith(f"00-{trace_id(run.id)}-")
