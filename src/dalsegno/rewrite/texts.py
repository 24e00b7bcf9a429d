"""The text of a query: where things stand in it, and other tables put into it. What is not replaced stays as it is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp, parse
from sqlglot.errors import ParseError, SqlglotError

from dalsegno.errors import UserError
from dalsegno.spark.statements import Token, tokens_of

# It warns of what it cannot parse, and the tree shows it as well.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


#: What a quoted text or name is like that ends.
_QUOTED = re.compile(
    r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|`(?:[^`]|``)*+`""", re.DOTALL
)


@dataclass(frozen=True)
class Edit:
    """A part of a text, and what replaces it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Place:
    """Where something stands, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class QueryText:
    """A query as the user wrote it, without a semicolon at its end."""

    text: str

    @classmethod
    def of(cls, text: str) -> QueryText:
        tokens = list(tokens_of(text))
        while tokens and tokens[-1].word == ";":
            tokens.pop()
        if not tokens:
            raise UserError("The query is empty.", hint="Give the SELECT that computes the whole table.")
        if ";" in {token.word for token in tokens}:
            raise UserError("The query has several statements.", hint="Give one SELECT.")
        return cls(text[: _end(tokens[-1])])

    def parsed(self) -> exp.Query:
        """The query as a tree; positions in it are positions in the text."""
        *_, last = tokens_of(self.text)
        if not last.word and not _QUOTED.fullmatch(last.text):
            raise UserError(
                f"The query cannot be parsed: what is quoted from {self.place(last.start)} on does not end.",
                hint=f"Add {last.text.lstrip('rR')[0]} where it ends.",
            )
        try:
            trees = parse(_for_parser(self.text), read="spark")
        except (SqlglotError, RecursionError) as error:
            raise UserError(
                f"The query cannot be parsed: {_reason(error)}.",
                hint="If Spark runs it, this part is not supported: write it differently.",
            ) from error
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise UserError("The query is not a SELECT.", hint="Give the SELECT that computes the whole table.")
        return trees[0]

    def place(self, start: int) -> Place:
        before = self.text[:start]
        return Place(before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1)

    def place_of(self, node: exp.Expr) -> Place | None:
        """Where a part of the tree begins, or the smallest part around it that has a place."""
        at: exp.Expr | None = node
        while at is not None:
            starts = [found.meta["start"] for found in at.walk() if "start" in found.meta]
            if starts:
                return self.place(min(starts))
            at = at.parent
        return None

    def edited(self, edits: Iterable[Edit]) -> str:
        pieces, at = [], 0
        for edit in sorted(edits, key=lambda edit: edit.start):
            pieces += [self.text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*pieces, self.text[at:]])


def _reason(error: Exception) -> str:
    """What the parser found, and where; its own words name its internals."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else None
    if found is None:
        return "it is nested too deeply" if isinstance(error, RecursionError) else "it cannot be split into words"
    return f"line {found['line']}, column {found['col']} does not fit, near {found['highlight']!r}"


def _for_parser(text: str) -> str:
    """The same with comments blanked and strings made harmless, so that positions stay as they are.

    sqlglot reads escapes and nested comments differently than Spark does.
    """
    pieces, at = [], 0
    for token in tokens_of(text):
        pieces.append("".join(c if c.isspace() else " " for c in text[at : token.start]))
        pieces.append(_harmless(token))
        at = _end(token)
    return "".join(pieces)


def _harmless(token: Token) -> str:
    if token.word or token.text.startswith("`"):
        return token.text
    inner = token.text[1:-1]
    if token.text[0] == "'" and not set(inner) & {"'", "\\"}:
        return token.text
    # Equal strings stay equal, and no other becomes equal to them but by a collision of hashes of the same length.
    filler = f"{abs(hash(inner)):x}" * (len(token.text) // 8 + 1)
    return "'" + filler[: len(token.text) - 2] + "'"


def _end(token: Token) -> int:
    return token.start + len(token.text)
