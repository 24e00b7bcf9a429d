"""Text from outside, as it can be shown: a terminal acts on control characters, and anybody can send them."""

from __future__ import annotations

#: ESC and its like (C0), DEL, their 8-bit forms (C1), and halves of characters, which no terminal can show.
_CONTROLS = (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0xD800, 0xE000))
#: As JSON writes them, so that JSON stays JSON.
_ESCAPES = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}
_IN_ONE_LINE = _ESCAPES | {ord("\n"): "\\n", ord("\t"): "\\t"}


def escaped(text: str) -> str:
    """Without control characters, but for newlines and tabs."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_ESCAPES)


def one_line(text: str, most: int = 200) -> str:
    """In one line, without control characters, cut after so many characters."""
    cut = text[:most].translate(_IN_ONE_LINE)
    return cut if len(text) <= most else f"{cut}…"
