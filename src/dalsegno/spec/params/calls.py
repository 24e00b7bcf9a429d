"""``${name('t', 'event_day=day')}``: a predicate, with its columns those of a table's alias, or named otherwise.

A step that captures hands over predicates whose columns stand in backticks; whoever uses one knows what the table is
called there. Arguments are plain names, so a text that is put together of them can be nothing but a predicate.
"""

from __future__ import annotations

import re

from dalsegno.errors import ParamError

_ARGUMENT = re.compile(r"""\s*(?:'([^'"]*)'|"([^'"]*)")\s*""")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: A text, in which nothing is a column; or a column, unless it is a field of the one before the dot.
_PIECE = re.compile(r"'(?:[^'\\]|\\.)*'|(?P<field>\.)?`(?P<column>(?:[^`]|``)*)`", re.DOTALL)
_WITHOUT_COLUMNS = frozenset({"true", "false"})


def called(name: str, arguments: str, predicate: str) -> str:
    """The predicate with an alias before its columns, and columns renamed, as the arguments say."""
    alias, renamed = _read(name, arguments)
    has_columns = predicate in _WITHOUT_COLUMNS

    def replaced(found: re.Match[str]) -> str:
        nonlocal has_columns
        if found["column"] is None or found["field"]:
            return found[0]
        has_columns = True
        column = found["column"]
        return f"{alias}`{renamed.get(column, column)}`"

    text = _PIECE.sub(replaced, predicate)
    if not has_columns:
        raise ParamError(
            f"${{{name}({arguments})}} names a table's alias, but '{name}' is not a predicate: it has no column in "
            "backticks.",
            hint=f"Write ${{{name}}}, or use a predicate such as partition_filter of a step that captures.",
        )
    return text


def _read(name: str, arguments: str) -> tuple[str, dict[str, str]]:
    """What to write before columns, and what to call them."""
    pieces = [_ARGUMENT.fullmatch(piece) for piece in arguments.split(",")]
    texts = ["" if piece is None else piece[1] or piece[2] or "" for piece in pieces]
    alias, renamed = "", {}
    for position, text in enumerate(texts):
        left, equals, right = text.partition("=")
        names = [left.strip(), right.strip()] if equals else [left]
        if not all(map(_NAME.fullmatch, names)) or (not equals and position):
            raise ParamError(
                f"${{{name}({arguments})}} cannot be read: expected a table's alias in quotes, then what columns are "
                "called there if it is something else.",
                hint=f"Such as ${{{name}('t')}} or ${{{name}('t', 'event_day=day')}}; names are letters, digits and _.",
            )
        if equals:
            renamed[names[0]] = names[1]
        else:
            alias = f"{text}."
    return alias, renamed
