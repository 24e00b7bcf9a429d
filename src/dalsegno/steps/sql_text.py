"""Split a SQL script into its statements, and tell code from quoted text in them."""

from __future__ import annotations

import re

#: Quoted text and comments, in which neither a semicolon nor a colon means anything.
_OPAQUE = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)",
    re.DOTALL,
)
_COMMENT = re.compile(r"--|/\*")


def statements(script: str) -> list[str]:
    """The statements between semicolons; those of nothing but comments are left out."""
    found: list[str] = []
    current, has_code = "", False
    for text, is_code in _pieces(script):
        if not is_code:
            current += text
            has_code = has_code or not _COMMENT.match(text)
            continue
        first, *others = text.split(";")
        current, has_code = current + first, has_code or bool(first.strip())
        for other in others:
            if has_code:
                found.append(current.strip())
            current, has_code = other, bool(other.strip())
    return [*found, current.strip()] if has_code else found


def with_colons_escaped(statement: str) -> str:
    """The statement for ``sqlalchemy.text``, to which a colon in quoted text must not begin a parameter."""
    return "".join(text if is_code else text.replace(":", r"\:") for text, is_code in _pieces(statement))


def _pieces(script: str) -> list[tuple[str, bool]]:
    """The script in order, as (text, whether it is code)."""
    pieces = []
    position = 0
    for found in _OPAQUE.finditer(script):
        pieces += [(script[position : found.start()], True), (found[0], False)]
        position = found.end()
    return [*pieces, (script[position:], True)]
