"""What workers want stored while their steps go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dalsegno.engine.jobs import StopFlags
from dalsegno.engine.records import Claim
from dalsegno.store import Store, queue

#: How soon a worker notices that it has to leave.
_LEAVE_SECONDS = 0.25


@dataclass(frozen=True)
class Noted:
    claim: Claim
    values: Mapping[str, Any]
    _done: Future[bool] = field(default_factory=Future)

    def is_kept(self, stop_flags: StopFlags) -> bool:
        """Whether the step is still the worker's, once it is stored. However long that is held up: a worker that has to
        leave leaves.
        """
        while not stop_flags.is_to_leave():
            with suppress(TimeoutError):
                return self._done.result(_LEAVE_SECONDS)
        return False

    def answer(self, *, is_kept: bool) -> None:
        if not self._done.done():
            self._done.set_result(is_kept)


def store_notes(store: Store, noted: Sequence[Noted]) -> None:
    """Store them together, and tell the workers."""
    # In the order in which steps are saved.
    noted = sorted(noted, key=lambda each: (each.claim.flow.id, each.claim.step.id))
    with store.database.writing() as connection:
        kept = [
            queue.note(connection, each.claim.flow.id, each.claim.step.id, each.claim.state.fence, each.values)
            for each in noted
        ]
    for each, is_kept in zip(noted, kept, strict=True):
        each.answer(is_kept=is_kept)
