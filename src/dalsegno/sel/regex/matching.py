"""String.split and String.replaceAll."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import BYTES_PER_ELEMENT, CHARACTERS_PER_STEP, Meter
from dalsegno.sel.regex.machine import Span, search
from dalsegno.sel.regex.program import Program
from dalsegno.sel.regex.syntax import compiled

_SPECIAL = frozenset(".$|()[{^?*+\\")
_LITERAL_ESCAPE = re.compile(r"\\([^a-zA-Z0-9])")
_LONGEST = 2_000
_TEXT = re.compile(r"[^\\$]+")
_NAMED = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}")


@lru_cache(maxsize=32)
def _program(pattern: str) -> Program:
    if len(pattern) > _LONGEST:
        raise Fault(f"the regular expression has more than {_LONGEST:,} characters")
    return compiled(pattern)


def _literal(pattern: str) -> str | None:
    """The text that a pattern means if it means just one, as in split(',') or split('\\\\|')."""
    plain = _LITERAL_ESCAPE.sub("", pattern)
    if not pattern or not _SPECIAL.isdisjoint(plain):
        return None
    return _LITERAL_ESCAPE.sub(r"\1", pattern)


def _matches(text: str, pattern: str, meter: Meter) -> Iterator[Span]:
    literal = _literal(pattern)
    position = 0
    if literal is not None:
        while (start := text.find(literal, position)) >= 0:
            meter.step(1 + (start - position) // CHARACTERS_PER_STEP)
            position = start + len(literal)
            yield start, position
        return
    program = _program(pattern)
    while position <= len(text):
        found = search(program, text, position, meter)
        if found is None:
            return
        yield found
        position = found[1] + (found[0] == found[1])


def split(text: str, pattern: str, limit: int, meter: Meter) -> list[str]:
    """The parts between matches. Without a limit, empty ones at the end are dropped."""
    parts: list[str] = []
    last = 0
    for span in _matches(text, pattern, meter):
        start, end = span[:2]
        if limit > 0 and len(parts) == limit - 1:
            break
        if end == 0:
            continue  # an empty match at the very beginning parts nothing
        meter.make(BYTES_PER_ELEMENT)
        parts.append(text[last:start])
        last = end
    if last == 0 and not parts:
        return [text]
    parts.append(text[last:])
    if limit == 0:
        while parts and not parts[-1]:
            parts.pop()
    return parts


def replaced(text: str, pattern: str, replacement: str, meter: Meter) -> str:
    """The text with every match replaced; $1 and ${name} stand for groups, a backslash for the next character."""
    pieces = None
    parts: list[str] = []
    length = last = 0
    for span in _matches(text, pattern, meter):
        pieces = pieces if pieces is not None else list(_pieces(replacement, pattern))
        parts.append(text[last : span[0]])
        parts += [piece if isinstance(piece, str) else _group(text, span, piece) for piece in pieces]
        length += sum(map(len, parts[-len(pieces) - 1 :]))
        meter.text(length if length > meter.limits.characters else 0)
        last = span[1]
    meter.text(length + len(text) - last)
    parts.append(text[last:])
    return "".join(parts)


def _group(text: str, span: Span, group: int) -> str:
    start, end = span[2 * group : 2 * group + 2]
    return text[start:end] if start >= 0 else ""


def _pieces(replacement: str, pattern: str) -> Iterator[str | int]:
    """Text, and numbers of groups."""
    groups = 0 if _literal(pattern) is not None else _program(pattern).groups
    position = 0
    while position < len(replacement):
        if plain := _TEXT.match(replacement, position):
            position = plain.end()
            yield plain[0]
            continue
        character = replacement[position]
        position += 1
        if character == "\\":
            if position == len(replacement):
                raise Fault("the replacement ends with a backslash", hint="For a backslash write \\\\\\\\.")
            yield replacement[position]
            position += 1
        elif match := _NAMED.match(replacement, position):
            names = _program(pattern).names
            if match[1] not in names:
                raise Fault(f"the pattern has no group {match[1]}")
            position = match.end()
            yield names[match[1]]
        else:
            digits = re.compile("[0-9]+").match(replacement, position)
            if digits is None or int(digits[0][0]) > groups:
                shown = replacement[position - 1 : position + 3]
                raise Fault(f"'{shown}' names no group of the pattern", hint="For a dollar sign write \\\\$.")
            number = digits[0][0]
            for digit in digits[0][1:]:  # as many digits as still name a group
                if int(number + digit) > groups:
                    break
                number += digit
            position += len(number)
            yield int(number)
