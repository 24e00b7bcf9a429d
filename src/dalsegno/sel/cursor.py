"""A place among the tokens, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dalsegno.errors import SelError
from dalsegno.sel.faults import Fault
from dalsegno.sel.lexer import Token
from dalsegno.sel.limits import Limits

_UNSUPPORTED = {
    "++": "Write i += 1.",
    "--": "Write i -= 1.",
    "&": "Write && for a logical and; there are no operators on bits.",
    "|": "Write || for a logical or; there are no operators on bits.",
    "do": "Write while (...) { ... }.",
    "switch": "Write if (...) ... else if (...) ...",
    "try": "Nothing can be caught; test first, with if.",
    "instanceof": "Every variable keeps the type of its first value.",
    "final": "Leave it out.",
    "char": "Write String.",
    "byte": "Write int.",
    "short": "Write int.",
}


class Cursor:
    def __init__(self, source: str, found: list[Token], limits: Limits) -> None:
        self._source = source
        self._tokens = found
        self._limits = limits
        self._position = 0
        self._depth = 0

    @property
    def _here(self) -> Token:
        return self._tokens[self._position]

    def _ahead(self, count: int) -> str:
        return self._tokens[min(self._position + count, len(self._tokens) - 1)].kind

    def _advance(self) -> Token:
        token = self._here
        if token.kind == "end":
            raise self._unexpected("more")
        self._position += 1
        return token

    def _sees(self, kind: str) -> bool:
        return self._tokens[self._position].kind == kind

    def _take(self, kind: str) -> bool:
        if self._sees(kind):
            self._position += 1
            return True
        return False

    def _expect(self, kind: str, *, hint: str | None = None) -> Token:
        if not self._sees(kind):
            raise self._unexpected("a name" if kind == "name" else kind, hint=hint)
        return self._advance()

    def _end_of_statement(self) -> None:
        if not self._sees("end"):
            self._expect(";", hint="Statements end with a semicolon.")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > self._limits.depth:
            raise self._fault(
                f"the expression is nested deeper than {self._limits.depth}",
                self._here,
                hint="Use variables for its parts.",
            )
        yield
        self._depth -= 1

    def _fault(self, message: str, token: Token, *, hint: str | None = None) -> SelError:
        return Fault(message, hint=hint).at(self._source, token.at)

    def _unexpected(self, expected: str, *, hint: str | None = None) -> SelError:
        found = self._here
        shown = found.text if found.kind == "end" else f"'{found.text:.40}'"
        return self._fault(f"expected {expected}, found {shown}", found, hint=_UNSUPPORTED.get(found.kind, hint))
