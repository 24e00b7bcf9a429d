"""What a terminal gets to see: text, our own colours, and no control characters that came from outside.

Names, messages and logs come from jobs, from tables, and from whoever may start a run. An escape sequence can hide what
was printed, set the terminal's title, or write to the clipboard. What is piped elsewhere is not changed.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO, cast

from dalsegno.cli import colours
from dalsegno.operations.printable import escaped


class Terminal:
    """A stream to a terminal: shows control characters as \\u001b and the like, but for newlines and tabs."""

    def __init__(self, stream: TextIO, *, has_colours: bool = False) -> None:
        self.stream = stream
        self.has_colours = has_colours
        # A pipe can have colours, too, if somebody forces them.
        self._escapes = stream.isatty()

    def write(self, text: str) -> int:
        safe = escaped(text) if self._escapes else text
        return self.stream.write(colours.shown(safe) if self.has_colours else safe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def protect_terminal() -> None:
    """Let everything that this process prints on a terminal go through one."""
    sys.stdout, sys.stderr = _protected(sys.stdout), _protected(sys.stderr)


def _protected(stream: TextIO) -> TextIO:
    has_colours = colours.are_wanted(stream)
    if not (stream.isatty() or has_colours):
        return stream
    return cast(TextIO, Terminal(stream, has_colours=has_colours))


def control(sequence: str) -> None:
    """Send the terminal an escape sequence of our own."""
    stream: Any = sys.stdout
    (stream.stream if isinstance(stream, Terminal) else stream).write(sequence)
