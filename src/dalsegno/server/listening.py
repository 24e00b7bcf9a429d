"""HTTP servers, each in a thread beside what else the service does."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.operations.service import Service
from dalsegno.server.answers import SafeAnswers
from dalsegno.server.api import Api
from dalsegno.server.connections import Connection, Connections
from dalsegno.server.descriptors import connection_limit
from dalsegno.server.log_limits import limited_logs
from dalsegno.server.probes import Probes

log = logging.getLogger(__name__)

#: How long open requests may take once the service is to end.
_PATIENCE_SECONDS = 5
#: How often to look whether it has begun to listen.
_LOOK_SECONDS = 0.005
#: How many connections are accepted in one go: so many descriptors may be in use for a moment beyond the limit.
_ACCEPTED_AT_ONCE = 16
#: How many may wait for that.
_BACKLOG = 256
#: Probes come from few places, and are short.
_MOST_PROBES = 32


@contextmanager
def listening(service: Service, listen: str) -> Iterator[str]:
    """Answer requests until the block ends; where, as HOST:PORT."""
    with _serving(Api(service).app(), listen, "listen", connection_limit()) as place:
        if not is_loopback(place):
            log.warning(
                "%s is plain HTTP that other machines can reach: whoever sees the network can read tokens and data."
                " Put a proxy with TLS in front of it, or listen on 127.0.0.1",
                place,
            )
        yield place


@contextmanager
def answering_probes(service: Service, listen: str) -> Iterator[str]:
    """Answer /health and /ready on a listener of their own, so that nothing else can hold them up."""
    with _serving(Probes(service).app(), listen, "probes", _MOST_PROBES) as place:
        yield place


@contextmanager
def _serving(app: ASGIApp, listen: str, setting: str, most: int) -> Iterator[str]:
    with _bound(listen, setting) as bound, limited_logs():
        config = uvicorn.Config(
            SafeAnswers(app),
            loop="asyncio",
            http=cast(type[asyncio.Protocol], partial(Connection, Connections(most))),
            ws="none",
            lifespan="off",
            access_log=False,
            # Our own settings of logs stay.
            log_config=None,
            server_header=False,
            # Whoever sends X-Forwarded-For could choose who he is.
            proxy_headers=False,
            backlog=_ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=_PATIENCE_SECONDS,
        )
        server = _Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="http", daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(_LOOK_SECONDS)
        # asyncio takes one number for both.
        bound.listen(_BACKLOG)
        try:
            host, port = bound.getsockname()[:2]
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn waits a while for connections, and leaves those that are still there as they are."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            cast(Connection, connection).abort()
        await asyncio.sleep(0)


def is_loopback(place: str) -> bool:
    return ip_address(address_of(place, "listen")[0].partition("%")[0]).is_loopback


def _bound(listen: str, setting: str) -> socket.socket:
    host, port = address_of(listen, setting)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(listen, setting, error) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise _cannot_listen(listen, setting, error) from error
    return bound


def _cannot_listen(listen: str, setting: str, error: OSError) -> PlatformError:
    actions = [Action("Name another place", Verb.START_SERVER, {setting: "127.0.0.1:8485"})]
    if setting == "listen":
        actions.append(action("To answer nothing", Verb.START_SERVER, roles="triggers,workers"))
    return PlatformError(f"The server cannot listen on {listen}: {error.strerror}.", actions=actions)


def address_of(text: str, setting: str = "listen") -> tuple[str, int]:
    # A setting may be a number, which is no address either.
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:  # noqa: PLR2004 - the largest port there is
        raise UserError(f"{setting} is {text!r}, expected HOST:PORT.", hint=f"For instance: --{setting} 127.0.0.1:8484")
    return host.strip("[]"), int(port)
