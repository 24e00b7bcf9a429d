"""The way to SEL, the expression language: only far enough to say where an expression cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.errors import UserError
from dalsegno.spec.nodes import Scalar, SourceLocation
from dalsegno.spec.problems import Problems

_BLOCKS = ("|", ">")


@dataclass(frozen=True)
class Written:
    """An expression and where it stands."""

    text: str
    #: What it was read from; it may hold more than the expression.
    source: Scalar
    path: str
    #: How many characters of the source stand before it.
    offset: int = 0

    def place(self, line: int, column: int, lines: list[str]) -> SourceLocation:
        """Where the expression's own line and column are in the file, as near as can be told."""
        start = self.source.mark
        if self.source.style in _BLOCKS and start.line + line <= len(lines):
            content = lines[start.line]
            indent = len(content) - len(content.lstrip())
            return SourceLocation(start.line + line, indent + column)
        if line == 1 and self.source.end.line == start.line:
            quote = 1 if self.source.style else 0
            return SourceLocation(start.line, start.column + quote + self.offset + column - 1)
        return start


def check(expressions: list[Written], lines: list[str], problems: Problems) -> None:
    """Note each that is no SEL."""
    if not expressions:
        return
    from dalsegno.sel import parse  # noqa: PLC0415 - a workflow without expressions need not wait for it

    for each in expressions:
        try:
            parse(each.text)
        except UserError as error:
            line, column = getattr(error, "line", None) or 1, getattr(error, "column", None) or 1
            message = error.message.removeprefix(f"line {line}, column {column}: ").rstrip(".")
            hint = error.hint and error.hint[:1].lower() + error.hint[1:].rstrip(".")
            place = each.place(line, column, lines)
            problems.add(f"the expression cannot be read: {message}", place, each.path, hint)
