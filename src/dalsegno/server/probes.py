"""What anybody may ask: whether the process is alive, and whether it can work."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dalsegno.operations.service import Service

HEALTH, READY = "/health", "/ready"


class Probes:
    """Each listener has its own, in an event loop of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._check: asyncio.Task[list[str]] | None = None

    def routes(self) -> list[Route]:
        return [Route(HEALTH, self._health), Route(READY, self._ready)]

    def app(self) -> Starlette:
        """Nothing but probes, for a listener of their own."""
        app = Starlette(routes=self.routes())
        app.router.redirect_slashes = False
        return app

    async def _health(self, _: Request) -> Response:
        """That it answers says so."""
        return JSONResponse({"status": "alive"})

    async def _ready(self, _: Request) -> Response:
        # Anybody can ask any number of times: all who ask at once get one answer, which takes one thread.
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(run_in_threadpool(self.service.problems))
        found = await asyncio.shield(self._check)
        return JSONResponse({"is_ready": not found, "problems": found}, status_code=503 if found else 200)
