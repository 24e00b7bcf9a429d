"""Answers: errors in one form, and headers that every answer has."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dalsegno.errors import DalsegnoError, StoreFailed, UserError
from dalsegno.operations.json_values import error_fields

log = logging.getLogger(__name__)

Headers = Iterable[tuple[bytes, bytes]]

#: No browser guesses what an answer is, and nobody keeps it: it may hold what only this token may see.
SAFE_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def error_answer(status: int, error: DalsegnoError, headers: Mapping[str, str] | None = None) -> Response:
    if isinstance(error, StoreFailed):
        # Whoever asks need not know which database it is; who reads the log does.
        log.error("%s", error)
        error = StoreFailed("The store failed.", hint="Try again; the service's log says more.")
    return JSONResponse({"error": error_fields(error)}, status_code=status, headers=dict(headers or {}))


def raw_error(status: int, message: str) -> bytes:
    """The whole answer where there is no request to answer to; the connection ends with it."""
    body = json.dumps({"error": error_fields(UserError(message))}).encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(),
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
        *(name + b": " + value for name, value in SAFE_HEADERS),
    ]
    return b"\r\n".join([*lines, b"", body])


class SafeAnswers:
    """Adds the headers to whatever is answered, and ends a connection on which a part of the body was not read.

    What is left of it is then never taken for the next request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_body_left = has_body(scope["headers"])

        async def received() -> Message:
            nonlocal is_body_left
            message = await receive()
            is_body_left = is_body_left and bool(message.get("more_body"))
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                closing = ((b"connection", b"close"),) if is_body_left else ()
                message = {**message, "headers": [*message.get("headers", ()), *SAFE_HEADERS, *closing]}
            await send(message)

        await self.app(scope, received, sent)


def has_body(headers: Headers) -> bool:
    found = dict(headers)
    return found.get(b"content-length", b"0").strip(b"0") != b"" or b"transfer-encoding" in found
