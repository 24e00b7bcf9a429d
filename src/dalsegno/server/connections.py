"""Connections: deadlines for those who send them, and limits on how many there are.

uvicorn reads a request for as long as it takes, and keeps any number of connections that send nothing. Here a peer has
a deadline for the head of a request, for its body, and for taking the answer. When there are too many connections, a
new one takes the place of the one that has waited longest for its peer, of the peer that has most of these: so whoever
opens many connections closes his own, and a request that comes is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from dalsegno.server.answers import raw_error
from dalsegno.server.peers import peer_of
from dalsegno.server.strict_http import make_strict

log = logging.getLogger(__name__)

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
ANSWER_SECONDS = 30.0
#: How long a connection that we end may take to end: time for the peer to read why.
LINGER_SECONDS = 2.0
#: What the peer still owes us.
_DEADLINES = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}


class Connections:
    """Those that one listener has."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_per_peer = max(most // 2, 1)
        self._count_by_peer: Counter[str] = Counter()
        #: By peer those that wait for a request, for an answer to be taken, or for their end; the oldest first.
        self._waiting: dict[str, dict[Connection, None]] = {}

    def admit(self, connection: Connection) -> bool:
        """False: there are too many, and all are being answered."""
        has_room = True
        if self._count_by_peer[connection.peer] >= self.most_per_peer:
            has_room = self._end_one(self._waiting.get(connection.peer, {}))
        elif self._count_by_peer.total() >= self.most:
            has_room = self._end_one(max(self._waiting.values(), key=len, default={}))
        self._count_by_peer[connection.peer] += 1
        connection.is_counted = True
        return has_room

    def _end_one(self, waiting: dict[Connection, None]) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is None:
            return False
        self.forget(oldest)
        oldest.abort()
        return True

    def wait(self, connection: Connection) -> None:
        if connection.is_counted:
            self._waiting.setdefault(connection.peer, {})[connection] = None

    def work(self, connection: Connection) -> None:
        waiting = self._waiting.get(connection.peer, {})
        waiting.pop(connection, None)
        if not waiting:
            self._waiting.pop(connection.peer, None)

    def forget(self, connection: Connection) -> None:
        self.work(connection)
        if connection.is_counted:
            connection.is_counted = False
            self._count_by_peer[connection.peer] -= 1
            if not self._count_by_peer[connection.peer]:
                del self._count_by_peer[connection.peer]


class Connection(H11Protocol):
    """One connection, as uvicorn knows it, with deadlines."""

    def __init__(self, others: Connections, **made_by_uvicorn: Any) -> None:
        super().__init__(**made_by_uvicorn)
        make_strict(self.conn)
        self.logger = log
        self.others = others
        self.peer = ""
        self.is_counted = False
        self._real: asyncio.Transport | None = None
        self._is_closing = False
        self._owed: object = None
        self._deadline: asyncio.TimerHandle | None = None
        self._answer_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in H11Protocol
        self._real = transport
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self._close, lambda: self._is_closing)))
        self.peer = peer_of(self.client[0] if self.client else None)
        if self.others.admit(self):
            self._follow()
        else:
            log.warning("refused a connection: there are too many")
            self._refuse(503, "There are too many connections. Try again.")

    def data_received(self, data: bytes) -> None:
        if not self._is_closing:
            super().data_received(data)
            self._follow()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._follow()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def shutdown(self) -> None:
        if self._is_closing:
            return
        if self.conn.their_state is h11.SEND_BODY:
            self._refuse(503, "The server is about to end.")
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._answer_deadline)
        self._answer_deadline = self.loop.call_later(ANSWER_SECONDS, self.abort)
        # Anybody can ask for a lot and take none of it: such a connection is one of those that can make room.
        self.others.wait(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._answer_deadline)
        if not self._is_closing and self._owed is not h11.IDLE:
            self.others.work(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        super().connection_lost(exc)
        _cancel(self._deadline)
        _cancel(self._answer_deadline)
        self.others.forget(self)

    def abort(self) -> None:
        self._is_closing = True
        if self._real is not None:
            self._real.abort()

    def _follow(self) -> None:
        """Set the deadline for what the peer owes us now; more bytes of the same do not move it."""
        if self._is_closing or self.conn.their_state is self._owed:
            return
        self._owed = self.conn.their_state
        _cancel(self._deadline)
        seconds = _DEADLINES.get(self._owed)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._be_late)
        if self._owed is h11.IDLE:
            self.others.wait(self)
        else:
            self.others.work(self)

    def _be_late(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()
        else:
            self._refuse(408, "The request did not arrive in time.")

    def _refuse(self, status: int, message: str) -> None:
        """Answer, unless somebody is about to, and end the connection."""
        is_answering = False
        # uvicorn's types leave out that there is none before the first request.
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            is_answering = cycle.response_started
            cycle.disconnected = True
            cycle.message_event.set()
        if self._real is not None and not is_answering:
            self._real.write(raw_error(status, message))
        self.transport.close()

    def _close(self) -> None:
        """End the connection; if more of a request is to come, let the peer read the answer before."""
        if self._is_closing or self._real is None:
            return
        self._is_closing = True
        self.others.wait(self)
        _cancel(self._deadline)
        self._deadline = self.loop.call_later(LINGER_SECONDS, self._real.abort)
        if self.conn.their_state in (h11.SEND_BODY, h11.ERROR):
            # Closing while bytes arrive resets the connection, and what was answered is lost.
            self._real.write_eof()
            self._real.resume_reading()
        else:
            self._real.close()


class _Transport:
    """The transport that uvicorn sees: it closes as a connection does."""

    def __init__(self, real: asyncio.Transport, close: Callable[[], None], is_closing: Callable[[], bool]) -> None:
        self._real, self.close, self._is_closing = real, close, is_closing

    def is_closing(self) -> bool:
        return self._is_closing() or self._real.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
