"""Who is let in: whoever has a valid token. It stands before all routes, so that none can be forgotten."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.operations.printable import one_line
from dalsegno.operations.tokens import Tokens, is_one_of, is_well_formed
from dalsegno.server.answers import error_answer
from dalsegno.server.peers import peer_of
from dalsegno.server.probes import HEALTH, READY

log = logging.getLogger(__name__)

#: So many failures of one peer at once, and then one per second, are looked up in the store.
_MOST_FAILURES = 60
_MOST_PEERS = 10_000
#: How old the digests may be that a peer with more failures than that is compared with first.
_KEPT_SECONDS = 1.0
_LONGEST_METHOD = 20


class Authentication:
    """ASGI middleware: answers by itself unless there is a valid token, or the request is a probe."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self.app, self.tokens = app, tokens
        self._failures = Failures()
        self._lock = Lock()
        self._digests: list[str] = []
        self._read_at: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = None if scope["path"] in (HEALTH, READY) else await self._refusal(Request(scope))
        await (refused or self.app)(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        peer = peer_of(request.client.host if request.client else None)
        is_throttled = self._failures.are_too_many(peer)
        # What cannot be a token needs no thread and no look at the store.
        if is_well_formed(token):
            try:
                if await run_in_threadpool(self._is_valid, token, is_throttled=is_throttled):
                    return None
            except PlatformError as error:
                return error_answer(503, error)
        self._failures.add(peer)
        log.warning("refused %s: it had no valid token", described(request))
        if is_throttled:
            many = UserError("Too many requests without a valid token.", hint="Try again in a second.")
            return error_answer(429, many, {"Retry-After": "1"})
        message = "A token is missing." if not scheme else "The token is not valid."
        refused = UserError(
            message,
            hint="Send the header 'Authorization: Bearer TOKEN'.",
            actions=[action("A new one", Verb.CREATE_TOKEN)],
        )
        return error_answer(401, refused, {"WWW-Authenticate": "Bearer"})

    def _is_valid(self, token: str, *, is_throttled: bool) -> bool:
        """A valid token is let in whatever else its peer sent; guesses cost the store one look per second."""
        if is_throttled and not is_one_of(self._recent_digests(), token):
            return False
        return self.tokens.is_valid(token)

    def _recent_digests(self) -> list[str]:
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at >= _KEPT_SECONDS:
                self._digests, self._read_at = self.tokens.valid_digests(), time.monotonic()
            return self._digests


class Failures:
    """How many requests without a valid token each peer has sent lately. It forgets one per second."""

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._stopwatch = stopwatch
        #: By peer, the one that failed last at the end: how many there were, and when that was so.
        self._counts: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def are_too_many(self, peer: str) -> bool:
        return self._count(peer) >= _MOST_FAILURES

    def add(self, peer: str) -> None:
        # One more than enough is enough: whoever stops failing is soon treated like all others.
        self._counts[peer] = min(self._count(peer), _MOST_FAILURES) + 1, self._stopwatch()
        self._counts.move_to_end(peer)
        if len(self._counts) > _MOST_PEERS:
            self._counts.popitem(last=False)

    def _count(self, peer: str) -> float:
        count, at = self._counts.get(peer, (0.0, 0.0))
        return max(count - (self._stopwatch() - at), 0.0)


def described(request: Request) -> str:
    """A request as the log shows it: what was sent is as long as its sender likes, and holds anything."""
    client = request.client.host if request.client else "somebody"
    return f"{one_line(request.method, _LONGEST_METHOD)} {one_line(request.scope['path'])} from {client}"
