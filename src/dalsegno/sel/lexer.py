"""From characters to tokens, as Java 1.1 reads them, except that a string may stand in single quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import Limits
from dalsegno.sel.texts import to_utf16

#: Words that can be no name, whether SEL uses them or not.
_RESERVED = (
    "abstract boolean break byte case catch char class const continue default do double else extends "
    "false final finally float for goto if implements import instanceof int interface long native new "
    "null package private protected public return short static super switch synchronized this throw "
    "throws transient true try void volatile while"
)
KEYWORDS = frozenset(_RESERVED.split())
_LETTER = (
    "$A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u3040-\u318f\u3300-\u337f\u3400-\u3d2d\u4e00-\u9fff\uf900-\ufaff"
)
_EXPONENT = r"[eE][+-]?[0-9]+"
_FLOAT = (
    rf"[0-9]+\.[0-9]*(?:{_EXPONENT})?[fFdD]?|\.[0-9]+(?:{_EXPONENT})?[fFdD]?"
    rf"|[0-9]+{_EXPONENT}[fFdD]?|[0-9]+[fFdD]"
)
_TOKEN = re.compile(
    rf"""
    (?P<space>   [ \t\n\r\f]+ | //[^\n\r]* | /\*.*?\*/ )
  | (?P<name>    [{_LETTER}][{_LETTER}0-9]* )
  | (?P<hex>     0[xX][0-9a-fA-F]+[lL]? )
  | (?P<float>   {_FLOAT} )
  | (?P<integer> (?:[1-9][0-9]*|0[0-7]*)[lL]? )
  | (?P<string>  '(?:[^'\\\n\r]|\\[^\n\r])*' | "(?:[^"\\\n\r]|\\[^\n\r])*" )
  | (?P<symbol>  >>>= | <<= | >>= | >>> | == | <= | >= | != | \|\| | && | \+\+ | -- | << | >>
               | [-+*/%&|^]= | /(?!\*) | [-+*%=<>!?:(){{}}\[\];,.&|^~] )
    """,
    re.VERBOSE | re.DOTALL,
)
_UNICODE_ESCAPE = re.compile(r"\\(?:\\|u+([0-9a-fA-F]{4}))")
_ESCAPES = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_CURLY_QUOTES = "\u2018\u2019\u201c\u201d"


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is name, integer, float, string or end; of keywords and symbols it is the text itself."""

    kind: str
    text: str
    at: int


def tokens(source: str, limits: Limits) -> list[Token]:
    """All of them, the last being the end. Faults come out as errors with their place."""
    if len(source) > limits.source:
        raise Fault(f"the expression has {len(source):,} characters, more than {limits.source:,}").at(source, 0)
    text, places = _without_unicode_escapes(to_utf16(source))
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        at = places[position] if places else position
        if match is None:
            raise _illegal(text, position).at(source, at)
        position = match.end()
        kind = str(match.lastgroup)
        if kind == "space":
            continue
        image = match[0]
        if kind == "symbol" or image in KEYWORDS:
            kind = image
        elif kind == "hex":
            raise Fault(f"{image:.40} is hexadecimal", hint="Write whole numbers with decimal digits.").at(source, at)
        elif kind == "string":
            try:
                image = unescaped(image)
            except Fault as fault:
                raise fault.at(source, at) from None
        found.append(Token(kind, image, at))
    found.append(Token("end", "the end", len(source)))
    return found


def unescaped(literal: str) -> str:
    """A string literal without its quotes and backslashes."""
    inside = literal[1:-1]
    if "\\" not in inside:
        return inside

    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise Fault(
                f"\\{match[1]} is not an escape in a string",
                hint="There are \\b \\n \\t \\f \\r \\\\ \\' \\\" and \\uXXXX; for a backslash write \\\\.",
            )
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", character, inside)


def _without_unicode_escapes(text: str) -> tuple[str, list[int]]:
    r"""Java reads \u0041 as A wherever it stands. With escapes, also each character's place in what was written."""
    if "\\u" not in text:
        return text, []
    parts: list[str] = []
    places: list[int] = []
    last = 0
    for match in _UNICODE_ESCAPE.finditer(text):
        if match[1] is None:
            continue
        parts += [text[last : match.start()], chr(int(match[1], 16))]
        places += [*range(last, match.start()), match.start()]
        last = match.end()
    parts.append(text[last:])
    places += range(last, len(text))
    return "".join(parts), places


def _illegal(text: str, position: int) -> Fault:
    character = text[position]
    if character in "'\"":
        return Fault("the string is not closed", hint=f"End it with {character} on the same line.")
    if text.startswith("/*", position):
        return Fault("the comment is not closed", hint="End it with */.")
    if character in _CURLY_QUOTES:
        return Fault(f"{character} is not a quote", hint="Use ' or \".")
    return Fault(f"{character!r} does not belong here")
