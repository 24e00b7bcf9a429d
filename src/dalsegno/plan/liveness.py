"""Who is alive, by what is seen of them.

No clock of any machine is trusted. A process counts up a number as a sign of life. Whoever watches it takes it for dead
when the number has not changed for a while, by the watcher's own stopwatch; and a process that could not count up lets
go of its work earlier, by its own. So a clock that jumps makes no difference, and work is let go of before another
takes it up:

    3 s   the next sign of life is due
    8 s   its jobs that only this machine can find again are asked to end (``steps.supervision``)
    10 s  it lets go of its steps
    11 s  those jobs are killed
    12 s  it may join again, under another name
    15 s  another takes its steps
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

BEAT_SECONDS = 3.0
LET_GO_SECONDS = 10.0
JOIN_AGAIN_SECONDS = 12.0
TAKEN_OVER_SECONDS = 15.0

#: How much of the time between two looks counts: who did not look, because the machine slept or the store was away,
#: cannot say that nothing changed.
_LOOKED_SECONDS = 2.0


@dataclass(frozen=True)
class Sighting:
    """The last sign of somebody, and for how long it has not changed while we looked."""

    sign: Hashable
    unchanged_seconds: float = 0.0

    @property
    def is_silent(self) -> bool:
        return self.unchanged_seconds >= TAKEN_OVER_SECONDS


def sighted(before: Mapping[str, Sighting], signs: Mapping[str, Hashable], passed: float) -> dict[str, Sighting]:
    """What is known of each after another look, so many seconds after the last one."""
    counted = min(max(passed, 0.0), _LOOKED_SECONDS)
    seen = {}
    for name, sign in signs.items():
        known = before.get(name)
        is_same = known is not None and known.sign == sign
        seen[name] = Sighting(sign, known.unchanged_seconds + counted if known and is_same else 0.0)
    return seen
