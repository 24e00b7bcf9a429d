"""The comments of a YAML text, which parsers throw away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar

_SHARP = re.compile(r"(?:^|(?<=[ \t]))#")
_BLOCKS = ("|", ">")


@dataclass
class Comments:
    """By the line that they belong to; whoever writes one takes it out."""

    #: On the same line as something else.
    beside: dict[int, str] = field(default_factory=dict)
    #: On lines of their own, above that line.
    above: dict[int, list[str]] = field(default_factory=dict)
    #: Lines that have an empty one above them, or above their comments.
    spaced: set[int] = field(default_factory=set)
    #: After the last value.
    after: list[str] = field(default_factory=list)


def comments_of(text: str, root: Node) -> Comments:
    lines = text.splitlines()
    covered = _covered(root)
    found = Comments()
    pending: list[str] = []
    is_spaced = False
    for number, line in enumerate(lines, start=1):
        start = _start(line, covered.get(number, []))
        content = line if start is None else line[:start]
        if start is not None and content.strip(" \t]},"):
            found.beside[number] = line[start:].rstrip()
        elif start is not None:
            pending.append(line[start:].rstrip())
            continue
        # What only closes something is written elsewhere, or not at all.
        if content.strip(" \t]},") and content.strip() != "---":
            if pending:
                found.above[number] = pending
            if is_spaced:
                found.spaced.add(number)
            pending, is_spaced = [], False
        elif not content.strip() and start is None:
            is_spaced = True
    found.after = pending
    return found


def _start(line: str, spans: list[tuple[int, int]]) -> int | None:
    """Where the comment begins."""
    for match in _SHARP.finditer(line):
        index = match.end() - 1
        if not any(begin <= index < end for begin, end in spans):
            return index
    return None


def _covered(root: Node) -> dict[int, list[tuple[int, int]]]:
    """By line, the columns that scalars take up, counted from 0."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for scalar in _scalars(root):
        for line, begin, end in _lines(scalar):
            spans.setdefault(line, []).append((begin, end))
    return spans


def _lines(scalar: Scalar) -> Iterator[tuple[int, int, int]]:
    start, end = scalar.mark, scalar.end
    everything = 1 << 30
    if scalar.style in _BLOCKS:
        # Its first line may hold a comment, after the indicator.
        for line in range(start.line + 1, end.line if end.column == 1 else end.line + 1):
            yield line, 0, everything
        return
    for line in range(start.line, end.line + 1):
        begin = start.column - 1 if line == start.line else 0
        yield line, begin, end.column - 1 if line == end.line else everything


def _scalars(root: Node) -> Iterator[Scalar]:
    todo: list[Node] = [root]
    while todo:
        match todo.pop():
            case Scalar() as scalar:
                yield scalar
            case ListNode(items=items):
                todo += items
            case MapNode(entries=entries):
                for key, value in entries.values():
                    todo += (key, value)
