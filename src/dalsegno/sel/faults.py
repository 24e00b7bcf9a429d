"""What goes wrong inside an expression, before anybody has said where."""

from __future__ import annotations

from collections.abc import Iterable

from dalsegno.errors import SelError
from dalsegno.hints import closest
from dalsegno.sel.texts import from_utf16


class Fault(Exception):
    """A sentence without its place: whoever knows the place turns it into a ``SelError``."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def at(self, source: str, offset: int) -> SelError:
        """The error for people, at this place of the expression."""
        before = source[:offset]
        line = before.count("\n") + 1
        column = offset - (before.rfind("\n") + 1) + 1
        return SelError(f"{from_utf16(self.message)}.", line=line, column=column, hint=self.hint)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names what was probably meant, if anything is near."""
    near = closest(name, sorted(set(known)))
    return f"Did you mean {near}?" if near else None
