"""Text that every store, file and answer can hold: no NUL character, no half of a surrogate pair.

PostgreSQL refuses NUL, UTF-8 has no lone surrogates, and JSON lets both in as escapes. Whatever people and jobs send is
refused where it comes in. Text that is only for reading, such as a failure's message, is repaired instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

#: How deeply values may be nested.
DEEPEST = 64
SMALLEST_LONG, LARGEST_LONG = -(2**63), 2**63 - 1
_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def fault_of_text(text: str) -> str | None:
    """What is wrong with it, if anything, to stand behind "it holds"."""
    if (text.isascii() and "\0" not in text) or (found := _IMPOSSIBLE.search(text)) is None:
        return None
    if found[0] == "\0":
        return "a NUL character"
    return f"half of a surrogate pair (\\u{ord(found[0]):04x}), which is not a character"


def fault_of_texts(value: Any) -> str | None:
    """The same of every text in a value of JSON."""
    return next(filter(None, map(fault_of_text, _texts(value))), None)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in value.items():
                yield str(key)
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


def fault_of_value(value: Any) -> str | None:
    """The same, and of how deep it is, and how large its whole numbers are."""
    return _fault_of_size(value, DEEPEST) or fault_of_texts(value)


def _fault_of_size(value: Any, depth: int) -> str | None:
    match value:
        case int():
            return None if SMALLEST_LONG <= value <= LARGEST_LONG else "a whole number of more than 64 bits"
        case Mapping():
            items = list(value.values())
        case list() | tuple():
            items = list(value)
        case _:
            return None
    if not depth:
        return f"more than {DEEPEST} lists and maps in each other"
    return next(filter(None, (_fault_of_size(item, depth - 1) for item in items)), None)


def readable(text: str) -> str:
    """The text with a replacement character for each that cannot be stored."""
    return text if fault_of_text(text) is None else _IMPOSSIBLE.sub(_REPLACEMENT, text)


def whole_number(text: str) -> int | None:
    """The number that a text of digits stands for; None if it is something else, or larger than 64 bits hold."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(LARGEST_LONG)):
        return None
    return number if (number := int(text)) <= LARGEST_LONG else None
