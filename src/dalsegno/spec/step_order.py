"""Which steps of one list come before which, and whether a condition stands in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dalsegno.model.workflow import Step

#: By step: those that follow on it, each with its condition, if there is one.
Following = Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True)
class StepOrder:
    """Steps as bits of a number, which keeps a workflow of 10,000 steps cheap."""

    ids: Sequence[str]
    _bits: Mapping[str, int]
    _before: Mapping[str, int]
    #: Steps that a condition may keep from running.
    conditional: frozenset[str]

    def is_before(self, step: str, other: str) -> bool:
        return bool(self._before[other] & self._bits[step])

    def last_of(self, steps: Sequence[str]) -> list[str]:
        """Those of these steps that come before none of the others."""
        followed = 0
        for step in steps:
            followed |= self._before[step]
        return [step for step in steps if not followed & self._bits[step]]


def following(steps: Sequence[Step]) -> dict[str, dict[str, str | None]]:
    """What follows on each step of a list; a name that is no step's is left out."""
    ids = {step.id for step in steps}
    return {step.id: {after: why for after, why in step.successors.items() if after in ids} for step in steps}


def order_of(edges: Following) -> StepOrder | None:
    """None if the steps go in a circle."""
    waiting = dict.fromkeys(edges, 0)
    for outgoing in edges.values():
        for after in outgoing:
            waiting[after] += 1
    bits = {step: 1 << number for number, step in enumerate(edges)}
    before = dict.fromkeys(edges, 0)
    conditional: set[str] = set()
    ready = [step for step, count in waiting.items() if not count]
    for step in ready:
        for after, condition in edges[step].items():
            before[after] |= before[step] | bits[step]
            if condition is not None or step in conditional:
                conditional.add(after)
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    return StepOrder(list(edges), bits, before, frozenset(conditional)) if len(ready) == len(edges) else None
