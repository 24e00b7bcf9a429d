"""What can be asked over HTTP, and of whom."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dalsegno.errors import (
    Conflict,
    DalsegnoError,
    DataError,
    Forbidden,
    NotReached,
    PlatformError,
    UnknownName,
    UserError,
)
from dalsegno.model.callers import Caller, Role
from dalsegno.model.stored_text import whole_number
from dalsegno.operations.facade import Operations
from dalsegno.operations.json_values import plain
from dalsegno.operations.metrics import Metric, Metrics, own_metrics
from dalsegno.operations.service import Service
from dalsegno.operations.tokens import Tokens
from dalsegno.server.answers import error_answer
from dalsegno.server.authentication import Authentication, described
from dalsegno.server.metrics import PrometheusMetrics
from dalsegno.server.probes import Probes

log = logging.getLogger(__name__)

#: The first that fits counts.
STATUS_CODES: tuple[tuple[type[DalsegnoError], int], ...] = (
    (UnknownName, 404),
    (NotReached, 409),
    (Conflict, 409),
    (Forbidden, 403),
    (UserError, 400),
    (DataError, 409),
    (PlatformError, 503),
)
#: Parameters of a run are small.
_LARGEST_BODY = 1024 * 1024
_MOST_RUNS = 1000
#: Whoever has a token, until tokens have names and roles of their own.
_NAME, _ROLES = "api", (Role.OPERATOR,)
#: What a client may send to find its request in the log again.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
#: Characters of what was sent that an answer repeats.
_SHOWN = 80
#: Runs that are being started or restarted at once; their parameters are evaluated, which may take seconds each.
_STARTS_AT_ONCE = 4
#: How many more may wait for that.
_STARTS_WAITING = 100

Fields = Mapping[str, Any]
#: What a verb answers: a status and something that JSON can hold.
Answer = tuple[int, Any]
Verb = Callable[[Operations, Request, Fields], Answer]


class Api:
    """Answers for a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.metrics = PrometheusMetrics(self._new_metrics, service.clock, self._own_metrics)
        #: Made by the first request, in the event loop that it belongs to.
        self._starts: CapacityLimiter | None = None
        self._starts_open = 0

    def app(self) -> Starlette:
        app = Starlette(
            routes=[
                *Probes(self.service).routes(),
                Route("/metrics", self._metrics),
                self._verb("POST", "/api/workflows/{workflow}/runs", start_run, is_start=True),
                self._verb("GET", "/api/runs", list_runs),
                self._verb("POST", "/api/runs/{run:path}/stop", stop_run),
                self._verb("POST", "/api/runs/{run:path}/kill", kill_run),
                self._verb("POST", "/api/runs/{run:path}/restart", restart_run, is_start=True),
                self._verb("GET", "/api/runs/{run:path}", show_run),
            ],
            middleware=[Middleware(Authentication, tokens=Tokens(self.service.store))],
            exception_handlers={HTTPException: _refusal, Exception: _refusal},
        )
        # A redirect would lead to whatever host the request names.
        app.router.redirect_slashes = False
        return app

    def _own_metrics(self) -> list[Metric]:
        return own_metrics(self.service.store, can_run_jobs=self.service.can_run_jobs())

    def _new_metrics(self) -> Metrics:
        return Metrics(self.service.store, self.service.clock(), self.service.node_id)

    # What is not ``async`` runs in a thread.

    def _metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def _verb(self, method: str, path: str, verb: Verb, *, is_start: bool = False) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                body = await _body(request)
            except ClientDisconnect:
                # Nobody is there to read it.
                return Response(status_code=400)
            if body is None:
                return error_answer(413, UserError(f"The body is larger than {_LARGEST_BODY} bytes."))
            if is_start:
                return await self._started(verb, request, body)
            return await run_in_threadpool(self._called, verb, request, body)

        return Route(path, endpoint, methods=[method])

    async def _started(self, verb: Verb, request: Request, body: bytes) -> Response:
        """Starts wait for each other here, so that they never take the threads of all other requests."""
        if self._starts is None:
            self._starts = CapacityLimiter(_STARTS_AT_ONCE)
        # The limiter itself counts a request only some time after it was let in.
        if self._starts_open >= _STARTS_AT_ONCE + _STARTS_WAITING:
            error = PlatformError("Too many runs are being started at once.", hint="Try again in a few seconds.")
            return error_answer(503, error, {"Retry-After": "5"})
        self._starts_open += 1
        try:
            return await to_thread.run_sync(self._called, verb, request, body, limiter=self._starts)
        finally:
            self._starts_open -= 1

    def _called(self, verb: Verb, request: Request, body: bytes) -> Response:
        request_id = _request_id(request)
        try:
            operations = self.service.operations(Caller.of(_NAME, _ROLES, request_id))
            status, value = verb(operations, request, _fields(body))
            answer: Response = JSONResponse(plain(value), status_code=status)
        except DalsegnoError as error:
            answer = error_answer(next((code for kind, code in STATUS_CODES if isinstance(error, kind)), 500), error)
        answer.headers["X-Request-Id"] = request_id
        if request.method != "GET":
            log.info("%s was answered with %s, request %s", described(request), answer.status_code, request_id)
        return answer


