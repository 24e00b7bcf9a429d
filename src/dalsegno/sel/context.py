"""What methods may see of the world: what the caller handed in, and the meter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

from dalsegno.sel.limits import Meter
from dalsegno.sel.values import Value


class Extension(Protocol):
    """The ``params.getFrom…`` functions, which know about runs and steps: the caller's part."""

    def call(self, method: str, arguments: tuple[str, ...]) -> Value:
        """The value; ``LookupError`` with a sentence if there is no such method or nothing to be found."""


@dataclass(frozen=True)
class Context:
    """Of one evaluation."""

    params: Mapping[str, Value]
    #: Milliseconds since 1970.
    now: int
    random: Random
    extension: Extension | None
    meter: Meter
