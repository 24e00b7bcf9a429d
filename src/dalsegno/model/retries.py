"""How often a step is tried again in one run, and after which wait: a retry policy whose texts became numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

_TICK = timedelta(microseconds=1)
#: A wait that doubled as often is longer than any limit.
_MANY = 64


@dataclass(frozen=True)
class Retry:
    """For failures of one kind."""

    limit: int
    base: timedelta
    exponent: int
    longest: timedelta

    def wait(self, retries: int) -> timedelta:
        """How long to wait after so many retries."""
        # Whole numbers: exponents may be so large that a float cannot hold the product.
        ticks = (self.base // _TICK) * int(self.exponent ** min(retries, _MANY))
        return min(ticks, self.longest // _TICK) * _TICK


@dataclass(frozen=True)
class Retries:
    """By whose fault it was."""

    error: Retry = Retry(2, timedelta(minutes=1), 2, timedelta(minutes=10))
    platform: Retry = Retry(10, timedelta(minutes=1), 2, timedelta(hours=1))
    timeout: Retry = Retry(0, timedelta(minutes=1), 2, timedelta(hours=1))
