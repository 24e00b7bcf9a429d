"""Lists with headers and aligned columns, as wide as a terminal at most."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Collection, Sequence
from shutil import get_terminal_size

from dalsegno.cli import colours
from dalsegno.operations.printable import one_line

#: Numbers stand to the right; None is a dash.
Cell = str | int | None

_GAP = "  "
#: A column is not made narrower than this.
_NARROWEST = 8
#: Characters that take no room of their own: accents, joiners, and marks of direction.
_NO_ROOM = ("Mn", "Me", "Cf")


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    empty: str = "",
    right: Collection[int] = (),
    keeps_empty_columns: bool = False,
    indent: str = "",
) -> str:
    """The rows below their headers, or the sentence ``empty``. ``right``: more columns that stand to the right."""
    if not rows:
        return empty
    columns = range(len(headers))
    used = [index for index in columns if keeps_empty_columns or any(row[index] != "" for row in rows)]
    numbers = {place for place, index in enumerate(used) if index in right or _is_numeric([row[index] for row in rows])}
    cells = [[_text(row[index]) for index in used] for row in rows]
    titles = [one_line(headers[index], len(headers[index])) for index in used]
    widths = [max(map(width, column)) for column in zip(titles, *cells, strict=True)]
    room = terminal_width()
    if room is not None:
        widths = _fitted(widths, room - len(indent) - len(_GAP) * (len(widths) - 1))
    lines = [f"{indent}{_line(row, widths, numbers)}" for row in (titles, *cells)]
    if room is not None:
        lines = [cut(line, room) for line in lines]
    return "\n".join([colours.paint(lines[0], "bold"), *lines[1:]])


def terminal_width() -> int | None:
    """How many columns standard output has; None if it is not a terminal."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    text = colours.plain(text)
    return len(text) if text.isascii() else sum(map(_character_width, text))


def cut(text: str, most: int) -> str:
    """The text, or as much of it as fits, with an ellipsis."""
    if width(text) <= most:
        return text
    kept, taken, is_painted = [], 0, False
    for piece, is_mark in colours.pieces(text):
        if not is_mark:
            taken += _character_width(piece)
            if taken > most - 1:
                break
        is_painted = is_painted or is_mark
        kept.append(piece)
    return f"{''.join(kept)}{'…' * (most > 0)}{colours.RESET * is_painted}"


def _is_numeric(column: Sequence[Cell]) -> bool:
    return any(isinstance(cell, int) for cell in column) and not any(isinstance(cell, str) for cell in column)


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _NO_ROOM:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    # A row is a line, whatever names and messages hold.
    return f"{cell:,}" if isinstance(cell, int) else one_line(cell, len(cell))


def _fitted(widths: list[int], room: int) -> list[int]:
    """Take from the widest columns until all fit. The first one names what the row is about: it stays whole."""
    found = list(widths)
    while sum(found) > room:
        widest = max(range(1, len(found)), key=found.__getitem__, default=0)
        if widest == 0 or found[widest] <= _NARROWEST:
            break
        found[widest] -= 1
    return found


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Collection[int]) -> str:
    parts = []
    for index, (cell, wide) in enumerate(zip(cells, widths, strict=True)):
        fitting = cut(cell, wide)
        space = " " * (wide - width(fitting))
        parts.append(f"{space}{fitting}" if index in numbers else f"{fitting}{space}")
    return _GAP.join(parts).rstrip()
