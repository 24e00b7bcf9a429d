"""Which steps may be claimed now: those that are due, as far as there are permits for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from dalsegno.model.runs import StepState

_UNLIMITED = 1 << 30
_Step = TypeVar("_Step")


def is_due(state: StepState | None, now: datetime) -> bool:
    return state is not None and state.ready_at is not None and state.ready_at <= now


def free_permits(
    names: Collection[str], limits: Mapping[str, int], held: Mapping[str, int], ours: Collection[str]
) -> dict[str, int]:
    """How many permits of each name are left. One without a limit is unlimited; one that others are at has none for us.

    ``held`` counts those that are stored and those of this transaction.
    """
    free = {name: most - held.get(name, 0) if name in ours else 0 for name, most in limits.items()}
    return {name: free.get(name, _UNLIMITED) for name in names}


def within_limits(
    wanted: Sequence[tuple[_Step, Collection[str]]], free: Mapping[str, int]
) -> list[tuple[_Step, Collection[str]]]:
    """The steps, in their order, for which all permits that they want are left; the others stay ready."""
    left = dict(free)
    found = []
    for step, names in wanted:
        if all(left[name] > 0 for name in names):
            for name in names:
                left[name] -= 1
            found.append((step, names))
    return found
