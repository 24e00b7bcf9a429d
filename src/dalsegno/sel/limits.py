"""What an expression may use, and the meter that stops it.

Expressions are written by strangers and run inside our processes, so nothing they do may depend on their good will:

- every node that is evaluated and every step of a loop inside a method counts;
- what a method is about to make is measured before it is made;
- strings and arrays are charged to the variable that holds them, and given back when it takes another value, so
  appending to a string costs what it grows. What is put into a map is never given back. What a statement makes on the
  way is charged until the statement ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dalsegno.sel.faults import Fault

#: How often the time is looked at, in steps.
_STEPS_PER_LOOK = 256
#: What a box in an array and an entry in a map cost, measured in CPython and rounded up.
BYTES_PER_ELEMENT = 100
BYTES_PER_ENTRY = 250
BYTES_PER_CHARACTER = 2
#: How many characters are copied in the time of a step.
CHARACTERS_PER_STEP = 16_384


@dataclass(frozen=True)
class Limits:
    """The defaults allow what Maestro's do, wherever that ends in seconds."""

    #: Characters of an expression.
    source: int = 10_000
    #: Nesting of parentheses, calls and blocks; also of maps in maps.
    depth: int = 100
    #: Nodes evaluated.
    steps: int = 1_000_000
    #: Turns of one loop.
    turns: int = 25_000
    #: Elements of an array made by ``new``.
    elements: int = 25_000
    #: Characters of one string.
    characters: int = 1_048_576
    #: Bytes of all that is alive.
    memory: int = 32 * 1024 * 1024
    #: Of wall time. The other limits are reached first, except on a machine that is very busy.
    seconds: float = 5.0
    #: Nodes evaluated by all expressions of one run, or of one step.
    all_steps: int = 2_000_000
    #: Of wall time, for all of them.
    all_seconds: float = 10.0


class Budget:
    """Steps and time of several evaluations together, such as of all parameters of a run; for one thread.

    An evaluation may lead to another one, whose time is counted once. Time between evaluations does not count.
    """

    def __init__(self, limits: Limits, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.steps = 0
        self._stopwatch = stopwatch
        self._seconds = 0.0
        self._began: float | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        if self._began is not None:
            yield
            return
        self._began = self._stopwatch()
        try:
            yield
        finally:
            self._seconds += self._stopwatch() - self._began
            self._began = None

    def check(self) -> None:
        if self.steps > self.limits.all_steps:
            raise Fault(
                f"the expressions evaluated so far take more than {self.limits.all_steps:,} steps together",
                hint="Do less in the expressions of one run or step.",
            )
        running = 0.0 if self._began is None else self._stopwatch() - self._began
        if self._seconds + running > self.limits.all_seconds:
            raise Fault(
                f"the expressions evaluated so far take longer than {self.limits.all_seconds:g} s together",
                hint="Do less in the expressions of one run or step.",
            )


class Meter:
    """What one evaluation has used so far."""

    def __init__(
        self, limits: Limits, stopwatch: Callable[[], float] = time.monotonic, budget: Budget | None = None
    ) -> None:
        self.limits = limits
        self.budget = budget or Budget(limits, stopwatch)
        self._stopwatch = stopwatch
        self._deadline = stopwatch() + limits.seconds
        self._steps = 0
        # Many small expressions share a budget, so the first step of each looks.
        self._next_look = 1
        self._held = 0
        self._passing = 0

    def step(self, count: int = 1) -> None:
        self._steps += count
        self.budget.steps += count
        if self._steps >= self._next_look:
            self._look()

    def _look(self) -> None:
        self._next_look = self._steps + _STEPS_PER_LOOK
        if self._steps > self.limits.steps:
            raise Fault(
                f"the expression takes more than {self.limits.steps:,} steps", hint="Do less in one expression."
            )
        if self._stopwatch() > self._deadline:
            raise Fault(
                f"the expression takes longer than {self.limits.seconds:g} s", hint="Do less in one expression."
            )
        self.budget.check()

    def text(self, length: int) -> None:
        """A string of this length is about to be made."""
        if length > self.limits.characters:
            raise Fault(f"a string of {length:,} characters is longer than {self.limits.characters:,}")
        self.step(1 + length // CHARACTERS_PER_STEP)
        self.make(length * BYTES_PER_CHARACTER)

    def make(self, size: int) -> None:
        """So many bytes are about to be made, for as long as the statement runs."""
        self._passing += size
        self._check()

    def hold(self, size: int) -> None:
        """So many bytes are stored, or given back if negative."""
        self._held += size
        self._check()

    def _check(self) -> None:
        if self._held + self._passing > self.limits.memory:
            raise Fault(
                f"the expression needs more than {self.limits.memory // (1024 * 1024)} MiB of memory",
                hint="Make shorter strings, arrays and maps.",
            )

    def next_statement(self) -> None:
        self._passing = 0
