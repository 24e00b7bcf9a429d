"""Where one SQL statement ends and the next begins, as Spark's lexer sees it.

Semicolons in strings, quoted names and comments separate nothing, nor do those inside ``BEGIN … END``: a compound
statement is handed to Spark whole. What is left open goes to the end of the text, and Spark says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Quantifiers are possessive (``*+``): a string that does not end must not be read in another way instead.
_TOKEN = re.compile(
    r"""
      (?P<blank>\s+)
    | (?P<line_comment>--(?:\\\n|[^\r\n])*+)              # a backslash continues it
    | (?P<comment>/\*(?!\+))                              # its end is found by counting, because they nest
    | (?P<quoted>
          [rR](?:'[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z))         # raw: a backslash is a backslash
        | '(?:[^'\\]|\\.|'')*+(?:'|\\?\Z)
        | "(?:[^"\\]|\\.|"")*+(?:"|\\?\Z)
        | `(?:[^`]|``)*+(?:`|\Z)
      )
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_INSIGNIFICANT = ("blank", "line_comment", "comment")

#: Inside a compound statement, one begins after these.
_BOUNDARIES = frozenset({";", ":", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
#: After END, they say that it ends something else than BEGIN.
_OTHER_BLOCKS = frozenset({"IF", "CASE", "WHILE", "LOOP", "REPEAT", "FOR"})


@dataclass(frozen=True)
class Token:
    """Something that is neither blank nor a comment."""

    #: In upper case; empty for strings and quoted names, which mean nothing here.
    word: str
    start: int
    #: As it is written.
    text: str


def statements(text: str) -> list[str]:
    """The statements of a text in order, without the semicolons between them."""
    tokens = list(tokens_of(text))
    found: list[str] = []
    begin, first = 0, 0
    while first < len(tokens):
        after = _end_of_statement(tokens, first)
        end = tokens[after].start if after < len(tokens) else len(text)
        if after > first:
            found.append(text[begin:end].strip())
        begin, first = end + 1, after + 1
    return found


def tokens_of(text: str) -> Iterator[Token]:
    at = 0
    while match := _TOKEN.match(text, at):
        at = _end_of_comment(text, match.end()) if match.lastgroup == "comment" else match.end()
        if match.lastgroup not in _INSIGNIFICANT:
            word = "" if match.lastgroup == "quoted" else match[0].upper()
            yield Token(word, match.start(), match[0])


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _end_of_statement(tokens: list[Token], first: int) -> int:
    """Where the semicolon is that ends the statement; beyond all tokens if none does."""
    depth, handles = 0, False
    before = ";"
    for at in range(first, len(tokens)):
        word = tokens[at].word
        if word == ";" and depth == 0:
            return at
        # ``DECLARE … HANDLER FOR …`` is followed by a statement.
        handles = word == "HANDLER" or (handles and before != ";")
        is_compound = depth > 0 or at == first or (at == first + 2 and before == ":")
        if word == "BEGIN" and is_compound and (before in _BOUNDARIES or handles):
            depth, handles = depth + 1, False
        elif word == "END" and depth > 0 and before in (";", "BEGIN") and _next(tokens, at) not in _OTHER_BLOCKS:
            depth -= 1
        before = word
    return len(tokens)


def _next(tokens: list[Token], at: int) -> str:
    return tokens[at + 1].word if at + 1 < len(tokens) else ""


#: What a statement that writes may begin with, and the words that may stand before the table's name then.
_WRITES = {
    "INSERT": frozenset({"INTO", "OVERWRITE", "TABLE"}),
    "MERGE": frozenset({"WITH", "SCHEMA", "EVOLUTION", "INTO"}),
    "UPDATE": frozenset[str](),
    "DELETE": frozenset({"FROM"}),
    "CREATE": frozenset({"OR", "REPLACE", "TABLE", "IF", "NOT", "EXISTS"}),
    "REPLACE": frozenset({"TABLE"}),
}


#: What a statement may begin with that only returns rows.
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE"})


def target_of(statement: str) -> str | None:
    """The table that a statement writes to, as it is written there; None if it writes to none, or that is unclear."""
    tokens = list(tokens_of(statement))
    at = _after_queries_with_names(tokens)
    if at >= len(tokens) or tokens[at].word not in _WRITES:
        return None
    skipped = _WRITES[tokens[at].word]
    begin = at = at + 1
    while at < len(tokens) and tokens[at].word in skipped:
        at += 1
    if "TABLE" in skipped and "INTO" not in skipped and "TABLE" not in {token.word for token in tokens[begin:at]}:
        # A view, a function, a namespace.
        return None
    name = ""
    while at < len(tokens) and (tokens[at].word.isidentifier() or tokens[at].text.startswith("`")):
        name += tokens[at].text
        if _next(tokens, at) != ".":
            # ``IDENTIFIER(…)`` and directories are no names.
            return None if _next(tokens, at) == "(" and name.upper() == "IDENTIFIER" else name
        name += "."
        at += 2
    return None


def is_query(statement: str) -> bool:
    """Whether a statement does nothing but return rows; False if that is unclear."""
    tokens = list(tokens_of(statement))
    words = {token.word for token in tokens}
    return bool(tokens) and tokens[0].word in _QUERIES and target_of(statement) is None and not words & set(_WRITES)


def _after_queries_with_names(tokens: list[Token]) -> int:
    """Where the statement itself begins, behind ``WITH name AS (…), …``."""
    if not tokens or tokens[0].word != "WITH":
        return 0
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth == 0 and token.word in _WRITES:
            return at
    return len(tokens)
