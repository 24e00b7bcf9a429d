"""What h11 forgives and RFC 9112 lets a server refuse: where a proxy and we could disagree about where a request ends.

A request that one of the two reads as two can carry another one past the proxy's checks (request smuggling).
"""

from __future__ import annotations

import re

import h11
from h11._receivebuffer import ReceiveBuffer

_HALF_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_FRAMING = (b"content-length", b"transfer-encoding")


def make_strict(connection: h11.Connection) -> None:
    """Before it has received anything. h11 has no option for it, so this replaces a part of it."""
    connection._receive_buffer = _StrictBuffer()


class _StrictBuffer(ReceiveBuffer):
    """Where h11 finds the head of a request, and the trailers of a chunked body."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None:
            _check(before[: len(before) - len(self)], lines)
        return lines


def _check(head: bytes, lines: list[bytearray]) -> None:
    if _HALF_LINE_END.search(head):
        raise h11.LocalProtocolError("Lines must end with CR LF.")
    if any(line.startswith((b" ", b"\t")) for line in lines):
        raise h11.LocalProtocolError("A header must not be folded over several lines.")
    headers = [line.partition(b":") for line in lines]
    framing = [(bytes(name).lower(), value) for name, _, value in headers if name.lower() in _FRAMING]
    if len(framing) > 1 or any(name == b"content-length" and b"," in value for name, value in framing):
        raise h11.LocalProtocolError("There must be one Content-Length or one Transfer-Encoding.")
    if framing and framing[0][0] == b"transfer-encoding" and not lines[0].endswith(b"HTTP/1.1"):
        raise h11.LocalProtocolError("Transfer-Encoding needs HTTP/1.1.")
