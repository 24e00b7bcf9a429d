"""Steps that make an HTTP request. The request is made by a process of its own (``http_job``), which can be ended."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from dalsegno.clock import utc_now
from dalsegno.errors import SelError, UserError
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Stopped, Succeeded
from dalsegno.spec import sel
from dalsegno.steps import http_job
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields
from dalsegno.steps.processes import TEMPORARY_FAILURE, WRONG_CONFIGURATION, ProcessRunner, command_job
from dalsegno.steps.supervision import Ended, Job

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DEFAULT_SECONDS = 30.0
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Of Maestro's states, those that mean a failure.
_FAILURES = {
    "USER_ERROR": FailureKind.USER,
    "PLATFORM_ERROR": FailureKind.PLATFORM,
    "FATAL_ERROR": FailureKind.FATAL,
    "TIMED_OUT": FailureKind.TIMEOUT,
}
_TIMEOUT_STATUS, _BUSY_STATUS, _FIRST_USER_STATUS, _FIRST_SERVER_STATUS = 408, 429, 400, 500


class HttpRunner(ProcessRunner):
    """``http: {url: …, method: …, headers: …, body: …}``."""

    name: ClassVar[str] = "Http"
    raw: ClassVar[frozenset[str]] = frozenset({"state_expr"})
    fields: ClassVar[frozenset[str]] = frozenset({"url", "method", "headers", "body", "timeout", "follow_redirects"})
    exit_codes: ClassVar[Mapping[int, FailureKind]] = {
        TEMPORARY_FAILURE: FailureKind.PLATFORM,
        WRONG_CONFIGURATION: FailureKind.FATAL,
    }
    #: Written as JSON, a text can be six times as long.
    output_limit: ClassVar[int] = 8 * http_job.BODY_LIMIT

    def job(self, work: Work) -> Job:
        fields = Fields(work, "http", self.fields)
        if isinstance(expression := work.params.get("state_expr"), str):
            sel.parse(expression)
        method = (fields.text("method") or "GET").upper()
        if method not in METHODS:
            raise UserError(f"http.method is {method!r}, expected one of {', '.join(METHODS)}.")
        request = {
            "url": fields.required("url"),
            "method": method,
            "headers": headers_of(fields),
            "body": body_of(fields),
            "timeout": fields.seconds("timeout", DEFAULT_SECONDS),
            "follow": fields.text("follow_redirects") != "false",
            "allow": list(work.settings.http_allow),
        }
        command = [sys.executable, "-I", "-S", http_job.__file__]
        return command_job(work, "http", command, input=json.dumps(request))

    def outcome(self, work: Work, ended: Ended) -> Outcome:
        match super().outcome(work, ended):
            case Succeeded(outputs):
                return self._judged(work, outputs)
            case other:
                return other

    def _judged(self, work: Work, outputs: Mapping[str, Any]) -> Outcome:
        expression = work.params.get("state_expr")
        if not isinstance(expression, str):
            return by_status(outputs)
        seen = {name: sel.value_of(value) for name, value in {**work.params, **outputs}.items() if name != "http"}
        try:
            state = sel.evaluate(expression, seen, now=utc_now()).value
        except SelError as error:
            return Failed(FailureKind.FATAL, f"state_expr: {error.message}", error.hint, outputs)
        message = f"The server answered {outputs['status_code']}, which state_expr takes for {state}."
        match state:
            case "DONE":
                return Succeeded(outputs)
            case "STOPPED":
                return Stopped(message)
            case _ if state in _FAILURES:
                return Failed(_FAILURES[state], message, outputs=outputs)
            case _:
                known = ", ".join(["DONE", "STOPPED", *_FAILURES])
                return Failed(
                    FailureKind.FATAL, f"state_expr gave {state!r}, expected one of {known}.", outputs=outputs
                )


def by_status(outputs: Mapping[str, Any]) -> Outcome:
    """What a status means where the step does not say."""
    status = outputs["status_code"]
    if status < _FIRST_USER_STATUS:
        return Succeeded(outputs)
    passing = status >= _FIRST_SERVER_STATUS or status in (_TIMEOUT_STATUS, _BUSY_STATUS)
    kind = FailureKind.PLATFORM if passing else FailureKind.USER
    beginning = " ".join(str(outputs["response_body"]).split())[:200]
    return Failed(kind, f"The server answered {status}: {beginning or 'nothing else'}", outputs=outputs)


def headers_of(fields: Fields) -> dict[str, str]:
    headers = {name: fields.plain(f"headers.{name}", value) for name, value in fields.mapping("headers").items()}
    if isinstance(fields.values.get("body"), dict | list) and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or re.search(r"[\r\n\0]", value):
            raise UserError(f"http.headers: {name!r} is no header, or its value has a line break.")
    return headers


def body_of(fields: Fields) -> str | None:
    """A text as it is; anything else as JSON."""
    body = fields.values.get("body")
    return body if body is None or isinstance(body, str) else json.dumps(body)
