"""JSON, with the place of every value.

Most JSON is YAML, but not all: emoji are often written as two escapes, and keys may be long.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined] # typeshed leaves it out
from typing import NoReturn

from dalsegno.spec.composing import Composer
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation
from dalsegno.spec.problems import Problems
from dalsegno.spec.scalars import DIGITS

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def compose(text: str, problems: Problems) -> Node | None:
    """The root of a JSON text."""
    return _Scanner(text, problems).scan()


class _Scanner:
    def __init__(self, text: str, problems: Problems) -> None:
        self._text = text
        self._composer = Composer(problems)
        self._problems = problems
        self._index = 0
        self._line = 1
        #: Where the line begins.
        self._start = 0
        #: Where the first item or key of what was opened last would stand.
        self._first = 0

    def scan(self) -> Node | None:
        self._value()
        while self._composer.inside is not None:
            self._next()
        self._skip()
        if self._index < len(self._text):
            self._refuse("the end of the text")
        return self._composer.root

    def _next(self) -> None:
        """What comes inside of an open list or mapping: an item, an entry, or its end."""
        in_map = self._composer.inside is MapNode
        closing = "}" if in_map else "]"
        self._skip()
        if self._here() == closing:
            self._advance()
            self._composer.end()
            return
        if self._index != self._first:
            if self._here() != ",":
                self._refuse(f"',' or '{closing}'")
            self._advance()
            self._skip()
        if in_map:
            self._key()
        self._value()

    def _key(self) -> None:
        if self._here() != '"':
            self._refuse("a key in double quotes")
        self._string()
        self._skip()
        if self._here() != ":":
            self._refuse("':'")
        self._advance()

    def _value(self) -> None:
        self._skip()
        character = self._here()
        if character == "{":
            self._begin(MapNode(self._mark()))
        elif character == "[":
            self._begin(ListNode(self._mark()))
        elif character == '"':
            self._string()
        else:
            self._word()

    def _begin(self, node: ListNode | MapNode) -> None:
        self._composer.begin(node)
        self._advance()
        self._skip()
        self._first = self._index

    def _string(self) -> None:
        mark = self._mark()
        try:
            value, end = scanstring(self._text, self._index + 1, False)
        except JSONDecodeError as error:
            self._problems.stop(error.msg[:1].lower() + error.msg[1:].removesuffix(" starting at"), mark)
        self._move(end)
        self._composer.scalar(Scalar(value, mark, value, '"', self._mark()))

    def _word(self) -> None:
        mark = self._mark()
        if found := _NUMBER.match(self._text, self._index):
            word = found[0]
            is_whole = word.lstrip("-").isdigit()
            if len(word) > DIGITS:
                self._problems.add(f"the number has more than {DIGITS} digits", mark)
                value: float | bool | None = 0
            else:
                value = int(word) if is_whole else float(word)
        else:
            word = next((each for each in _WORDS if self._text.startswith(each, self._index)), "")
            if not word:
                self._refuse("a value")
            value = _WORDS[word]
        self._move(self._index + len(word))
        self._composer.scalar(Scalar(value, mark, word, "", self._mark()))

    # Where we are.

    def _here(self) -> str:
        return self._text[self._index : self._index + 1]

    def _mark(self) -> SourceLocation:
        return SourceLocation(self._line, self._index - self._start + 1)

    def _advance(self) -> None:
        self._index += 1

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._index)
        if found:
            self._move(found.end())

    def _move(self, index: int) -> None:
        lines = self._text.count("\n", self._index, index)
        if lines:
            self._line += lines
            self._start = self._text.rfind("\n", self._index, index) + 1
        self._index = index

    def _refuse(self, expected: str) -> NoReturn:
        found = repr(self._here()) if self._here() else "the end of the text"
        self._problems.stop(f"expected {expected}, found {found}", self._mark())
