"""Colours, on terminals only.

Text functions paint words with marks that hold a secret of this process. A ``Terminal`` turns these marks, and nothing
else, into escape sequences. So no name, log or error can colour or hide anything, whatever it contains.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_SECRET = os.urandom(8).hex()
_MARK = re.compile(f"⟦{_SECRET}:([0-9]+)⟧")
RESET = f"⟦{_SECRET}:0⟧"


def are_wanted(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a stream gets colours: https://no-color.org, and FORCE_COLOR or CLICOLOR_FORCE for pipes."""
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"


def paint(text: str, colour: str | None, *, stream: TextIO | None = None) -> str:
    """The text with marks around it, if standard output, or another stream, has colours."""
    has_colours = getattr(sys.stdout if stream is None else stream, "has_colours", False)
    return f"⟦{_SECRET}:{_CODES[colour]}⟧{text}{RESET}" if text and colour and has_colours else text


def shown(text: str) -> str:
    """The text with escape sequences where its marks are."""
    return _MARK.sub("\x1b[\\1m", text) if _SECRET in text else text


def plain(text: str) -> str:
    """The text without marks."""
    return _MARK.sub("", text) if _SECRET in text else text


def pieces(text: str) -> list[tuple[str, bool]]:
    """The text in pieces: each is a mark as a whole, or one character."""
    found: list[tuple[str, bool]] = []
    end = 0
    for mark in _MARK.finditer(text):
        found += [(each, False) for each in text[end : mark.start()]]
        found.append((mark[0], True))
        end = mark.end()
    return [*found, *((each, False) for each in text[end:])]
