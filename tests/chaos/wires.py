"""Wires between nodes and the database, which can be cut."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from types import TracebackType
from typing import Self

from tests.services.ports import LOOPBACK

_LOOK_SECONDS = 0.05


class Wire:
    """A port that leads to another. Cut, it loses its connections and takes no new ones, or it just falls silent."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._is_cut = False
        self._may_flow = threading.Event()
        self._may_flow.set()
        self._is_closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self.mend()
        self._listener.close()
        self._lose_all()

    def cut(self, *, silently: bool) -> None:
        if silently:
            self._may_flow.clear()
        else:
            self._is_cut = True
            self._lose_all()

    def mend(self) -> None:
        self._is_cut = False
        self._may_flow.set()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            try:
                far = socket.create_connection((LOOPBACK, self._to))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while not self._is_closed:
                self._may_flow.wait()
                for key, _ in selector.select(_LOOK_SECONDS):
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(65536)
                    if not data:
                        return self._lose(near, far)
                    self._may_flow.wait()
                    key.data.sendall(data)
        return self._lose(near, far)

    def _lose(self, near: socket.socket, far: socket.socket) -> None:
        with self._lock:
            if (near, far) in self._pairs:
                self._pairs.remove((near, far))
        for each in (near, far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _lose_all(self) -> None:
        for pair in list(self._pairs):
            self._lose(*pair)
