"""What a compiled pattern is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

Test: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Take:
    """One character that passes a test."""

    test: Test


@dataclass(slots=True)
class Fork:
    """Two ways on, the first preferred."""

    first: int = -1
    second: int = -1


@dataclass(slots=True)
class Jump:
    to: int = -1


@dataclass(frozen=True, slots=True)
class Save:
    """Remember the position: of a group's beginning or end."""

    slot: int


@dataclass(frozen=True, slots=True)
class Assert:
    """Go on only at such a place."""

    place: str


@dataclass(frozen=True, slots=True)
class Look:
    """Go on only where another program matches, or does not, from here on or up to here."""

    program: Program
    ahead: bool
    wanted: bool


@dataclass(frozen=True, slots=True)
class Done:
    pass


Instruction: TypeAlias = "Take | Fork | Jump | Save | Assert | Look | Done"


@dataclass
class Program:
    instructions: list[Instruction] = field(default_factory=list)
    groups: int = 0
    names: dict[str, int] = field(default_factory=dict)
