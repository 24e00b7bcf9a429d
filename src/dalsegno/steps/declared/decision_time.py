"""How long it takes to decide on a refresh: analysis, cost and SQL, without what Spark is asked meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


class DecisionTime:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._asking = 0.0

    def without(self, ask: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
        """The same question, whose answer is not waited for in this time."""

        def timed(query: str) -> _Answer:
            began = time.perf_counter()
            try:
                return ask(query)
            finally:
                self._asking += time.perf_counter() - began

        return timed

    @property
    def milliseconds(self) -> float:
        return (time.perf_counter() - self._began - self._asking) * 1000
