"""The HTTP server, in a thread beside what else the service does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from dalsegno.errors import PlatformError, UserError
from dalsegno.operations.service import Service
from dalsegno.server.api import Api

#: How long open requests may take once the service is to end.
_PATIENCE_SECONDS = 5
#: How many requests at once; more are refused, with 503.
_MOST_AT_ONCE = 200
#: How often to look whether it has begun to listen.
_LOOK_SECONDS = 0.005


@contextmanager
def listening(service: Service, listen: str) -> Iterator[str]:
    """Answer requests until the block ends; where, as HOST:PORT."""
    with _bound(listen) as bound:
        config = uvicorn.Config(
            Api(service).app(),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            access_log=False,
            # Our own settings of logs stay.
            log_config=None,
            server_header=False,
            limit_concurrency=_MOST_AT_ONCE,
            timeout_graceful_shutdown=_PATIENCE_SECONDS,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="http", daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(_LOOK_SECONDS)
        try:
            host, port = bound.getsockname()[:2]
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()


def _bound(listen: str) -> socket.socket:
    host, port = address_of(listen)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise PlatformError(f"The server cannot listen on {listen}: {error.strerror}.", hint=_ANOTHER) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise PlatformError(f"The server cannot listen on {listen}: {error.strerror}.", hint=_ANOTHER) from error
    return bound


_ANOTHER = "Name another place: --listen 127.0.0.1:8485. To answer nothing: --roles triggers,workers"


def address_of(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the largest port there is
        raise UserError(f"listen is {listen!r}, expected HOST:PORT.", hint="For instance: --listen 127.0.0.1:8484")
    return host.strip("[]"), int(port)
