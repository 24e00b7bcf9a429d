"""Facts about the data that a strategy may depend on: what the author of a table states, and what it needs besides.

A fact is written as a text::

    [trusted] event_id -> event_day [in lake.media.playback]
    [trusted] unique order_id [in lake.shop.orders]
    [trusted] no ties

NULL is a value like any other here, as it is in GROUP BY and PARTITION BY: two rows whose ``order_id`` is NULL are not
unique. A fact is checked before a run writes, unless it is trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from dalsegno.errors import UserError
from dalsegno.spark.statements import Token, tokens_of

Columns = tuple[str, ...]
_HINT = (
    "Write 'event_id -> event_day', 'unique order_id' or 'no ties'; a name that is no plain word stands in `backticks`."
)


class FactKind(StrEnum):
    #: Rows that agree in some columns agree in others.
    DETERMINES = "determines"
    #: No two rows agree in all of the columns.
    UNIQUE = "unique"
    #: No two different rows agree in the PARTITION BY and the ORDER BY of a window function.
    NO_TIES = "no ties"
    #: A sum stays so small that floating point holds it exactly.
    SMALL_SUM = "small sum"
    #: A probe returns nothing.
    PROBE = "probe"


@dataclass(frozen=True)
class Fact:
    """What is so of the data, as somebody says."""

    kind: FactKind
    columns: Columns = ()
    determined: Columns = ()
    #: The source; None: the one that has the columns.
    table: tuple[str, ...] | None = None
    is_trusted: bool = False

    def __str__(self) -> str:
        trusted = "trusted " if self.is_trusted else ""
        place = f" in {'.'.join(map(_written, self.table))}" if self.table else ""
        return f"{trusted}{self.statement()}{place}"

    def statement(self) -> str:
        """Without the table that it is about."""
        names = ", ".join(map(_written, self.columns))
        match self.kind:
            case FactKind.DETERMINES:
                return f"{names} -> {', '.join(map(_written, self.determined))}"
            case FactKind.UNIQUE:
                return f"unique {names}"
            case FactKind.NO_TIES:
                return f"no ties in the ORDER BY of {names}" if names else "no ties"
            case FactKind.SMALL_SUM:
                return f"the sum behind {names} stays below 2^53"
            case FactKind.PROBE:
                return "its probe finds nothing"

    @property
    def is_about_a_table(self) -> bool:
        return self.kind in (FactKind.DETERMINES, FactKind.UNIQUE)


def _written(name: str) -> str:
    is_plain = name.isidentifier() and name.lower() not in ("unique", "trusted", "no", "in")
    return name if is_plain else "`" + name.replace("`", "``") + "`"


# Read what the author writes.


def fact_of(text: str) -> Fact:
    """One fact; a ``UserError`` says what is not understood."""
    words = list(tokens_of(text))
    is_trusted = bool(words) and words[0].word == "TRUSTED"
    rest = words[1:] if is_trusted else words
    rest = rest[1:] if is_trusted and rest and rest[0].word == ":" else rest
    if [token.word for token in rest] == ["NO", "TIES"]:
        return Fact(FactKind.NO_TIES, is_trusted=is_trusted)
    at = next((number for number, token in enumerate(rest) if token.word == "IN"), len(rest))
    table = _name(text, rest[at + 1 :]) if at < len(rest) else None
    said = rest[:at]
    if said and said[0].word == "UNIQUE":
        return Fact(FactKind.UNIQUE, _columns(text, said[1:]), (), table, is_trusted)
    arrow = next((number for number, (one, other) in enumerate(pairwise(said)) if one.text + other.text == "->"), None)
    if arrow is None:
        raise _mistake(text)
    return Fact(FactKind.DETERMINES, _columns(text, said[:arrow]), _columns(text, said[arrow + 2 :]), table, is_trusted)


def _columns(text: str, words: Sequence[Token]) -> Columns:
    names, separators = words[::2], words[1::2]
    if not words or len(words) % 2 == 0 or any(each.text != "," for each in separators):
        raise _mistake(text)
    return tuple(_identifier(text, each) for each in names)


def _name(text: str, words: Sequence[Token]) -> tuple[str, ...]:
    if len(words) % 2 == 0 or any(each.text != "." for each in words[1::2]):
        raise _mistake(text)
    return tuple(_identifier(text, each) for each in words[::2])


def _identifier(text: str, token: Token) -> str:
    if token.text.startswith("`") and len(token.text) > 2:  # noqa: PLR2004 - the backticks
        return token.text[1:-1].replace("``", "`")
    if not token.text.replace("_", "a").isalnum():
        raise _mistake(text)
    return token.text


def _mistake(text: str) -> UserError:
    return UserError(f"The fact {text!r} is not understood.", hint=_HINT)


# What follows from facts.


def closure(columns: Iterable[str], facts: Iterable[Fact], every: Collection[str]) -> frozenset[str]:
    """All columns of a table, in lower case, that some columns determine."""
    known = {column.lower() for column in columns}
    rules = [
        (frozenset(map(str.lower, fact.columns)), set(map(str.lower, _follows(fact, every))))
        for fact in facts
        if fact.is_about_a_table
    ]
    is_growing = True
    while is_growing:
        before = len(known)
        for given, made in rules:
            if given <= known:
                known |= made
        is_growing = len(known) > before
    return frozenset(known)


def _follows(fact: Fact, every: Collection[str]) -> Collection[str]:
    return every if fact.kind is FactKind.UNIQUE else fact.determined
