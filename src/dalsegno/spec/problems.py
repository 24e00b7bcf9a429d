"""Gathers what is wrong with a text, so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

from dalsegno.errors import InvalidWorkflow, Problem
from dalsegno.hints import closest
from dalsegno.spec.nodes import SourceLocation

#: Nobody reads more, and a hostile text must not make a message of many megabytes.
LISTED = 100
#: With how many names one is compared for a hint: each takes some microseconds.
COMPARED = 1000


class Problems:
    """The problems of one text."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._unlisted = 0

    def add(
        self, message: str, mark: SourceLocation, path: str = "", hint: str | None = None, *, warning: bool = False
    ) -> None:
        if len(self._found) >= LISTED:
            self._unlisted += 1
            return
        problem = Problem(message, mark.line, mark.column, path, hint, warning)
        if problem not in self._found:
            self._found.append(problem)

    def stop(self, message: str, mark: SourceLocation, hint: str | None = None) -> NoReturn:
        """For what makes going on pointless."""
        self.add(message, mark, hint=hint)
        raise Stopped

    @property
    def is_full(self) -> bool:
        """Whether more would only be counted, so that looking for hints is a waste."""
        return len(self._found) >= LISTED

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(_in_order(problem for problem in self._found if problem.is_warning))

    def refuse(self, file: str) -> None:
        """Raise if there is anything but warnings."""
        if self._unlisted or any(not problem.is_warning for problem in self._found):
            raise InvalidWorkflow(_in_order(self._found), file=file, unlisted=self._unlisted)


class Stopped(Exception):
    """Nothing more can be said of this text."""


def meant(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """A question that may help, if one of the known names is near."""
    # Of two that differ in their first letter's case alone, the one that is written like the name counts.
    alike = sorted(islice(known, COMPARED), key=lambda each: each[:1].isupper() == name[:1].isupper())
    by_lower = {each.lower(): str(each) for each in alike}
    near = closest(name.lower(), by_lower, cutoff)
    return f"did you mean {by_lower[near]!r}?" if near is not None else None


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.line, problem.column))
