"""A statement's words, as Spark's lexer separates them: how it begins, and which names it says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from dalsegno.spark.forms.form import Doubt, Name
from dalsegno.spark.statements import Token, tokens_of

_NUMBER = re.compile(r"\d+(?:E\d+)?(?:[LSYDF]|BD)?\Z")
_CLOSED = re.compile(r"""[rR]('[^']*'|"[^"]*")|'([^'\\]|\\.|'')*'|"([^"\\]|\\.|"")*"|`([^`]|``)*`""", re.DOTALL)
_NOW = re.compile(r"""[rR]?['"]\s*(?:now|today|yesterday|tomorrow)\b""", re.IGNORECASE)
_QUERY_WORDS = frozenset({"SELECT", "VALUES", "TABLE", "FROM", "MAP", "REDUCE"})


class Words:
    """The tokens of a statement, read from left to right."""

    def __init__(self, statement: str) -> None:
        self.text = statement
        self.tokens: Sequence[Token] = list(tokens_of(statement))
        while self.tokens and self.tokens[-1].word == ";":
            self.tokens = self.tokens[:-1]
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """The next word in upper case; empty for strings, quoted names and the end."""
        at = self.at + ahead
        return self.tokens[at].word if at < len(self.tokens) else ""

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def take(self, *words: str) -> bool:
        """Whether exactly these words come next; then go on behind them."""
        if any(self.peek(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def take_any(self, words: Collection[str]) -> str:
        word = self.peek()
        if word and word in words:
            self.at += 1
            return word
        return ""

    def name(self) -> Name:
        """The name that comes next, with all its parts."""
        parts = [self._part()]
        while self.peek() == ".":
            self.at += 1
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> str:
        if self.is_at_end:
            raise Doubt("a name is missing")
        token = self.tokens[self.at]
        if token.word == "IDENTIFIER" and self.peek(1) == "(":
            raise Doubt("IDENTIFIER(…) names something when it is executed")
        if not is_name(token):
            raise Doubt(f"a name is expected where {token.text[:30]!r} stands")
        self.at += 1
        return unquoted(token)

    def skip_parentheses(self) -> None:
        """Go on behind the parenthesis that closes the one that comes next."""
        depth = 0
        while not self.is_at_end:
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self.at += 1
            if depth == 0:
                return
        raise Doubt("a parenthesis is not closed")

    def skip_queries_with_names(self) -> None:
        """Go on behind ``WITH name AS (…), …``."""
        if not self.take("WITH"):
            return
        if self.peek() == "RECURSIVE" and self.peek(1) not in ("AS", "("):
            self.at += 1
        while True:
            self.name()
            if self.peek() == "(" and self._is_followed_by_query():
                self.skip_parentheses()
            if self.take("MAX", "RECURSION", "LEVEL"):
                self.at += 1
            self.take("AS")
            if self.peek() != "(":
                raise Doubt("a query in parentheses is expected after WITH")
            self.skip_parentheses()
            if not self.take(","):
                return

    def _is_followed_by_query(self) -> bool:
        """Whether what is in parentheses here is a list of columns, because its query comes next."""
        begin = self.at
        self.skip_parentheses()
        found = self.peek() in ("AS", "(") or [self.peek(ahead) for ahead in range(3)] == ["MAX", "RECURSION", "LEVEL"]
        self.at = begin
        return found

    def has(self, *words: str) -> bool:
        """Whether these words stand somewhere from here on, one behind the other."""
        rest = [token.word for token in self.tokens[self.at :]]
        return any(rest[at : at + len(words)] == list(words) for at in range(len(rest) - len(words) + 1))

    def may_have_query(self) -> bool:
        """Whether there may be a query from here on: none goes without one of these words."""
        rest = [token.word for token in self.tokens[self.at :]]
        # MAP<…> is a type.
        return any(word in _QUERY_WORDS and rest[at + 1 : at + 2] != ["<"] for at, word in enumerate(rest))


def is_name(token: Token) -> bool:
    if token.text.startswith("`"):
        return len(token.text) > 2 and token.text.endswith("`")  # noqa: PLR2004
    return bool(re.fullmatch(r"\w+", token.word)) and not _NUMBER.match(token.word)


def is_string(token: Token) -> bool:
    return token.word == "" and not token.text.startswith("`")


def is_closed(token: Token) -> bool:
    """Whether a string or a quoted name ends where it should, not with the text."""
    return token.word != "" or bool(_CLOSED.fullmatch(token.text))


def unquoted(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.text.startswith("`") else token.text


def for_parser(tokens: Sequence[Token]) -> str:
    """A part of a statement as sqlglot understands it, never to be executed.

    Comments are gone and strings say nothing, so that both lexers see the same words, but for those that stand for a
    moment, as in ``date'today'``; names are quoted where they begin with a digit.
    """
    pieces: list[str] = []
    end = 0
    for token in _without_long_lists(tokens):
        pieces.append(" " if token.start > end else "")
        end = token.start + len(token.text)
        if is_string(token):
            pieces.append("'now'" if _NOW.match(token.text) else "'11'")
        elif token.word[:1].isdigit() and is_name(token):
            pieces.append(f"`{token.text}`")
        else:
            pieces.append(token.text)
    return "".join(pieces)


def _without_long_lists(tokens: Sequence[Token]) -> Iterator[Token]:
    """Leave out literals between two others: thousands in an IN take the parser seconds and say nothing."""
    at = 0
    while at < len(tokens):
        if (
            tokens[at].word == ","
            and at + 2 < len(tokens)
            and tokens[at + 2].word == ","
            and _is_literal(tokens[at + 1])
            and _is_literal(tokens[at - 1])
        ):
            at += 2
        else:
            yield tokens[at]
            at += 1


def _is_literal(token: Token) -> bool:
    return bool(_NUMBER.match(token.word)) if token.word else is_string(token) and not _NOW.match(token.text)