# The verbs.


def start_run(operations: Operations, request: Request, fields: Fields) -> Answer:
    _refuse_others(fields, "params", "idempotency_key", "version")
    run = operations.runs.start(
        request.path_params["workflow"],
        _typed(fields, "params", dict, {}),
        version=str(fields.get("version", "default")),
        idempotency_key=_typed(fields, "idempotency_key", str, None),
    )
    return 200 if run.is_repeated else 201, run


def list_runs(operations: Operations, request: Request, _: Fields) -> Answer:
    asked = request.query_params
    limit = asked.get("limit", "20")
    most = whole_number(limit)
    if most is None or not 1 <= most <= _MOST_RUNS:
        raise UserError(f"limit is {limit[:_SHOWN]!r}, expected a whole number from 1 to {_MOST_RUNS}.")
    with_params = asked.get("params", "false")
    if with_params not in ("true", "false"):
        raise UserError(f"params is {with_params[:_SHOWN]!r}, expected true or false.")
    page = operations.runs.list(
        asked.get("workflow"),
        status=asked.getlist("status"),
        limit=most,
        cursor=asked.get("cursor"),
        with_params=with_params == "true",
    )
    return 200, {"runs": page.items} | ({"next_cursor": page.next_cursor} if page.next_cursor else {})


def show_run(operations: Operations, request: Request, _: Fields) -> Answer:
    run = operations.runs.get(request.path_params["run"])
    return 200, {"run": run, "steps": operations.runs.steps(run.id)}


def stop_run(operations: Operations, request: Request, fields: Fields) -> Answer:
    _refuse_others(fields, "reason")
    return 202, operations.runs.stop(request.path_params["run"], reason=_reason(fields))


def kill_run(operations: Operations, request: Request, fields: Fields) -> Answer:
    _refuse_others(fields, "reason")
    return 202, operations.runs.kill(request.path_params["run"], reason=_reason(fields))


def restart_run(operations: Operations, request: Request, fields: Fields) -> Answer:
    _refuse_others(fields, "params", "version", "reason")
    version = None if fields.get("version") is None else str(fields["version"])
    params = _typed(fields, "params", dict, None)
    run = request.path_params["run"]
    return 202, operations.runs.restart(run, params=params, version=version, reason=_reason(fields))


# What was sent.


async def _body(request: Request) -> bytes | None:
    """None if it is too large."""
    if int(request.headers.get("content-length", 0)) > _LARGEST_BODY:
        return None
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > _LARGEST_BODY:
            return None
    return bytes(found)


def _request_id(request: Request) -> str:
    """As the client calls its request, if that is fit to be stored and shown; else a new one."""
    sent = request.headers.get("x-request-id", "")
    return sent if _REQUEST_ID.fullmatch(sent) else uuid4().hex


def _reason(fields: Fields) -> str | None:
    found: str | None = _typed(fields, "reason", str, None)
    return found


def _fields(body: bytes) -> Fields:
    if not body.strip():
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise UserError("The body must be a JSON object.", hint='For instance: {"params": {"day": "2026-01-31"}}')
    return found


def _refuse_others(fields: Fields, *known: str) -> None:
    for name in fields.keys() - set(known):
        expected = f"Known are: {', '.join(known)}." if known else "Send no body."
        raise UserError(f"There is no field {name!r}.", hint=expected)


def _typed(fields: Fields, name: str, kind: type, default: Any) -> Any:
    value = fields.get(name, default)
    if value is not default and not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a text"
        raise UserError(f"{name} must be {wanted}, found {type(value).__name__}.")
    return value


async def _refusal(_: Request, error: Exception) -> Response:
    """What Starlette itself refuses, in the same form."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = str(getattr(error, "detail", "")) or "Something went wrong"
    headers = getattr(error, "headers", None)
    hint = "See docs/reference/http.md for what there is." if status in (404, 405) else None
    return error_answer(status, UserError(f"{said}.", hint=hint), headers)
