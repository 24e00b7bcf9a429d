"""Tells traces of runs that have ended to whoever collects them, by OTLP over HTTP, as OpenTelemetry's variables say.

How far that came is kept in the store, a little behind the truth: after a crash some runs are told again, and are the
same traces then.
"""

from __future__ import annotations

import json
import logging
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dalsegno.errors import PlatformError
from dalsegno.model.runs import RunStatus
from dalsegno.operations.sending import send
from dalsegno.plan.traces import Span, spans_of
from dalsegno.steps.environment import OTLP_ENDPOINT
from dalsegno.store import Store, measures, progress, run_queries

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10
#: As in ``metrics``: whoever began earlier may save later.
_OVERLAP = timedelta(minutes=2)
#: What could not be told for so long is given up.
_GIVEN_UP = timedelta(days=1)
_MOST_EVENTS, _PAGE = 20_000, 1000
_NAME = "traces"


@dataclass(frozen=True)
class Collector:
    """Where traces go."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    service_name: str = "dalsegno"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Collector | None:
        """None: nobody wants traces."""
        environment = os.environ if environment is None else environment
        url = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        if not url and (base := environment.get(OTLP_ENDPOINT)):
            url = f"{base.rstrip('/')}/v1/traces"
        if not url or not url.startswith(("http://", "https://")):
            return None
        pairs = (pair.partition("=") for pair in environment.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","))
        headers = {name.strip(): urllib.parse.unquote(value.strip()) for name, _, value in pairs if name.strip()}
        return cls(url, headers, environment.get("OTEL_SERVICE_NAME", "dalsegno"))

    def take(self, spans: list[Span]) -> None:
        body = json.dumps(_request(self.service_name, spans)).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310 - http and https only
        try:
            send(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            error.close()
            raise PlatformError(f"The collector of traces answered {error.code}.") from None
        except (OSError, ValueError) as error:
            said = getattr(error, "reason", None) or type(error).__name__
            raise PlatformError(f"The collector of traces cannot be reached: {said}.") from None


class Tracer:
    def __init__(self, store: Store, collector: Collector, clock: Callable[[], datetime]) -> None:
        self.store = store
        self.collector = collector
        self.clock = clock
        #: What was told, by when it happened, for as long as it may be found again.
        self._told: dict[int, datetime] = {}

    def tell(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        """Tell of the runs that have ended since the last time."""
        now = self.clock()
        with self.store.database.writing() as connection:
            upto = progress.upto(connection, _NAME)
            if upto is None:
                # What was before anybody wanted traces is not told.
                progress.move(connection, _NAME, measures.last_event(connection))
                return
        for number, run_id, at in self._ended(upto):
            if not may_go_on():
                return
            if number not in self._told:
                self._tell_of(run_id, at, now)
                self._told[number] = at
            if at < now - _OVERLAP:
                upto = number
        with self.store.database.writing() as connection:
            progress.move(connection, _NAME, upto)
        self._told = {number: at for number, at in self._told.items() if at >= now - 2 * _OVERLAP}

    def _ended(self, upto: int) -> list[tuple[int, str, datetime]]:
        with self.store.database.reading() as connection:
            found = measures.run_events(connection, upto)
        return [(event.number, event.run_id, event.at) for event in found if RunStatus(event.data["status"]).is_final]

    def _tell_of(self, run_id: str, at: datetime, now: datetime) -> None:
        with self.store.database.reading() as connection:
            run = run_queries.run_row(connection, run_id)
        if run is None or run["ended_at"] is None:
            # It goes on again, and will be told of when it has ended.
            return
        try:
            self.collector.take(spans_of(run, self._events(run_id)))
        except PlatformError:
            if now - at < _GIVEN_UP:
                raise
            log.warning("gives up telling the trace of %s/%s", run["workflow_id"], run["number"])

    def _events(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        after, count = 0, 0
        while count < _MOST_EVENTS:
            with self.store.database.reading() as connection:
                page = run_queries.event_rows(connection, run_id, after, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            after, count = page[-1]["id"], count + len(page)


def _request(service_name: str, spans: list[Span]) -> dict[str, Any]:
    scope = {"scope": {"name": "dalsegno"}, "spans": [_span(span) for span in spans]}
    resource = {"attributes": [_attribute("service.name", service_name)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.id,
        **({"parentSpanId": span.parent_id} if span.parent_id else {}),
        "name": span.name,
        # Inside of the service.
        "kind": 1,
        "startTimeUnixNano": _nanoseconds(span.began_at),
        "endTimeUnixNano": _nanoseconds(span.ended_at),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "status": {"code": 1} if span.failure is None else {"code": 2, "message": span.failure},
    }


def _attribute(name: str, value: str | int) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}


def _nanoseconds(moment: datetime) -> str:
    """A text, because many readers of JSON keep 53 bits of a number."""
    whole = int(moment.replace(microsecond=0).timestamp())
    return str((whole * 1_000_000 + moment.microsecond) * 1000)
