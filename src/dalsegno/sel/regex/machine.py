"""Runs a program over a text, all paths at once: each instruction is visited at most once per character."""

from __future__ import annotations

from typing import TypeAlias

from dalsegno.sel.limits import Meter
from dalsegno.sel.regex.program import Assert, Done, Fork, Jump, Look, Program, Save, Take

#: Where the whole match and each group begin and end; -1 for a group that took no part.
Span: TypeAlias = tuple[int, ...]

#: Visits that count as one step.
_VISITS_PER_STEP = 2
#: How far back is looked, in characters.
_LOOK_BEHIND = 255


def search(program: Program, text: str, start: int, meter: Meter) -> Span | None:
    """The first match from a position on, and of those that begin there the one Java prefers."""
    return _Machine(program, text, meter).search(start)


class _Machine:
    def __init__(self, program: Program, text: str, meter: Meter) -> None:
        self._program = program.instructions
        self._text = text
        self._meter = meter
        self._nothing: Span = (-1,) * (2 * program.groups + 2)
        self._visits = 0

    def search(self, start: int, *, only_here: bool = False, upto: int | None = None) -> Span | None:
        """The first match; if wanted, only one that begins at the start, or ends at a given place."""
        found: Span | None = None
        #: Paths alive, the preferred first: where each stands in the program, and what it has marked.
        paths: list[tuple[int, Span]] = []
        for position in range(start, len(self._text) + 1):
            seen: set[int] = set()
            alive: list[tuple[int, Span]] = []
            for at, marks in paths:
                self._follow(at, marks, position, seen, alive)
            if found is None and (position == start or not only_here):
                self._follow(0, self._nothing, position, seen, alive)
            paths = []
            for at, marks in alive:
                instruction = self._program[at]
                if isinstance(instruction, Done):
                    if upto is None or position == upto:
                        found = marks
                        break
                    continue
                here = self._text[position : position + 1]
                if here and isinstance(instruction, Take) and instruction.test(here):
                    paths.append((at + 1, marks))
            self._meter.step(1 + self._visits // _VISITS_PER_STEP)
            self._visits = 0
            if not paths and (found is not None or only_here):
                break
        return found

    def _follow(self, at: int, marks: Span, position: int, seen: set[int], alive: list[tuple[int, Span]]) -> None:
        """Go on as far as possible without taking a character."""
        waiting = [(at, marks)]
        while waiting:
            at, marks = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            self._visits += 1
            match self._program[at]:
                case Jump(to=to):
                    waiting.append((to, marks))
                case Fork(first=first, second=second):
                    waiting += [(second, marks), (first, marks)]
                case Save(slot=slot):
                    waiting.append((at + 1, (*marks[:slot], position, *marks[slot + 1 :])))
                case Assert(place=place):
                    if self._is(place, position):
                        waiting.append((at + 1, marks))
                case Look(program=program, ahead=ahead, wanted=wanted):
                    if self._sees(program, position, ahead=ahead) == wanted:
                        waiting.append((at + 1, marks))
                case _:
                    alive.append((at, marks))

    def _sees(self, program: Program, position: int, *, ahead: bool) -> bool:
        inner = _Machine(program, self._text, self._meter)
        if ahead:
            return inner.search(position, only_here=True) is not None
        starts = range(position, max(position - _LOOK_BEHIND, 0) - 1, -1)
        return any(inner.search(start, only_here=True, upto=position) is not None for start in starts)

    def _is(self, place: str, position: int) -> bool:
        text, end = self._text, len(self._text)
        match place:
            case "start":
                return position == 0
            case "end":
                return position == end
            case "last end":
                return position == end or (text[position:] in {"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029"})
            case "line start":
                return position == 0 or (text[position - 1] in "\n\r\u0085\u2028\u2029" and position < end)
            case "line end":
                return position == end or text[position] in "\n\r\u0085\u2028\u2029"
        before = position > 0 and _is_word(text[position - 1])
        after = position < end and _is_word(text[position])
        return (before != after) == (place == "word edge")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
