"""What a terminal gets to see: text, and no control characters that came with it from outside.

Names, messages and logs come from jobs, from tables, and from whoever may start a run. An escape sequence can hide what
was printed, set the terminal's title, or write to the clipboard. What is piped elsewhere is not changed.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO, cast

from dalsegno.operations.printable import escaped


class Terminal:
    """A stream to a terminal: shows control characters as \\u001b and the like, but for newlines and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(escaped(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def protect_terminal() -> None:
    """Let everything that this process prints on a terminal go through one."""
    if sys.stdout.isatty():
        sys.stdout = cast(TextIO, Terminal(sys.stdout))
    if sys.stderr.isatty():
        sys.stderr = cast(TextIO, Terminal(sys.stderr))


def control(sequence: str) -> None:
    """Send the terminal an escape sequence of our own."""
    stream: Any = sys.stdout
    (stream.stream if isinstance(stream, Terminal) else stream).write(sequence)
